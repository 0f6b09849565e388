// Package realnodes runs the virtual machines of a local Azure as namespaces of this machine. It connects them with each
// other, with the API server and with Azure. Layer L4.
package realnodes
