package share

import (
	"cmp"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Zone returns the private DNS zone of file servers.
func (r Request) Zone() azure.ID {
	suffix := cmp.Or(r.EndpointSuffix, r.Cluster.Suffix, "core.windows.net")
	return r.networkGroup(r.ZoneGroup).Resource(network.PrivateZones, "privatelink.file."+suffix)
}

// link returns the link of the zone with the nodes' network.
func (r Request) link() azure.ID {
	return r.Zone().Child("virtualNetworkLinks", cmp.Or(r.VNetLink, r.Network().Name()+"-vnetlink"))
}

// endpoint returns the private endpoint of an account.
func (r Request) endpoint(account azure.ID) azure.ID {
	return r.networkGroup("").Resource(network.PrivateEndpoints, account.Name()+"-pvtendpoint")
}

// EndpointNeeds returns what a snapshot must hold for PrivateEndpoint.
func (r Request) EndpointNeeds(account azure.ID) []azure.ID {
	endpoint := r.endpoint(account)
	if is(r.SkipZone) {
		return []azure.ID{endpoint}
	}
	return []azure.ID{r.Zone(), r.link(), endpoint, endpoint.Child(network.PrivateZoneGroupPart, account.Name()+"-dnszonegroup")}
}

// PrivateEndpoint returns the private endpoint of an account with its name in DNS, unless the class leaves DNS to other
// programs. Resources that exist stay as they are.
func (r Request) PrivateEndpoint(account azure.ID, have plan.Snapshot) (plan.Graph, error) {
	var g plan.Graph
	no := false
	zone, link, endpoint := r.Zone(), r.link(), r.endpoint(account)
	names := endpoint.Child(network.PrivateZoneGroupPart, account.Name()+"-dnszonegroup")
	why := "private endpoint of storage account " + account.Name()
	const global = "global"
	nodes := []plan.Node{
		plan.Wanted(azure.Resource[network.PrivateZone]{ID: zone, Location: global}, why),
		plan.Wanted(azure.Resource[network.PrivateZoneLink]{ID: link, Location: global, Properties: network.PrivateZoneLink{
			VirtualNetwork: azure.Reference{ID: r.Network()}, RegistrationEnabled: &no,
		}}, why),
		plan.Wanted(azure.Resource[network.PrivateEndpoint]{ID: endpoint, Location: r.region(), Properties: network.PrivateEndpoint{
			Subnet: azure.Reference{ID: r.Network().Child("subnets", cmp.Or(r.Subnet, r.Cluster.Subnet))},
			Connections: []azure.Child[network.LinkConnection]{{
				Name: account.Name() + "-pvtsvcconn", Properties: network.LinkConnection{Service: account, Groups: []string{"file"}},
			}},
		}}, why),
		plan.Wanted(azure.Resource[network.PrivateZoneGroup]{ID: names, Properties: network.PrivateZoneGroup{
			Zones: []network.PrivateZoneConfig{{Name: zone.Name(), Properties: network.PrivateZoneConfigOf{Zone: zone}}},
		}}, why),
	}
	nodes[1].After, nodes[3].After = []azure.ID{zone}, []azure.ID{zone, endpoint}
	if is(r.SkipZone) {
		nodes = nodes[2:3] // the endpoint alone
	}
	for _, n := range nodes {
		if _, exists := have.Get(n.ID); exists {
			continue
		}
		if err := g.Add(n); err != nil {
			return g, err
		}
	}
	return g, nil
}
