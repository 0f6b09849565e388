// Package mount mounts volumes on a node. It formats devices, mounts them at staging paths and binds them to the paths of
// pods. It grows file systems and reports how full they are. It knows nothing of Azure. Layer L3.
package mount
