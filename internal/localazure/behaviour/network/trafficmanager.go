package network

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const trafficType = "Microsoft.Network/trafficManagerProfiles"

// endpointKinds are the types of the endpoints of a traffic manager profile.
var endpointKinds = []string{"azureEndpoints", "externalEndpoints", "nestedEndpoints"}

// trafficManagerTypes are the profiles of Traffic Manager and their endpoints. A profile shows its endpoints. A write of the profile
// writes them.
func trafficManagerTypes() []behaviour.Type {
	style := behaviour.Plain("Microsoft.Network Traffic Manager")
	tagged := style
	tagged.EmptyTags = true
	profiles := behaviour.Type{
		Name: trafficType, Style: tagged, Where: behaviour.Global, NoState: true,
		Fill:   fillProfile,
		Settle: writeEndpoints,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			all := []any{}
			for _, kind := range endpointKinds {
				for _, endpoint := range c.List(c.ID, trafficType+"/"+kind) {
					all = append(all, behaviour.Clone(endpoint))
				}
			}
			behaviour.Set(view, "properties.endpoints", all)
		},
	}
	types := []behaviour.Type{profiles}
	for _, kind := range endpointKinds {
		types = append(types, behaviour.Type{Name: trafficType + "/" + kind, Style: style, NoState: true, Fill: fillEndpoint})
	}
	return types
}

func fillProfile(c *behaviour.Call) error {
	relative := behaviour.Text(c.Doc, "properties.dnsConfig.relativeName")
	if relative == "" {
		return behaviour.Invalid("BadRequest", "The property 'dnsConfig.relativeName' of profile '%s' is missing.", c.ID.Name())
	}
	for id, doc := range behaviour.Everywhere(c.World, trafficType) {
		if !id.Equal(c.ID) && strings.EqualFold(behaviour.Text(doc, "properties.dnsConfig.relativeName"), relative) {
			return behaviour.Conflict("Conflict", "Domain name %s.trafficmanager.net already exists. Please choose a different DNS prefix.",
				relative)
		}
	}
	behaviour.Set(c.Doc, "properties.dnsConfig.fqdn", relative+".trafficmanager.net")
	status := "Inactive"
	if len(behaviour.Array(c.Doc, "properties.endpoints")) > 0 {
		status = "CheckingEndpoints"
	}
	behaviour.Set(c.Doc, "properties.monitorConfig.profileMonitorStatus", status)
	return nil
}

// writeEndpoints stores the endpoints of a profile's document as resources, and deletes the endpoints that it leaves out.
func writeEndpoints(c *behaviour.Call) error {
	var kept []azure.ID
	for _, endpoint := range behaviour.Objects(c.Doc, "properties.endpoints") {
		kind, name := behaviour.Text(endpoint, "type"), behaviour.Text(endpoint, "name")
		kind = kind[strings.LastIndexByte(kind, '/')+1:]
		i := slices.IndexFunc(endpointKinds, func(k string) bool { return strings.EqualFold(k, kind) })
		if i < 0 || name == "" || strings.Contains(name, "/") {
			return behaviour.Invalid("BadRequest", "The endpoint '%s' of profile '%s' has no valid name and type.", name, c.ID.Name())
		}
		id := c.ID.Child(endpointKinds[i], name)
		if err := c.Apply(behaviour.Itself(), id, endpoint); err != nil {
			return err
		}
		kept = append(kept, id)
	}
	if behaviour.At(c.Doc, "properties.endpoints") == nil {
		return nil
	}
	for _, kind := range endpointKinds {
		for id := range c.List(c.ID, trafficType+"/"+kind) {
			if !slices.ContainsFunc(kept, id.Equal) {
				c.Delete(id)
			}
		}
	}
	behaviour.Remove(c.Doc, "properties.endpoints") // they are resources of their own
	return nil
}

func fillEndpoint(c *behaviour.Call) error {
	others := 0
	for _, kind := range endpointKinds {
		for id := range c.List(c.ID.Parent(), trafficType+"/"+kind) {
			if !id.Equal(c.ID) {
				others++
			}
		}
	}
	behaviour.Default(c.Doc, "properties.priority", others+1)
	target := azure.ID(behaviour.Text(c.Doc, "properties.targetResourceId"))
	if doc, ok := c.Get(target); ok && behaviour.Text(c.Doc, "properties.target") == "" {
		for _, path := range []string{"properties.dnsSettings.fqdn", "properties.dnsConfig.fqdn"} {
			if fqdn := behaviour.Text(doc, path); fqdn != "" {
				behaviour.Set(c.Doc, "properties.target", fqdn)
			}
		}
	}
	return nil
}

// trafficManagerRoutes answers whether a DNS name of Traffic Manager is free.
func trafficManagerRoutes() []behaviour.Route {
	do := func(c *behaviour.Call) (behaviour.Reply, error) {
		name := behaviour.Text(c.Body, "name")
		body := behaviour.Object{"name": name, "type": trafficType, "nameAvailable": true}
		for _, doc := range behaviour.Everywhere(c.World, trafficType) {
			if strings.EqualFold(behaviour.Text(doc, "properties.dnsConfig.relativeName"), name) {
				body["nameAvailable"], body["reason"] = false, "AlreadyExists"
				body["message"] = "Domain name " + name + ".trafficmanager.net already exists. Please choose a different DNS prefix."
			}
		}
		return behaviour.Reply{Status: 200, Body: body}, nil
	}
	return []behaviour.Route{
		{Method: "POST", Pattern: "/providers/Microsoft.Network/checkTrafficManagerNameAvailability", Do: do},
		{Method: "POST", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Network/checkTrafficManagerNameAvailabilityV2", Do: do,
			Permission: "Microsoft.Network/checkTrafficManagerNameAvailabilityV2/action"},
	}
}
