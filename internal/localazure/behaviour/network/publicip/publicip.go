// Package publicip has the behaviour of public IP addresses and prefixes. Layer L2.
package publicip

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type { return []behaviour.Type{publicIPAddresses(), publicIPPrefixes()} }

// Routes returns the requests of this package that are not to a resource.
func Routes() []behaviour.Route { return []behaviour.Route{domainNameAvailability()} }
