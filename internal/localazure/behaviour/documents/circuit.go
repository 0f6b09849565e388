package documents

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// joinCircuit writes what a cross connection has of its circuit, and tells the circuit how far its provider is.
func joinCircuit(c *behaviour.Call) error {
	id := azure.ID(behaviour.Text(c.Doc, "properties.expressRouteCircuit.id"))
	circuit, there := c.Get(id)
	if !there {
		return nil
	}
	for _, name := range []string{"bandwidthInMbps", "peeringLocation"} {
		if value := behaviour.At(circuit, "properties.serviceProviderProperties."+name); value != nil {
			behaviour.Set(c.Doc, "properties."+name, value)
		}
	}
	state := behaviour.Text(c.Doc, "properties.serviceProviderProvisioningState")
	if state != behaviour.Text(circuit, "properties.serviceProviderProvisioningState") {
		c.Edit(id, func(doc behaviour.Object) { behaviour.Set(doc, "properties.serviceProviderProvisioningState", state) })
	}
	return nil
}
