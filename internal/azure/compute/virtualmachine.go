package compute

import "kaz/internal/azure"

// VirtualMachine is the properties of a machine that is no instance of a Uniform scale set. It has the fields that
// show where the machine belongs.
type VirtualMachine struct {
	VirtualMachineScaleSet *azure.Reference `json:"virtualMachineScaleSet,omitempty" azure:"read"`
	AvailabilitySet        *azure.Reference `json:"availabilitySet,omitempty" azure:"read"`
}
