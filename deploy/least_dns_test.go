package deploy_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

const (
	publicZone  = testkit.Group + "/providers/" + network.DNSZones + "/example.com"
	privateZone = testkit.Group + "/providers/" + network.PrivateDNSZones + "/corp.internal"
	followedIP  = testkit.Group + "/providers/Microsoft.Network/publicIPAddresses/gate"
)

// recordTargets has a target for each type of records.
var recordTargets = map[string]string{
	"A": "10.0.0.1", "AAAA": "2001:db8::1", "CAA": `0 issue "ca.example.net"`, "CNAME": "lb.example.net", "MX": "1 mail.example.net",
	"NS": "ns1.example.net", "PTR": "h.example.net", "SRV": "1 1 1 h.example.net", "TXT": "text",
}

// recordActions returns the actions on the records of a zone with a verb.
func recordActions(zone, verb string, types ...string) (all []string) {
	for _, t := range types {
		all = append(all, networkActions+zone+"/"+t+"/"+verb)
	}
	return all
}

// TestLeastPrivilegeOfRecords checks that every story of the external-dns-webhook succeeds with exactly its role, and that each action is
// necessary. The actions on all types of records are taken away together: each of them must be refused.
func TestLeastPrivilegeOfRecords(t *testing.T) {
	const role = "external-dns-webhook"
	a := testkit.NewAzure(t, core.Options{}, 0)
	a.Put(publicZone, map[string]any{"location": "global"})
	a.Put(privateZone, map[string]any{"location": "global"})
	a.Put(followedIP, map[string]any{
		"location": testkit.Location, "sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"publicIPAllocationMethod": "Static"},
	})
	state := save(t, a)
	private := []string{"A", "AAAA", "CNAME", "MX", "PTR", "SRV", "TXT"}
	public := append([]string{"CAA", "NS"}, private...)
	taken := map[string]bool{}
	for _, s := range []struct {
		name  string
		tell  func(*cluster) error
		needs [][]string
	}{
		{"records of a public zone", (*cluster).writePublicRecords, [][]string{
			nil, {networkActions + "dnszones/read"}, {networkActions + "dnszones/recordsets/read"},
			recordActions("dnszones", "read", public...), recordActions("dnszones", "write", public...), recordActions("dnszones", "delete", public...),
		}},
		{"records of a private zone", (*cluster).writePrivateRecords, [][]string{
			nil, {networkActions + "privateDnsZones/read"}, {networkActions + "privateDnsZones/ALL/read"},
			recordActions("privateDnsZones", "read", private...), recordActions("privateDnsZones", "write", private...),
			recordActions("privateDnsZones", "delete", private...),
		}},
		{"an alias", (*cluster).writeAlias, [][]string{nil, {networkActions + "publicIPAddresses/join/action"}}},
		{"a name of Traffic Manager", (*cluster).routeName, [][]string{
			nil, {networkActions + "trafficManagerProfiles/read"}, {networkActions + "trafficManagerProfiles/write"},
			{networkActions + "trafficManagerProfiles/delete"}, {networkActions + "trafficManagerProfiles/externalEndpoints/read"},
			{networkActions + "trafficManagerProfiles/externalEndpoints/write"}, {networkActions + "trafficManagerProfiles/externalEndpoints/delete"},
		}},
	} {
		for _, without := range s.needs {
			t.Run(s.name+" without "+strings.ReplaceAll(strings.Join(without, " "), "/", "."), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := grantedCluster(t, state, slices.DeleteFunc(roleActions(role), func(a string) bool { return slices.Contains(without, a) }), nil)
					err := s.tell(c)
					slices.Sort(without)
					if refused := c.way.list(); !slices.Equal(refused, without) || (err == nil) != (len(without) == 0) {
						t.Errorf("it was refused %q; %v", refused, err)
					}
				})
			})
			for _, action := range without {
				taken[action] = true
			}
		}
	}
	for _, action := range roleActions(role) {
		if !taken[action] {
			t.Errorf("role %s: action %s is not needed by any story", role, action)
		}
	}
}

func (c *cluster) writePublicRecords() error { return c.writeRecords(publicZone) }

func (c *cluster) writePrivateRecords() error { return c.writeRecords(privateZone) }

// writeRecords creates a record of each type in a zone, each after another writer was faster, and deletes them.
func (c *cluster) writeRecords(zone azure.ID) error {
	var all []records.Endpoint
	var faults []core.Fault
	for t, target := range recordTargets {
		if zone == privateZone && (t == "CAA" || t == "NS") {
			continue
		}
		all = append(all, records.Endpoint{Name: t + "." + zone.Name(), Type: t, Targets: []string{target}})
		faults = append(faults, core.Fault{Method: "PUT", Type: zone.Type() + "/" + t, Fault: core.FaultError, Status: 412, Times: 1})
	}
	if err := c.azur.SetFaults(faults); err != nil {
		return err
	}
	p := c.records(zone)
	return errors.Join(causes(p.Apply(c.t.Context(), records.Changes{Create: all})), causes(p.Apply(c.t.Context(), records.Changes{Delete: all})))
}

func (c *cluster) writeAlias() error {
	alias := records.Endpoint{
		Name: "gate.example.com", Type: "A", ProviderSpecific: []records.Property{{Name: records.AliasProperty, Value: string(followedIP)}},
	}
	return causes(c.records(publicZone).Apply(c.t.Context(), records.Changes{Create: []records.Endpoint{alias}}))
}

// routeName makes a name that Traffic Manager answers, keeps it, and deletes it.
func (c *cluster) routeName() error {
	name := records.Endpoint{
		Name: "gate.example.com", Type: "A", Targets: []string{"20.0.0.1"}, SetIdentifier: "west",
		ProviderSpecific: []records.Property{{Name: "webhook/policy", Value: "weighted"}, {Name: "webhook/probe", Value: "TCP:443"}},
	}
	p := c.records(publicZone)
	return errors.Join(causes(p.Apply(c.t.Context(), records.Changes{Create: []records.Endpoint{name}})), p.NewKeeper(nil).Round(c.t.Context()),
		causes(p.Apply(c.t.Context(), records.Changes{Delete: []records.Endpoint{name}})))
}

// records returns a provider for the type of zones that a zone has.
func (c *cluster) records(zone azure.ID) *dns.Provider {
	return dns.New(dns.Config{
		Azure:   c.client,
		Zones:   dns.Zones{Groups: []azure.ID{testkit.Group}, Public: zone == publicZone, Private: zone == privateZone},
		Options: records.Options{DefaultTTL: dns.DefaultTTL, Cluster: "west"}, Lease: dns.Lease, Refresh: dns.Refresh, Deadline: dns.Deadline, Parallel: 1,
		PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites, Log: slog.New(slog.DiscardHandler),
	})
}

// causes returns the causes of an error beside it.
func causes(err error) error {
	if incomplete, ok := errors.AsType[*dns.IncompleteError](err); ok {
		return errors.Join(append([]error{err}, incomplete.Causes...)...)
	}
	return err
}
