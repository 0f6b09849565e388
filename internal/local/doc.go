// Package local is `kaz local`: a local Azure, a Kubernetes control plane, nodes
// and kaz's components on this machine, as one thing that is started and stopped.
// Layer L4: it composes everything and decides nothing about Azure.
package local
