// Package block is the physical side of the managed disks of the local Azure. Each disk and snapshot is a sparse file. A
// disk that is attached to a machine is a loop device, with a link below the machine's /dev as the udev rules of Azure's
// images make it: /dev/disk/azure/scsi1/lunN. Layer L2.
//
// Package block watches the documents of disks, snapshots and machines. The content of a disk outlives its machine and
// the process, because the file stays until the document is deleted.
package block
