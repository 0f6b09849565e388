// Package scaleset has the behaviour of scale sets, of their instances, and of the instances' interfaces and
// addresses. Layer L2.
package scaleset

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return []behaviour.Type{
		scaleSets(), scaleSetExtensions(), scaleSetInterfaces(), scaleSetPublicIPs(),
		rollingUpgrades(), instances(), instanceInterfaces(), instanceAddresses(), instancePublicIPs(),
	}
}
