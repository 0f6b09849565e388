package compute

import "kaz/internal/azure"

// ScaleSet is the properties of a virtual machine scale set: the model of its
// instances.
type ScaleSet struct {
	ProvisioningState     string   `json:"provisioningState,omitempty" azure:"read"`
	OrchestrationMode     string   `json:"orchestrationMode,omitempty" azure:"read"`
	VirtualMachineProfile *Profile `json:"virtualMachineProfile,omitempty"`
}

// Profile is what a scale set makes its instances like.
type Profile struct {
	OSProfile      *OSProfile      `json:"osProfile,omitempty" azure:"read"`
	StorageProfile *StorageProfile `json:"storageProfile,omitempty" azure:"read"`
	NetworkProfile *NetworkProfile `json:"networkProfile,omitempty"`
}

// StorageProfile tells which system runs on the instances.
type StorageProfile struct {
	OSDisk         *OSDisk         `json:"osDisk,omitempty"`
	ImageReference *ImageReference `json:"imageReference,omitempty"`
}

// OSDisk is the disk that a machine starts from.
type OSDisk struct {
	OSType string `json:"osType,omitempty"`
}

// ImageReference is what a machine's disk was made from.
type ImageReference struct {
	ID azure.ID `json:"id,omitempty"`
}

// OSProfile names the instances' computers.
type OSProfile struct {
	ComputerName       string `json:"computerName,omitempty"`
	ComputerNamePrefix string `json:"computerNamePrefix,omitempty"`
}

// NetworkProfile is the network interfaces that each instance gets.
type NetworkProfile struct {
	NetworkInterfaceConfigurations []Named[InterfaceConfiguration] `json:"networkInterfaceConfigurations,omitempty"`
}

// Named is an element of a scale set's model: it has a name and no identity of
// its own.
type Named[P any] struct {
	Name       string `json:"name" azure:"key,fold"`
	Properties P      `json:"properties"`
}

// InterfaceConfiguration is one network interface of the model.
type InterfaceConfiguration struct {
	Primary          *bool                    `json:"primary,omitempty"`
	IPConfigurations []Named[IPConfiguration] `json:"ipConfigurations,omitempty"`
}

// IPConfiguration is one address of an interface of the model.
type IPConfiguration struct {
	Primary                         *bool             `json:"primary,omitempty"`
	PrivateIPAddressVersion         string            `json:"privateIPAddressVersion,omitempty" azure:"fold"`
	LoadBalancerBackendAddressPools []azure.Reference `json:"loadBalancerBackendAddressPools,omitempty"`
}

// Instance is the properties of a machine. The machine is an instance of a Uniform scale set, or a virtual machine
// with a resource of its own.
type Instance struct {
	VMID                        string           `json:"vmId,omitempty" azure:"read"`
	ProvisioningState           string           `json:"provisioningState,omitempty" azure:"read"`
	OSProfile                   *OSProfile       `json:"osProfile,omitempty" azure:"read"`
	InstanceView                *InstanceView    `json:"instanceView,omitempty" azure:"read"`
	NetworkProfile              *InstanceNetwork `json:"networkProfile,omitempty" azure:"read"`
	NetworkProfileConfiguration *NetworkProfile  `json:"networkProfileConfiguration,omitempty"`
	HardwareProfile             *HardwareProfile `json:"hardwareProfile,omitempty" azure:"read"`
	// VirtualMachineScaleSet is the Flexible scale set that a virtual machine is in.
	VirtualMachineScaleSet *azure.Reference `json:"virtualMachineScaleSet,omitempty" azure:"read"`
}

// InstanceNetwork names the network interfaces that an instance has.
type InstanceNetwork struct {
	NetworkInterfaces []InterfaceReference `json:"networkInterfaces,omitempty"`
}

// InterfaceReference names a network interface of a machine.
type InterfaceReference struct {
	ID         azure.ID `json:"id"`
	Properties struct {
		Primary *bool `json:"primary,omitempty"`
	} `json:"properties"`
}

// HardwareProfile is the size of a machine.
type HardwareProfile struct {
	VMSize string `json:"vmSize,omitempty"`
}

// InstanceView is what Azure sees of a running machine. It is there only in what
// was read with the expansion "instanceView".
type InstanceView struct {
	PlatformFaultDomain *int32           `json:"platformFaultDomain,omitempty"`
	Statuses            []InstanceStatus `json:"statuses,omitempty"`
}

// InstanceStatus is one of a machine's states: "PowerState/running".
type InstanceStatus struct {
	Code string `json:"code"`
}
