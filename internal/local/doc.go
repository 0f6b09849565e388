// Package local is `kaz local`: it starts and stops a local Azure, a Kubernetes control plane, nodes and kaz's components
// on this machine as one cluster. Layer L4: it composes the packages below it.
package local
