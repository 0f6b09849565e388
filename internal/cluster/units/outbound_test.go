package units

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
)

// TestOutbound checks which parts of a load balancer the outbound traffic of a definition changes. The parts of Services stay.
func TestOutbound(t *testing.T) {
	const lb = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/dev-out-lb"
	const have = `{"id":"` + lb + `","etag":"1","properties":{"frontendIPConfigurations":[
		{"name":"out-0","properties":{"publicIPAddress":{"id":"/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/publicIPAddresses/dev-out-pip-0"}}},
		{"name":"out-1","properties":{"publicIPAddress":{"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/dev-out-pip-1"}}},
		{"name":"a1","properties":{"publicIPAddress":{"id":"other"}}}],
		"backendAddressPools":[{"name":"nodes"},{"name":"dev"}],
		"loadBalancingRules":[{"name":"a1-TCP-80","properties":{"frontendIPConfiguration":{"id":"` + lb + `/frontendIPConfigurations/USED"}}}],
		"outboundRules":[{"name":"outbound","properties":{"frontendIPConfigurations":[
			{"id":"` + lb + `/frontendIPConfigurations/out-1"},{"id":"` + lb + `/frontendIPConfigurations/out-0"}],
			"backendAddressPool":{"id":"` + lb + `/backendAddressPools/nodes"},"protocol":"All","allocatedOutboundPorts":1024,"idleTimeoutInMinutes":4}}]}}`
	for name, c := range map[string]struct {
		have         string
		ips, minutes int
		want         []string
		frontends    string
	}{
		"it agrees": {have: have, ips: 2, minutes: 4},
		"another timeout": {have: have, ips: 2, minutes: 30, want: []string{"rule outbound with 2 addresses and a timeout of 30 minutes"},
			frontends: "out-0 out-1 a1"},
		"one more address": {have: have, ips: 3, minutes: 4, want: []string{"frontend out-2 with address dev-out-pip-2",
			"rule outbound with 3 addresses and a timeout of 4 minutes"}, frontends: "out-0 out-1 a1 out-2"},
		"one address less": {have: have, ips: 1, minutes: 4, want: []string{"rule outbound with 1 addresses and a timeout of 4 minutes",
			"without frontend out-1"}, frontends: "out-0 a1"},
		"one less, which a Service uses": {have: strings.Replace(have, "USED", "OUT-1", 1), ips: 1, minutes: 4,
			want: []string{"rule outbound with 1 addresses and a timeout of 4 minutes"}, frontends: "out-0 out-1 a1"},
		"all parts were removed": {have: `{"id":"` + lb + `","properties":{}}`, ips: 1, minutes: 4, want: []string{
			"frontend out-0 with address dev-out-pip-0", "pool nodes", "rule outbound with 1 addresses and a timeout of 4 minutes"},
			frontends: "out-0"},
	} {
		t.Run(name, func(t *testing.T) {
			var d definition.Cluster
			d.Metadata.Name = "dev"
			d.Spec.Azure.SubscriptionID, d.Spec.Azure.ResourceGroup.Name = "s", "rg"
			d.Spec.Network.Outbound = definition.Outbound{Type: "LoadBalancer", PublicIPs: c.ips, IdleTimeoutMinutes: c.minutes}
			next, changes, err := Outbound(d, azure.Document(c.have))
			if err != nil || !slices.Equal(changes, c.want) {
				t.Fatalf("changes are %q, want %q: %v", changes, c.want, err)
			}
			again, more, err := Outbound(d, next)
			if err != nil || len(more) > 0 || string(again) != string(next) {
				t.Errorf("again the changes are %q: %v", more, err)
			}
			if len(changes) == 0 {
				if string(next) != c.have {
					t.Errorf("without a change it is %s", next)
				}
				return
			}
			var got struct {
				Properties struct {
					FrontendIPConfigurations []struct{ Name string }
					LoadBalancingRules       []any
					OutboundRules            []struct {
						Properties struct{ AllocatedOutboundPorts int }
					}
				}
			}
			if err := json.Unmarshal(next, &got); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range got.Properties.FrontendIPConfigurations {
				names = append(names, f.Name)
			}
			if strings.Join(names, " ") != c.frontends {
				t.Errorf("frontends are %q, want %q", names, c.frontends)
			}
			had := strings.Contains(c.have, "1024")
			if kept := got.Properties.OutboundRules[0].Properties.AllocatedOutboundPorts == 1024; kept != had {
				t.Errorf("the ports of the rule and the rules of Services are %+v", got)
			}
		})
	}
}
