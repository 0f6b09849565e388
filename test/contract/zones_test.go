package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/miekg/dns"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/zones"
)

func TestZoneLives(t *testing.T) {
	lives(t, []lifecase{
		{"private zone", privateZones().run},
		{"link of a private zone", zoneLinks().run},
		{"records of a private zone", privateRecords().run},
		{"public zone", publicZones().run},
		{"records of a public zone", publicRecords().run},
	})
}

func privateZones() life[armprivatedns.PrivateZone] {
	c := func(a *local) *armprivatedns.PrivateZonesClient {
		return clients(a, armprivatedns.NewClientFactory).NewPrivateZonesClient()
	}
	return life[armprivatedns.PrivateZone]{
		names: [2]string{"one.example", "two.example"},
		want:  func(string) armprivatedns.PrivateZone { return armprivatedns.PrivateZone{Location: new("global")} },
		put: func(a *local, name string, r armprivatedns.PrivateZone) (armprivatedns.PrivateZone, error) {
			got, err := ended(c(a).BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.PrivateZone, err
		},
		get: func(a *local, name string) (armprivatedns.PrivateZone, error) {
			got, err := c(a).Get(a.Context(), group, name, nil)
			return got.PrivateZone, err
		},
		list: func(a *local) ([]*armprivatedns.PrivateZone, error) {
			return every(c(a).NewListByResourceGroupPager(group, nil),
				func(p armprivatedns.PrivateZonesClientListByResourceGroupResponse) []*armprivatedns.PrivateZone {
					return p.Value
				})
		},
		remove: func(a *local, name string) error { return gone(c(a).BeginDelete(a.Context(), group, name, nil)) },
		id:     func(r *armprivatedns.PrivateZone) *string { return r.ID },
		change: func(r *armprivatedns.PrivateZone) { r.Tags = tags("judge") },
		changed: func(r *armprivatedns.PrivateZone) bool {
			return tagged(r.Tags, "judge") && *r.Properties.NumberOfRecordSets == 1
		},
	}
}

// givenZone is a private zone and a network to link it with.
func givenZone(a *local) {
	_, err := privateZones().put(a, "one.example", privateZones().want(""))
	a.must(err)
	_, err = virtualNetworks().put(a, "vnet-one", virtualNetwork())
	a.must(err)
	_, err = virtualNetworks().put(a, "vnet-two", virtualNetwork())
	a.must(err)
}

func zoneLinks() life[armprivatedns.VirtualNetworkLink] {
	c := func(a *local) *armprivatedns.VirtualNetworkLinksClient {
		return clients(a, armprivatedns.NewClientFactory).NewVirtualNetworkLinksClient()
	}
	return life[armprivatedns.VirtualNetworkLink]{
		given: givenZone,
		names: [2]string{"one", "two"},
		want: func(name string) armprivatedns.VirtualNetworkLink {
			return armprivatedns.VirtualNetworkLink{Location: new("global"), Properties: &armprivatedns.VirtualNetworkLinkProperties{
				RegistrationEnabled: new(false),
				VirtualNetwork:      &armprivatedns.SubResource{ID: new(string(networkID("virtualNetworks", "vnet-"+name)))}}}
		},
		put: func(a *local, name string, r armprivatedns.VirtualNetworkLink) (armprivatedns.VirtualNetworkLink, error) {
			got, err := ended(c(a).BeginCreateOrUpdate(a.Context(), group, "one.example", name, r, nil))
			return got.VirtualNetworkLink, err
		},
		get: func(a *local, name string) (armprivatedns.VirtualNetworkLink, error) {
			got, err := c(a).Get(a.Context(), group, "one.example", name, nil)
			return got.VirtualNetworkLink, err
		},
		list: func(a *local) ([]*armprivatedns.VirtualNetworkLink, error) {
			return every(c(a).NewListPager(group, "one.example", nil),
				func(p armprivatedns.VirtualNetworkLinksClientListResponse) []*armprivatedns.VirtualNetworkLink {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			return gone(c(a).BeginDelete(a.Context(), group, "one.example", name, nil))
		},
		id:     func(r *armprivatedns.VirtualNetworkLink) *string { return r.ID },
		change: func(r *armprivatedns.VirtualNetworkLink) { r.Tags = tags("judge") },
		changed: func(r *armprivatedns.VirtualNetworkLink) bool {
			return tagged(r.Tags, "judge") && *r.Properties.VirtualNetworkLinkState == armprivatedns.VirtualNetworkLinkStateCompleted
		},
	}
}

func privateRecords() life[armprivatedns.RecordSet] {
	c := func(a *local) *armprivatedns.RecordSetsClient {
		return clients(a, armprivatedns.NewClientFactory).NewRecordSetsClient()
	}
	return life[armprivatedns.RecordSet]{
		given: givenZone,
		names: [2]string{"one", "two"},
		want: func(string) armprivatedns.RecordSet {
			return armprivatedns.RecordSet{Properties: &armprivatedns.RecordSetProperties{TTL: new(int64(300)),
				ARecords: []*armprivatedns.ARecord{{IPv4Address: new("10.1.0.4")}}}}
		},
		put: func(a *local, name string, r armprivatedns.RecordSet) (armprivatedns.RecordSet, error) {
			got, err := c(a).CreateOrUpdate(a.Context(), group, "one.example", armprivatedns.RecordTypeA, name, r, nil)
			return got.RecordSet, err
		},
		get: func(a *local, name string) (armprivatedns.RecordSet, error) {
			got, err := c(a).Get(a.Context(), group, "one.example", armprivatedns.RecordTypeA, name, nil)
			return got.RecordSet, err
		},
		list: func(a *local) ([]*armprivatedns.RecordSet, error) {
			return every(c(a).NewListByTypePager(group, "one.example", armprivatedns.RecordTypeA, nil),
				func(p armprivatedns.RecordSetsClientListByTypeResponse) []*armprivatedns.RecordSet { return p.Value })
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, "one.example", armprivatedns.RecordTypeA, name, nil)
			return err
		},
		id:     func(r *armprivatedns.RecordSet) *string { return r.ID },
		change: func(r *armprivatedns.RecordSet) { r.Properties.TTL = new(int64(60)) },
		changed: func(r *armprivatedns.RecordSet) bool {
			return *r.Properties.TTL == 60 && *r.Properties.Fqdn == "one.one.example."
		},
		absent: "NotFound",
	}
}

func publicZones() life[armdns.Zone] {
	c := func(a *local) *armdns.ZonesClient { return clients(a, armdns.NewClientFactory).NewZonesClient() }
	return life[armdns.Zone]{
		names: [2]string{"one.example", "two.example"},
		want:  func(string) armdns.Zone { return armdns.Zone{Location: new("global")} },
		put: func(a *local, name string, r armdns.Zone) (armdns.Zone, error) {
			got, err := c(a).CreateOrUpdate(a.Context(), group, name, r, nil)
			return got.Zone, err
		},
		get: func(a *local, name string) (armdns.Zone, error) {
			got, err := c(a).Get(a.Context(), group, name, nil)
			return got.Zone, err
		},
		list: func(a *local) ([]*armdns.Zone, error) {
			return every(c(a).NewListByResourceGroupPager(group, nil),
				func(p armdns.ZonesClientListByResourceGroupResponse) []*armdns.Zone { return p.Value })
		},
		remove:  func(a *local, name string) error { return gone(c(a).BeginDelete(a.Context(), group, name, nil)) },
		id:      func(r *armdns.Zone) *string { return r.ID },
		change:  func(r *armdns.Zone) { r.Tags = tags("judge") },
		changed: func(r *armdns.Zone) bool { return tagged(r.Tags, "judge") && len(r.Properties.NameServers) == 4 },
	}
}

func publicRecords() life[armdns.RecordSet] {
	c := func(a *local) *armdns.RecordSetsClient {
		return clients(a, armdns.NewClientFactory).NewRecordSetsClient()
	}
	return life[armdns.RecordSet]{
		given: func(a *local) {
			_, err := publicZones().put(a, "one.example", publicZones().want(""))
			a.must(err)
		},
		names: [2]string{"one", "two"},
		want: func(string) armdns.RecordSet {
			return armdns.RecordSet{Properties: &armdns.RecordSetProperties{TTL: new(int64(300)),
				TxtRecords: []*armdns.TxtRecord{{Value: []*string{new("heritage=kaz")}}}}}
		},
		put: func(a *local, name string, r armdns.RecordSet) (armdns.RecordSet, error) {
			got, err := c(a).CreateOrUpdate(a.Context(), group, "one.example", name, armdns.RecordTypeTXT, r, nil)
			return got.RecordSet, err
		},
		get: func(a *local, name string) (armdns.RecordSet, error) {
			got, err := c(a).Get(a.Context(), group, "one.example", name, armdns.RecordTypeTXT, nil)
			return got.RecordSet, err
		},
		list: func(a *local) ([]*armdns.RecordSet, error) {
			return every(c(a).NewListByTypePager(group, "one.example", armdns.RecordTypeTXT, nil),
				func(p armdns.RecordSetsClientListByTypeResponse) []*armdns.RecordSet { return p.Value })
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, "one.example", name, armdns.RecordTypeTXT, nil)
			return err
		},
		id:      func(r *armdns.RecordSet) *string { return r.ID },
		change:  func(r *armdns.RecordSet) { r.Properties.TTL = new(int64(60)) },
		changed: func(r *armdns.RecordSet) bool { return *r.Properties.TTL == 60 },
		absent:  "NotFound",
	}
}

// Preconditions of records have options in the clients, as ExternalDNS uses them.
func TestRecordPreconditions(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		publicRecords().given(a)
		c := clients(a, armdns.NewClientFactory).NewRecordSetsClient()
		record := publicRecords().want("")
		made, err := c.CreateOrUpdate(a.Context(), group, "one.example", "www", armdns.RecordTypeTXT, record,
			&armdns.RecordSetsClientCreateOrUpdateOptions{IfNoneMatch: new("*")})
		a.must(err)
		_, err = c.CreateOrUpdate(a.Context(), group, "one.example", "www", armdns.RecordTypeTXT, record,
			&armdns.RecordSetsClientCreateOrUpdateOptions{IfNoneMatch: new("*")})
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		_, err = c.CreateOrUpdate(a.Context(), group, "one.example", "www", armdns.RecordTypeTXT, record,
			&armdns.RecordSetsClientCreateOrUpdateOptions{IfMatch: new("00000000-0000-0000-0000-000000000000")})
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		_, err = c.CreateOrUpdate(a.Context(), group, "one.example", "www", armdns.RecordTypeTXT, record,
			&armdns.RecordSetsClientCreateOrUpdateOptions{IfMatch: made.Etag})
		a.must(err)
		all, err := every(c.NewListByDNSZonePager(group, "one.example", nil),
			func(p armdns.RecordSetsClientListByDNSZoneResponse) []*armdns.RecordSet { return p.Value })
		a.must(err)
		if len(all) != 3 {
			a.Errorf("%d record sets in the zone, want NS, SOA and www", len(all))
		}
	})
}

// What the official client writes is answered, and no longer after its deletion.
func TestRecordsAreAnswered(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		publicRecords().given(a)
		_, err := publicRecords().put(a, "www", publicRecords().want(""))
		a.must(err)
		if got := asked(a, "www.one.example."); got.Code != dns.RcodeSuccess || len(got.Answer) != 1 ||
			got.Answer[0].String() != "www.one.example.\t300\tIN\tTXT\t\"heritage=kaz\"" {
			a.Errorf("after the write: %+v", got)
		}
		a.must(publicRecords().remove(a, "www"))
		if got := asked(a, "www.one.example."); got.Code != dns.RcodeNameError || len(got.Ns) != 1 {
			a.Errorf("after the deletion: %+v", got)
		}
	})
}

// asked returns the answer for the TXT records of a name in a public zone.
func asked(a *local, name string) (answer zones.Answer) {
	a.Look(func(w behaviour.World) {
		z, ok := zones.Public(w, name)
		if !ok {
			a.Fatalf("no zone has %s", name)
		}
		answer = z.Answer(w, dns.Question{Name: name, Qtype: dns.TypeTXT, Qclass: dns.ClassINET})
	})
	return answer
}
