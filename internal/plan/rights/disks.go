package rights

// The features of the azuredisk-csi-driver. Parameters of classes need some of them, and a class can appear at any time.
const (
	// Volumes creates, grows, changes, lists and deletes disks.
	Volumes Feature = "disks"
	// Attachments attaches disks to machines and detaches them.
	Attachments Feature = "disk-attachments"
	// DiskLimits reads how many disks machines of a size can have.
	DiskLimits Feature = "disk-limits"
	// Snapshots creates, lists and deletes snapshots.
	Snapshots Feature = "disk-snapshots"
	// Clones copies disks.
	Clones Feature = "disk-clones"
	// Restores creates disks from snapshots.
	Restores Feature = "disk-restores"
	// Encryption creates disks with keys of disk encryption sets.
	Encryption Feature = "disk-encryption"
	// PrivateDisks creates disks with a disk access.
	PrivateDisks Feature = "disk-private-access"
)

// DiskFeatures returns the features of the azuredisk-csi-driver, in the order of the reference.
func DiskFeatures() []Feature {
	return []Feature{Volumes, Attachments, DiskLimits, Snapshots, Clones, Restores, Encryption, PrivateDisks}
}

func disks() []Need {
	const disk, snapshot = compute + "disks/", compute + "snapshots/"
	return []Need{
		{compute + "skus/read", Subscription, DiskLimits, "read how many disks machines of a size can have", true},
		{compute + "virtualMachines/read", Machines, Attachments, "read the disks of a machine", false},
		{compute + "virtualMachines/attachDetachDataDisks/action", Machines, Attachments, "attach and detach disks", false},
		{instance + "read", Machines, Attachments, "read the disks of an instance of a uniform scale set", false},
		{instance + "attachDetachDataDisks/action", Machines, Attachments,
			"attach disks to instances of uniform scale sets, and detach them", false},
		{disk + "read", Disks, Volumes, "read disks", false},
		{disk + "write", Disks, Volumes, "create, grow and change disks", false},
		{disk + "delete", Disks, Volumes, "delete the disk of a deleted volume", false},
		{disk + "read", Disks, Attachments, "read which machine has a disk", false},
		{disk + "write", Disks, Attachments, "attach a disk to a machine", false},
		{snapshot + "read", Disks, Snapshots, "read snapshots", false},
		{snapshot + "write", Disks, Snapshots, "create snapshots", false},
		{snapshot + "delete", Disks, Snapshots, "delete snapshots", false},
		{disk + "beginGetAccess/action", Disks, Snapshots, "copy the content of a disk into a snapshot", false},
		{disk + "read", Disks, Clones, "read the source of a copy", false},
		{disk + "write", Disks, Clones, "create the copy of a disk", false},
		{disk + "beginGetAccess/action", Disks, Clones, "copy the content of a disk into another disk", false},
		{disk + "write", Disks, Restores, "create a disk from a snapshot", false},
		{snapshot + "read", Disks, Restores, "read the source of a restored disk", false},
		{snapshot + "beginGetAccess/action", Disks, Restores, "copy the content of a snapshot into a disk", false},
		{compute + "diskEncryptionSets/read", DiskEncryption, Encryption, "use the key of a disk encryption set", true},
		{compute + "diskAccesses/read", DiskEncryption, PrivateDisks, "connect a disk with a disk access", true},
	}
}
