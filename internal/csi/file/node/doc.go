// Package node is the node service of the Azure Files driver: it mounts shares by SMB and NFS, and shows them to pods. Layer L3.
package node
