// Package nodes decides what Kubernetes is told of a node from the Azure documents
// of its machine: provider id, addresses, size, zone, and whether the machine is
// there and on. Layer L1: pure functions of their arguments.
package nodes
