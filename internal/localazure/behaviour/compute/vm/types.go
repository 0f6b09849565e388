// Package vm has the behaviour of virtual machines, their extensions and availability sets. It also has what instances of
// scale sets share with machines: power states, instance views, image and operating system. Layer L2.
package vm

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return []behaviour.Type{virtualMachines(), machineExtensions(), availabilitySets(), runCommands(MachineCommandType),
		runCommands(InstanceCommandType)}
}
