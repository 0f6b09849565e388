package compute

import "kaz/internal/azure"

// Full types of managed disks and their snapshots.
const (
	Disks     = "Microsoft.Compute/disks"
	Snapshots = "Microsoft.Compute/snapshots"
)

// Disk is the properties of a managed disk.
type Disk struct {
	ProvisioningState   string       `json:"provisioningState,omitempty" azure:"read"`
	DiskState           string       `json:"diskState,omitempty" azure:"read"`
	CreationData        CreationData `json:"creationData"`
	DiskSizeGB          int64        `json:"diskSizeGB,omitempty"`
	DiskIOPSReadWrite   *int64       `json:"diskIOPSReadWrite,omitempty"`
	DiskMBpsReadWrite   *int64       `json:"diskMBpsReadWrite,omitempty"`
	MaxShares           *int64       `json:"maxShares,omitempty"`
	BurstingEnabled     *bool        `json:"burstingEnabled,omitempty"`
	NetworkAccessPolicy string       `json:"networkAccessPolicy,omitempty" azure:"fold"`
	PublicNetworkAccess string       `json:"publicNetworkAccess,omitempty" azure:"fold"`
	DiskAccessID        azure.ID     `json:"diskAccessId,omitempty"`
	Encryption          *Encryption  `json:"encryption,omitempty"`
}

// CreationData is the source of a disk or a snapshot.
type CreationData struct {
	CreateOption      string   `json:"createOption,omitempty" azure:"fold"`
	SourceResourceID  azure.ID `json:"sourceResourceId,omitempty"`
	LogicalSectorSize *int64   `json:"logicalSectorSize,omitempty"`
	PerformancePlus   *bool    `json:"performancePlus,omitempty"`
	// InstantAccessDurationMinutes is how long a snapshot can be restored before it is copied.
	InstantAccessDurationMinutes *int64 `json:"instantAccessDurationMinutes,omitempty"`
}

// Encryption is the key with which a disk is encrypted.
type Encryption struct {
	Type                string   `json:"type,omitempty" azure:"fold"`
	DiskEncryptionSetID azure.ID `json:"diskEncryptionSetId,omitempty"`
}

// Snapshot is the properties of a snapshot of a disk.
type Snapshot struct {
	ProvisioningState   string       `json:"provisioningState,omitempty" azure:"read"`
	TimeCreated         string       `json:"timeCreated,omitempty" azure:"read"` // RFC 3339
	DiskSizeGB          int64        `json:"diskSizeGB,omitempty" azure:"read"`
	CompletionPercent   *float64     `json:"completionPercent,omitempty" azure:"read"` // nil: nothing is copied
	CreationData        CreationData `json:"creationData"`
	Incremental         *bool        `json:"incremental,omitempty"`
	DataAccessAuthMode  string       `json:"dataAccessAuthMode,omitempty" azure:"fold"`
	NetworkAccessPolicy string       `json:"networkAccessPolicy,omitempty" azure:"fold"`
	PublicNetworkAccess string       `json:"publicNetworkAccess,omitempty" azure:"fold"`
}

// MachineDisks is the properties of a machine that say which data disks it has.
type MachineDisks struct {
	ProvisioningState string           `json:"provisioningState,omitempty" azure:"read"`
	HardwareProfile   *HardwareProfile `json:"hardwareProfile,omitempty" azure:"read"`
	StorageProfile    DataDisks        `json:"storageProfile"`
}

// DataDisks is the data disks of a machine. The action attachDetachDataDisks answers with it.
type DataDisks struct {
	DataDisks []DataDisk `json:"dataDisks,omitempty" azure:"key=lun"`
}

// DataDisk is a disk at a logical unit number (LUN) of a machine.
type DataDisk struct {
	LUN          int             `json:"lun"`
	Name         string          `json:"name,omitempty"`
	Caching      string          `json:"caching,omitempty"`
	ManagedDisk  azure.Reference `json:"managedDisk"`
	ToBeDetached bool            `json:"toBeDetached,omitempty" azure:"read"`
}

// AttachDetach is the request of the action attachDetachDataDisks of a machine.
type AttachDetach struct {
	Attach []AttachedDisk `json:"dataDisksToAttach,omitempty" azure:"key=diskId"`
	Detach []DetachedDisk `json:"dataDisksToDetach,omitempty" azure:"key=diskId"`
}

// AttachedDisk is a disk to attach.
type AttachedDisk struct {
	DiskID                  azure.ID         `json:"diskId"`
	LUN                     int              `json:"lun"`
	Caching                 string           `json:"caching,omitempty"`
	DiskEncryptionSet       *azure.Reference `json:"diskEncryptionSet,omitempty"`
	WriteAcceleratorEnabled *bool            `json:"writeAcceleratorEnabled,omitempty"`
}

// DetachedDisk is a disk to detach. DetachOption is "ForceDetach" or empty.
type DetachedDisk struct {
	DiskID       azure.ID `json:"diskId"`
	DetachOption string   `json:"detachOption,omitempty"`
}
