// Package disk is the controller of the CSI driver of Azure managed disks, which creates disks and attaches them to
// machines. Package node, below it, formats and mounts them. Layer L3.
//
// All attachments and detachments of a machine that arrive while one is under way share the next request to Azure
// (attach.go). No request contains the whole list of a machine's disks, so that other programs can change it too.
package disk
