package network

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// polledAction is an operation that answers with its output, and changes nothing.
func polledAction(output func(c *behaviour.Call) (any, error)) behaviour.Action {
	return behaviour.Action{Status: http.StatusAccepted, Long: true, Busy: "-", Headers: behaviour.AsyncOperation | behaviour.Location,
		Settle: output}
}

// addressProtection tells whether a public address is protected against DDoS.
func addressProtection(c *behaviour.Call) (any, error) {
	return protection(c.World, c.ID, c.Doc, ""), nil
}

// protection is the state of a public address: its own plan counts, or the plan of the network that it is used in.
func protection(w behaviour.World, id azure.ID, address behaviour.Object, networkPlan azure.ID) behaviour.Object {
	mode := behaviour.Text(address, "properties.ddosSettings.protectionMode")
	plan := behaviour.RefID(address, "properties.ddosSettings.ddosProtectionPlan")
	if mode == "" || strings.EqualFold(mode, "VirtualNetworkInherited") {
		plan = networkPlan
	}
	status := behaviour.Object{"publicIpAddressId": string(id), "isWorkloadProtected": "False"}
	if ip := behaviour.Text(address, "properties.ipAddress"); ip != "" {
		status["publicIpAddress"] = ip
	}
	if _, there := w.Get(plan); there {
		status["ddosProtectionPlanId"] = string(plan)
	}
	if strings.EqualFold(mode, "Enabled") || status["ddosProtectionPlanId"] != nil && !strings.EqualFold(mode, "Disabled") {
		status["isWorkloadProtected"] = "True"
	}
	return status
}

// networkProtection tells which public addresses of a virtual network are protected: those of the interfaces in its subnets.
func networkProtection(c *behaviour.Call) (any, error) {
	plan := azure.ID("")
	if behaviour.Bool(c.Doc, "properties.enableDdosProtection") {
		plan = behaviour.RefID(c.Doc, "properties.ddosProtectionPlan")
	}
	all := []any{}
	for _, subnet := range behaviour.Objects(c.Doc, "properties.subnets") {
		id := c.ID.Child("subnets", behaviour.Text(subnet, "name"))
		for _, user := range schema.ReferrersAt(c.World, id, "properties.ipConfigurations.properties.subnet") {
			configuration, _ := c.Get(user.Object)
			address := behaviour.RefID(configuration, "properties.publicIPAddress")
			if doc, there := c.Get(address); there {
				all = append(all, protection(c.World, address, doc, plan))
			}
		}
	}
	return behaviour.Object{"value": all}, nil
}

// serverConfigurations are the configurations that the gateways for clients in the hubs of a virtual WAN use.
func serverConfigurations(c *behaviour.Call) (any, error) {
	ids, seen := []any{}, map[string]bool{}
	for _, gateway := range behaviour.Everywhere(c, schema.Namespace+"p2svpnGateways") {
		hub, _ := c.Get(behaviour.RefID(gateway, "properties.virtualHub"))
		configuration := behaviour.RefID(gateway, "properties.vpnServerConfiguration")
		if behaviour.RefID(hub, "properties.virtualWan").Equal(c.ID) && configuration != "" && !seen[configuration.Key()] {
			seen[configuration.Key()] = true
			ids = append(ids, string(configuration))
		}
	}
	return behaviour.Object{"vpnServerConfigurationResourceIds": ids}, nil
}

// keepLinks keeps both links of a port that a request leaves out.
func keepLinks(c *behaviour.Call) error {
	const path = "properties.links"
	if behaviour.At(c.Doc, path) == nil {
		return nil // the table has both
	}
	for _, name := range []string{"link1", "link2"} {
		if behaviour.Named(c.Doc, path, name) != nil {
			continue
		}
		link := behaviour.Clone(behaviour.Named(c.Old, path, name))
		if link == nil {
			link = behaviour.Object{"name": name, "properties": behaviour.Object{}}
		}
		behaviour.Set(c.Doc, path, append(behaviour.Array(c.Doc, path), any(link)))
	}
	return nil
}

// fillCircuit writes what a circuit on a port of its own has: no provider provisions it. A key says that the port's owner authorized it.
func fillCircuit(c *behaviour.Call) error {
	if behaviour.RefID(c.Doc, "properties.expressRoutePort") == "" {
		return nil
	}
	behaviour.Set(c.Doc, "properties.serviceProviderProvisioningState", "Provisioned")
	if behaviour.Text(c.Doc, "properties.authorizationKey") != "" {
		behaviour.Set(c.Doc, "properties.authorizationStatus", "Enabled")
	}
	return nil
}
