// Package compute composes the behaviour of Microsoft.Compute from its packages, and adds SSH keys, the catalogue of
// SKUs and the usages. Layer L2.
package compute

import (
	"slices"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/manageddisk"
	"kaz/internal/emulator/behaviour/compute/scaleset"
	"kaz/internal/emulator/behaviour/compute/vm"
)

// Provider is Microsoft.Compute.
func Provider() behaviour.Provider {
	return behaviour.Provider{
		Types:  slices.Concat(scaleset.Types(), vm.Types(), manageddisk.Types(), []behaviour.Type{sshPublicKeys()}),
		Routes: slices.Concat(skuRoutes(), catalogueRoutes()),
	}
}
