// Package security has the behaviour of network security groups, application security groups and IP groups. Layer L2.
package security

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return []behaviour.Type{
		securityGroups(), securityRules(), defaultSecurityRules(), applicationSecurityGroups(), ipGroups(),
	}
}
