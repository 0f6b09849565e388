package names_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"kaz/internal/azure"
)

// link returns the body of a link to a network, with more properties.
func link(network azure.ID, more string) string {
	return `{"location":"global","properties":{"virtualNetwork":{"id":"` + string(network) + `"}` + more + `}}`
}

// A linked private zone answers all of its names, a link with registration those of machines besides. Zones of other networks do not
// exist. CNAME records lead into other zones and out of them.
func TestZones(t *testing.T) {
	_, _, address, e := startAzure(t)
	zone := func(kind, name string) azure.ID {
		id := group.Resource("Microsoft.Network/"+kind, name)
		put(t, e, id, `{"location":"global"}`)
		return id
	}
	const private = "privateDnsZones"
	other := group.Resource("Microsoft.Network/virtualNetworks", "other")
	corp, far, vault := zone(private, "corp.example"), zone(private, "far.example"), zone(private, "privatelink.vaultcore.azure.net")
	public, split, azurecr := zone("dnszones", "example.org"), zone("dnszones", "corp.example"), zone(private, "azurecr.io")
	put(t, e, corp.Child("virtualNetworkLinks", "l"), link(vnet, `,"registrationEnabled":true`))
	put(t, e, far.Child("virtualNetworkLinks", "l"), link(other, `,"registrationEnabled":false`))
	put(t, e, vault.Child("virtualNetworkLinks", "l"), link(vnet, `,"registrationEnabled":false,"resolutionPolicy":"Default"`))
	put(t, e, azurecr.Child("virtualNetworkLinks", "l"), link(other, `,"registrationEnabled":false`))
	put(t, e, corp.Child("A", "db"), `{"properties":{"ttl":30,"aRecords":[{"ipv4Address":"10.0.0.9"}]}}`)
	put(t, e, corp.Child("TXT", "db"), `{"properties":{"ttl":30,"txtRecords":[{"value":["x"]}]}}`)
	put(t, e, corp.Child("CNAME", "shop"), `{"properties":{"ttl":30,"cnameRecord":{"cname":"www.example.org"}}}`)
	put(t, e, far.Child("A", "db"), `{"properties":{"ttl":30,"aRecords":[{"ipv4Address":"10.0.0.9"}]}}`)
	put(t, e, split.Child("A", "public"), `{"properties":{"TTL":30,"ARecords":[{"ipv4Address":"192.0.2.1"}]}}`)
	put(t, e, public.Child("CNAME", "www"), `{"properties":{"TTL":60,"CNAMERecord":{"cname":"images.azurecr.io"}}}`)
	put(t, e, public.Child("NS", "child"), `{"properties":{"TTL":60,"NSRecords":[{"nsdname":"ns.example.net"}]}}`)
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"db.corp.example.", dns.TypeA, "NOERROR db.corp.example. 30 IN A 10.0.0.9"},
		{"db.corp.example.", dns.TypeTXT, `NOERROR db.corp.example. 30 IN TXT "x"`},
		{"web.corp.example.", dns.TypeA, "NOERROR web.corp.example. 10 IN A 10.0.0.4"},
		{"web.corp.example.", dns.TypeAAAA, "NOERROR"},
		{"none.corp.example.", dns.TypeA, "NXDOMAIN"},
		{"public.corp.example.", dns.TypeA, "NXDOMAIN"}, // the private zone hides the public one
		{"db.far.example.", dns.TypeA, "NXDOMAIN"},
		{"x.privatelink.vaultcore.azure.net.", dns.TypeA, "NXDOMAIN"},
		{"shop.corp.example.", dns.TypeA, "NOERROR shop.corp.example. 30 IN CNAME www.example.org. " +
			"www.example.org. 60 IN CNAME images.azurecr.io. images.azurecr.io. 5 IN A 168.63.129.16"},
		{"x.child.example.org.", dns.TypeA, "SERVFAIL"},
	} {
		if diff := cmp.Diff(test.want, ask(t, address, test.name, test.kind)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.name, dns.TypeToString[test.kind], diff)
		}
	}
}

// A link says what a name is that its zone does not have.
func TestResolutionPolicy(t *testing.T) {
	_, _, address, e := startAzure(t)
	const name = "x.privatelink.blob.core.windows.net."
	public := group.Resource("Microsoft.Network/dnszones", "privatelink.blob.core.windows.net")
	private := group.Resource("Microsoft.Network/privateDnsZones", "privatelink.blob.core.windows.net")
	put(t, e, public, `{"location":"global"}`)
	put(t, e, private, `{"location":"global"}`)
	put(t, e, public.Child("A", "x"), `{"properties":{"TTL":30,"ARecords":[{"ipv4Address":"192.0.2.1"}]}}`)
	for policy, want := range map[string]string{"Default": "NXDOMAIN", "NxDomainRedirect": "NOERROR " + name + " 30 IN A 192.0.2.1"} {
		put(t, e, private.Child("virtualNetworkLinks", "l"), link(vnet, `,"registrationEnabled":false,"resolutionPolicy":"`+policy+`"`))
		if got := ask(t, address, name, dns.TypeA); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

// ask returns the code and the records of an answer.
func ask(t *testing.T, address, name string, kind uint16) string {
	t.Helper()
	reply, _, err := new(dns.Client).ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(name, kind), address)
	if err != nil {
		t.Fatal(err)
	}
	text := []string{dns.RcodeToString[reply.Rcode]}
	for _, rr := range reply.Answer {
		text = append(text, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return strings.Join(text, " ")
}
