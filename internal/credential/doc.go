// Package credential creates the credentials that a configuration describes. Layer L2.
//
// The first kind that is configured is used: workload identity, managed identity, client secret,
// client certificate, the credential file of a hosted control plane. Each credential adds its name and
// Azure's answer to its errors, so that a rejected identity can be told from a missing right. The
// package reads no environment variables. azidentity reads those with which a host offers its managed
// identity.
package credential
