package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/localazure/core"
)

// outbound is a cluster with outbound traffic through a load balancer.
func outbound(t *testing.T, change func(*definition.Definition)) cluster.Plan {
	t.Helper()
	return example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Network.Outbound.Type = "LoadBalancer"
		d.Cluster.Spec.Network.APIServer.AllowedSources = []string{"192.0.2.0/24"}
		if change != nil {
			change(d)
		}
	}, "dev.yaml")
}

// TestOutboundLoadBalancer checks that later deployments keep the Services that the cloud-controller-manager has at the load
// balancer of outbound traffic, and change what the definition changes.
func TestOutboundLoadBalancer(t *testing.T) {
	l := newLab(t, core.Options{})
	p := outbound(t, nil)
	l.deploy(p)
	group := p.Names.Group()
	address, id := group.Resource(network.PublicIPAddresses, "dev-a1"), group.Resource(network.LoadBalancers, p.Names.OutboundBalancer())
	err := l.write(address, `{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	if err != nil {
		t.Fatal(err)
	}
	have, err := l.client.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	served := strings.Replace(string(have), `"frontendIPConfigurations":[`,
		fmt.Sprintf(`"frontendIPConfigurations":[{"name":"a1","properties":{"publicIPAddress":{"id":%q}}},`, address), 1)
	served = strings.Replace(served, `"loadBalancingRules":[]`, fmt.Sprintf(`"loadBalancingRules":[{"name":"a1-TCP-80","properties":{
		"protocol":"Tcp","frontendPort":80,"backendPort":80,"disableOutboundSnat":true,"frontendIPConfiguration":{"id":%q},
		"backendAddressPool":{"id":%q}}}]`, id.Child("frontendIPConfigurations", "a1"), id.Child(network.BackendAddressPools, "dev")), 1)
	served = strings.Replace(served, `"backendAddressPools":[`, `"backendAddressPools":[{"name":"dev"},`, 1)
	if err := l.write(id, served); err != nil {
		t.Fatal(err)
	}
	before := l.document(id)

	l.requests()
	l.deploy(outbound(t, func(d *definition.Definition) {
		d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"} // changes every unit
	}))
	after := l.document(id)
	gone, more := missing("", before["properties"], after["properties"]), missing("", after["properties"], before["properties"])
	if tags := after["tags"].(map[string]any); len(gone)+len(more) > 0 || tags["a"] != "b" {
		t.Errorf("a deployment with other tags changed the load balancer: lost %v, new %v, tags %v", gone, more, tags)
	}

	l.requests()
	l.deploy(outbound(t, func(d *definition.Definition) {
		d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"}
		d.Cluster.Spec.Network.Outbound.PublicIPs, d.Cluster.Spec.Network.Outbound.IdleTimeoutMinutes = 2, 30
	}))
	writes, _ := l.requests()
	if want := []string{"PUT definition", "PUT dev-api-lb", "PUT kaz-dev", "PUT definition", "PUT dev-out-lb"}; !slices.Equal(writes, want) {
		t.Errorf("wrote %v, want %v", writes, want)
	}
	doc, err := l.client.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	lb, err := azure.Decode[network.LoadBalancer](doc)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range lb.Properties.FrontendIPConfigurations {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a1", "out-0", "out-1"}) || len(lb.Properties.LoadBalancingRules) != 1 ||
		!strings.Contains(string(doc), `"idleTimeoutInMinutes":30`) {
		t.Errorf("the load balancer is %s", doc)
	}
}

// TestOutboundAddressesReachTheAPI checks that the security group of the API server lets in the addresses from which members and
// nodes come.
func TestOutboundAddressesReachTheAPI(t *testing.T) {
	l := newLab(t, core.Options{})
	p := outbound(t, nil)
	l.deploy(p)
	group := p.Names.Group()
	rules, err := l.client.Get(t.Context(), group.Resource(network.SecurityGroups, "dev-cp-nsg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.Names.APIAddress(), p.Names.OutboundAddress(0)} {
		doc, err := l.client.Get(t.Context(), group.Resource(network.PublicIPAddresses, name))
		if err != nil {
			t.Fatal(err)
		}
		ip, err := azure.Decode[network.PublicIPAddress](doc)
		if err != nil || !strings.Contains(string(rules), `"`+ip.Properties.IPAddress+`"`) {
			t.Errorf("the rules do not name %s, %q: %v\n%s", name, ip.Properties.IPAddress, err, rules)
		}
	}
}
