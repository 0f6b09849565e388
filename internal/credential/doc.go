// Package credential turns what a configuration says of identities into the
// credentials that get tokens. Layer L2.
//
// The first that a configuration names is taken: workload identity, managed
// identity, a service principal's secret, its certificate. It is chosen when the
// program starts and says its name in every error, together with what Azure
// answered, so that a refused token can be told from a missing right. The package
// reads no environment variables of its own; azidentity reads those by which a
// host offers its managed identity.
package credential
