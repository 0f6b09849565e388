package zones_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"kaz/internal/azure"
)

func profileID(name string) azure.ID {
	return group.Resource("Microsoft.Network/trafficManagerProfiles", name)
}

// profile writes a profile with the endpoints, each a target and further properties.
func (w *nameServer) profile(name, method string, endpoints ...[2]string) azure.ID {
	w.t.Helper()
	var all []string
	for i, e := range endpoints {
		all = append(all, fmt.Sprintf(`{"name":"e%d","type":"Microsoft.Network/trafficManagerProfiles/externalEndpoints",
			"properties":{"target":%q%s}}`, i, e[0], e[1]))
	}
	id := profileID(name)
	w.at(http.MethodPut, id, `{"location":"global","properties":{"trafficRoutingMethod":"`+method+`","dnsConfig":{"relativeName":"`+name+
		`","ttl":20},"monitorConfig":{"protocol":"TCP","port":443},"endpoints":[`+strings.Join(all, ",")+`]}}`)
	return id
}

// at is do with the API version of Traffic Manager.
func (w *nameServer) at(method string, id azure.ID, body string) {
	w.t.Helper()
	w.send(method, id, body, "2022-04-01")
}

func TestTrafficManager(t *testing.T) {
	w := start(t)
	w.profile("first", "Priority", [2]string{"b.example.net", `,"priority":2`}, [2]string{"a.example.net", `,"priority":1`})
	several := w.profile("several", "MultiValue", [2]string{"192.0.2.1"}, [2]string{"2001:db8::1"}, [2]string{"192.0.2.2"},
		[2]string{"192.0.2.3"})
	w.profile("world", "Geographic", [2]string{"eu.example.net", `,"geoMapping":["GEO-EU"]`},
		[2]string{"all.example.net", `,"geoMapping":["WORLD"]`})
	w.profile("subnets", "Subnet", [2]string{"rest.example.net"},
		[2]string{"near.example.net", `,"subnets":[{"first":"198.51.100.0","scope":24}]`})
	const name = "first.trafficmanager.net."
	check := func(name string, kind uint16, want string, change ...func(*dns.Msg)) {
		t.Helper()
		if got := text(w.ask("udp", name, kind, change...)); !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: %s, want %s", name, dns.TypeToString[kind], got, want)
		}
	}
	const toA = "NOERROR aa\n" + name + " 20 IN CNAME a.example.net."
	check(name, dns.TypeA, toA)
	check(name, dns.TypeTXT, toA)
	check("none.trafficmanager.net.", dns.TypeA, "NXDOMAIN aa\nns trafficmanager.net. 30 IN SOA")
	check("world.trafficmanager.net.", dns.TypeA, "NOERROR aa\nworld.trafficmanager.net. 20 IN CNAME all.example.net.")
	check("subnets.trafficmanager.net.", dns.TypeA, "NOERROR aa\nsubnets.trafficmanager.net. 20 IN CNAME rest.example.net.")
	check("subnets.trafficmanager.net.", dns.TypeA, "NOERROR aa\nsubnets.trafficmanager.net. 20 IN CNAME near.example.net.", func(m *dns.Msg) {
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24,
			Address: netip.MustParseAddr("198.51.100.0").AsSlice()})
	})
	if got := w.ask("udp", "several.trafficmanager.net.", dns.TypeA).Answer; len(got) != 2 {
		t.Errorf("two of three addresses: %v", got)
	}
	check("several.trafficmanager.net.", dns.TypeAAAA, "NOERROR aa\nseveral.trafficmanager.net. 20 IN AAAA 2001:db8::1")
	w.put("AAAA", "@", `"targetResource":{"id":"`+string(several)+`"}`)
	check("example.com.", dns.TypeAAAA, "NOERROR aa\nexample.com. 60 IN AAAA 2001:db8::1")
	w.put("CNAME", "c", `"targetResource":{"id":"`+string(profileID("first"))+`"}`)
	check("c.example.com.", dns.TypeA, "NOERROR aa\nc.example.com. 60 IN CNAME "+name)
	// A disabled endpoint is in no answer, and a disabled profile has no name.
	first := profileID("first")
	w.at(http.MethodPatch, first.Child("externalEndpoints", "e1"), `{"properties":{"endpointStatus":"Disabled"}}`)
	check(name, dns.TypeA, "NOERROR aa\n"+name+" 20 IN CNAME b.example.net.")
	w.at(http.MethodPatch, first.Child("externalEndpoints", "e0"), `{"properties":{"endpointStatus":"Disabled"}}`)
	check(name, dns.TypeA, "NOERROR aa\nns trafficmanager.net. 30 IN SOA")
	w.at(http.MethodPatch, first, `{"properties":{"profileStatus":"Disabled"}}`)
	check(name, dns.TypeA, "NXDOMAIN aa")
}

// Weights share queries in proportion, also of a nested profile.
func TestWeights(t *testing.T) {
	w := start(t)
	child := w.profile("child", "Weighted", [2]string{"192.0.2.1", `,"weight":300`}, [2]string{"192.0.2.2", `,"weight":100`})
	parent := w.profile("parent", "Priority")
	w.at(http.MethodPut, parent.Child("nestedEndpoints", "n"), `{"properties":{"targetResourceId":"`+string(child)+`"}}`)
	count := map[string]int{}
	const queries = 400
	for range queries {
		answer := w.ask("udp", "parent.trafficmanager.net.", dns.TypeA).Answer
		if len(answer) != 1 {
			t.Fatalf("one endpoint answers: %v", answer)
		}
		count[strings.Fields(answer[0].String())[4]]++
	}
	if n := count["192.0.2.1"]; n < queries*65/100 || n > queries*85/100 || n+count["192.0.2.2"] != queries {
		t.Errorf("three of four queries get the first endpoint: %v of %d", count, queries)
	}
}
