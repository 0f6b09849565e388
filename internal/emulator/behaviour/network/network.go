// Package network has the behaviour of Microsoft.Network. Layer L2.
package network

import "kaz/internal/emulator/behaviour"

// Provider is Microsoft.Network.
func Provider() behaviour.Provider {
	return behaviour.Provider{Types: []behaviour.Type{routeTables(), routes(), publicIPAddresses()}}
}

// waiting is the network style with the Retry-After of a type's writes.
func waiting(first, later int) behaviour.Style {
	s := behaviour.Network()
	s.Otherwise = behaviour.Wait{First: first, Later: later}
	return s
}

// guid gives a new resource the resourceGuid that all network resources have.
func guid(c *behaviour.Call) {
	if behaviour.At(c.Doc, "properties.resourceGuid") == nil {
		behaviour.Set(c.Doc, "properties.resourceGuid", c.GUID())
	}
}
