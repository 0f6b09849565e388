// Package block is the physical side of the managed disks of the local Azure. Each disk and snapshot is a sparse file. An
// attached disk is a loop device with a link below the machine's /dev. The link has the path that the udev rules of Azure's
// images make: /dev/disk/azure/scsi1/lunN. Layer L2.
//
// Package block watches the documents of disks, snapshots and machines. The content of a disk outlives its machine and the
// process, because the file stays until the document is deleted.
package block
