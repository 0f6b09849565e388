package compute

import "kaz/internal/azure"

// ScaleSetModel is the properties of a scale set that say what its machines are like and how it scales.
type ScaleSetModel struct {
	ProvisioningState     string             `json:"provisioningState,omitempty" azure:"read"`
	OrchestrationMode     string             `json:"orchestrationMode,omitempty" azure:"read"`
	Overprovision         *bool              `json:"overprovision,omitempty" azure:"read"`
	SinglePlacementGroup  *bool              `json:"singlePlacementGroup,omitempty" azure:"read"`
	HostGroup             *azure.Reference   `json:"hostGroup,omitempty" azure:"read"`
	VirtualMachineProfile *ScaleSetPrototype `json:"virtualMachineProfile,omitempty" azure:"read"`
}

// ScaleSetPrototype is what the machines of a scale set have in common.
type ScaleSetPrototype struct {
	Priority       string            `json:"priority,omitempty"`
	EvictionPolicy string            `json:"evictionPolicy,omitempty"`
	OSProfile      *PrototypeOS      `json:"osProfile,omitempty"`
	StorageProfile *PrototypeStorage `json:"storageProfile,omitempty"`
}

// PrototypeOS says which operating system the machines run.
type PrototypeOS struct {
	ComputerNamePrefix   string    `json:"computerNamePrefix,omitempty"`
	WindowsConfiguration *struct{} `json:"windowsConfiguration,omitempty"`
}

// PrototypeStorage is the disks of the machines.
type PrototypeStorage struct {
	OSDisk *PrototypeDisk `json:"osDisk,omitempty"`
}

// PrototypeDisk is the disk that the machines start from.
type PrototypeDisk struct {
	OSType           string `json:"osType,omitempty"`
	DiskSizeGB       int64  `json:"diskSizeGB,omitempty"`
	DiffDiskSettings *struct {
		Option string `json:"option,omitempty"`
	} `json:"diffDiskSettings,omitempty"`
}

// ScaledInstance is the properties of a machine of a scale set that say how it is.
type ScaledInstance struct {
	ProvisioningState      string           `json:"provisioningState,omitempty" azure:"read"`
	TimeCreated            string           `json:"timeCreated,omitempty" azure:"read"` // RFC 3339
	InstanceView           *InstanceHealth  `json:"instanceView,omitempty" azure:"read"`
	VirtualMachineScaleSet *azure.Reference `json:"virtualMachineScaleSet,omitempty" azure:"read"`
}

// InstanceHealth is the instance view of a machine with its extensions.
type InstanceHealth struct {
	Statuses   []HealthStatus    `json:"statuses,omitempty" azure:"positional"`
	Extensions []ExtensionHealth `json:"extensions,omitempty" azure:"key=name"`
}

// ExtensionHealth is the state of an extension of a machine.
type ExtensionHealth struct {
	Name string `json:"name,omitempty"`
	// Type is the publisher and the type, as "Microsoft.Azure.Extensions.CustomScript".
	Type     string         `json:"type,omitempty"`
	Statuses []HealthStatus `json:"statuses,omitempty" azure:"positional"`
}

// HealthStatus is one state, as "PowerState/running". Its level is "Info", "Warning" or "Error".
type HealthStatus struct {
	Code    string `json:"code,omitempty"`
	Level   string `json:"level,omitempty"`
	Message string `json:"message,omitempty"`
}
