// Package compute holds the property structs of Microsoft.Compute: of each
// resource the fields that kaz reads or owns, tagged for azure.Overlay. Layer L0:
// data only.
package compute

// Full types.
const (
	ScaleSets         = "Microsoft.Compute/virtualMachineScaleSets"
	ScaleSetInstances = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
	VirtualMachines   = "Microsoft.Compute/virtualMachines"
)
