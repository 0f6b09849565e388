// Package mount mounts volumes on a node: it formats devices, mounts them at staging paths, binds them to the paths of
// pods, grows file systems, and reports how full they are. It knows nothing of Azure. Layer L3.
package mount
