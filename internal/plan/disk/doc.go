// Package disk decides what managed disks and snapshots look like and which disks of a machine are attached and detached.
// It reads the parameters that users write, and returns documents for Azure. Layer L1: pure functions of their
// arguments.
//
// Parameters, names, tags and defaults are those of the driver disk.csi.azure.com, so that its volumes and classes keep
// working.
package disk
