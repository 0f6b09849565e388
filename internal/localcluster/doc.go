// Package localcluster is `kaz local`. It starts and stops one cluster on this machine: a local Azure, a Kubernetes control plane,
// nodes and kaz's components. Layer L4: it composes the packages below it.
package localcluster
