// Package node is the node service of the CSI driver of Azure managed disks. It finds the device of an attached disk,
// formats and mounts it, shows it to pods and grows its file system. Layer L3.
package node
