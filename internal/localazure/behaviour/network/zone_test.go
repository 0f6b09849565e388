package network_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/behaviour"
)

const (
	inside = net + "/privateDnsZones/Corp.Example"
	public = net + "/dnszones/example.com"
	link   = inside + "/virtualNetworkLinks/Link"
)

func TestPrivateZone(t *testing.T) {
	c := start(t)
	c.network()
	first := c.do("PUT", inside, `{"location":"global"}`)
	if first.Status != 202 || len(first.Body) != 0 || first.Header.Get("Location") == "" {
		t.Errorf("a private zone is made later: %d %v %v", first.Status, first.Body, first.Header)
	}
	got := c.get(inside)
	c.has(got, `{"id":"`+
		strings.Replace(inside, "Corp.Example", "corp.example", 1)+`","name":"corp.example","location":"global","properties":{
		"provisioningState":"Succeeded","maxNumberOfRecordSets":25000,"maxNumberOfVirtualNetworkLinks":1000,"numberOfRecordSets":1,
		"numberOfVirtualNetworkLinks":0,"numberOfVirtualNetworkLinksWithRegistration":0}}`)
	body := `{"location":"global","properties":{"registrationEnabled":true,"virtualNetwork":` + ref(vnet) + `}}`
	c.has(c.put(link, body),
		`{"name":"link","properties":{"registrationEnabled":true,"virtualNetworkLinkState":"Completed","provisioningState":"Succeeded"}}`)
	c.has(c.get(inside), `{"properties":{"numberOfVirtualNetworkLinks":1,"numberOfVirtualNetworkLinksWithRegistration":1}}`)
	c.refused("DELETE", inside, "", 409, "CannotDeleteResource")
	other := net + "/privateDnsZones/other.example"
	c.put(other, `{"location":"global"}`)
	c.refused("PUT", other+"/virtualNetworkLinks/l", body, 409, "Conflict")
	c.put(other+"/virtualNetworkLinks/l", strings.Replace(body, "true", "false", 1))
	c.refused("PUT", other+"/virtualNetworkLinks/m", strings.Replace(body, "true", "false", 1), 409, "Conflict")
	c.delete(link)
	c.put(inside+"/A/www", `{"properties":{"ttl":60,"aRecords":[{"ipv4Address":"10.0.0.4"}]}}`)
	c.delete(inside)
	c.refused("PUT", net+"/privateDnsZones/single", `{"location":"global"}`, 400, "BadRequest")
	c.refused("PUT", inside, `{"location":"eastus"}`, 400, "LocationNotAvailableForResourceType")
}

// A zone has fewer tags than other resources.
func TestTagsOfZones(t *testing.T) {
	c := start(t)
	body := func(count int) string {
		tags := map[string]string{}
		for i := range count {
			tags[fmt.Sprint("t", i)] = "x"
		}
		text, err := json.Marshal(map[string]any{"location": "global", "tags": tags})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, id := range []string{inside, zone} {
		c.put(id, body(15))
		c.refused("PUT", id, body(16), 400, "BadRequest")
	}
}

func TestPrivateLinkZonesHaveAResolutionPolicy(t *testing.T) {
	c := start(t)
	c.network()
	c.put(zone, `{"location":"global"}`)
	c.has(c.put(zone+"/virtualNetworkLinks/l", `{"location":"global","properties":{"virtualNetwork":`+ref(vnet)+`}}`),
		`{"properties":{"registrationEnabled":false,"resolutionPolicy":"Default"}}`)
}

func TestRecordSets(t *testing.T) {
	c := start(t)
	c.put(inside, `{"location":"global"}`)
	for kind, test := range map[string]struct{ sent, want string }{
		"A":    {`"ttl":3600,"aRecords":[{"ipv4Address":"10.0.0.4"}]`, `"fqdn":"www.corp.example.","ttl":3600,"isAutoRegistered":false`},
		"AAAA": {`"ttl":1,"aaaaRecords":[{"ipv6Address":"fd00::4"}]`, `"aaaaRecords":[{"ipv6Address":"fd00::4"}]`},
		"TXT": {`"ttl":1,"txtRecords":[{"value":["a","b"]}],"metadata":{"owner":"me"}`,
			`"txtRecords":[{"value":["a","b"]}],"metadata":{"owner":"me"}`},
		"MX":  {`"ttl":1,"mxRecords":[{"preference":1,"exchange":"mail"}]`, `"mxRecords":[{"preference":1,"exchange":"mail"}]`},
		"PTR": {`"ttl":1,"ptrRecords":[{"ptrdname":"host"}]`, `"ptrRecords":[{"ptrdname":"host"}]`},
		"SRV": {`"TTL":1,"SRVRecords":[{"priority":1,"weight":2,"port":3,"target":"host"}]`,
			`"ttl":1,"srvRecords":[{"priority":1,"weight":2,"port":3,"target":"host"}]`},
	} {
		created := c.do("PUT", inside+"/"+kind+"/www", `{"properties":{`+test.sent+`}}`)
		if created.Status != 201 {
			t.Errorf("new %s record set: %d %v", kind, created.Status, created.Body)
		}
		got := c.get(inside + "/" + kind + "/www")
		c.has(got, `{"name":"www","type":"Microsoft.Network/privateDnsZones/`+kind+`","properties":{`+test.want+`}}`)
		c.absent(got, "properties.provisioningState", "location")
	}
	mixed := inside + "/A/Web"
	c.has(c.put(mixed, `{"properties":{"ttl":1,"aRecords":[{"ipv4Address":"10.0.0.5"}]}}`),
		`{"id":"`+strings.Replace(mixed, "Web", "web", 1)+`","name":"web","properties":{"fqdn":"web.corp.example."}}`)
	if list := behaviour.Objects(c.get(inside+"/A?$recordsetnamesuffix=Eb"), "value"); behaviour.Text(list[0], "name") != "web" {
		t.Errorf("the list shows the name %q", list[0]["name"])
	}
	c.delete(mixed)
	if n := len(behaviour.Objects(c.get(inside+"/ALL"), "value")); n != 7 {
		t.Errorf("%d record sets in ALL, want 6 and the SOA", n)
	}
	c.has(c.get(inside), `{"properties":{"numberOfRecordSets":7}}`)
	if n := len(behaviour.Objects(c.get(inside+"/A?$recordsetnamesuffix=x"), "value")); n != 0 {
		t.Errorf("%d record sets whose name ends in x", n)
	}
	if got := c.do("DELETE", inside+"/A/www", ""); got.Status != 200 {
		t.Errorf("delete of a record set: %d", got.Status)
	}
	if got := c.do("DELETE", inside+"/A/www", ""); got.Status != 204 {
		t.Errorf("delete of a record set that is gone: %d", got.Status)
	}
}

// The records of signatures, of telephone numbers and of certificates came with a later api-version.
func TestLaterRecordSets(t *testing.T) {
	c := start(t)
	c.put(public, `{"location":"global"}`)
	const latest = "?api-version=2023-07-01-preview"
	for kind, records := range map[string]string{
		"DS":    `"DSRecords":[{"keyTag":60485,"algorithm":5,"digest":{"algorithmType":1,"value":"2BB183AF5F22588179A53B0A98631FAD1A292118"}}]`,
		"NAPTR": `"NAPTRRecords":[{"order":100,"preference":10,"flags":"U","services":"E2U+sip","regexp":"!^.*$!sip:a@example.com!","replacement":""}]`,
		"TLSA":  `"TLSARecords":[{"usage":3,"selector":1,"matchingType":1,"certAssociationData":"6EC8A4B7"}]`,
	} {
		c.has(c.put(public+"/"+kind+"/x"+latest, `{"properties":{"TTL":60,`+records+`}}`),
			`{"type":"Microsoft.Network/dnszones/`+kind+`","properties":{"fqdn":"x.example.com.",`+records+`}}`)
		c.refused("PUT", public+"/"+kind+"/y"+latest, `{"properties":{"TTL":60,"`+kind+`Records":[{}]}}`, 400, "BadRequest")
	}
}

func TestSigningOfZones(t *testing.T) {
	c := start(t)
	c.put(public, `{"location":"global"}`)
	const config = public + "/dnssecConfigs/default"
	const latest = "?api-version=2023-07-01-preview"
	if first := c.do("PUT", config+latest, ""); first.Status != 201 {
		t.Fatalf("a configuration without a body: %d %v", first.Status, first.Body)
	}
	got := c.get(config + latest)
	c.has(got, `{"name":"default","properties":{"provisioningState":"Succeeded"}}`)
	keys := behaviour.Objects(got, "properties.signingKeys")
	if len(keys) != 2 {
		t.Fatalf("%d keys", len(keys))
	}
	c.has(keys[0], `{"flags":256,"protocol":3,"securityAlgorithmType":13,"delegationSignerInfo":[]}`)
	c.has(keys[1], `{"flags":257,"delegationSignerInfo":[{"digestAlgorithmType":2}]}`)
	c.put(config+latest, "")
	if diff := cmp.Diff(keys, behaviour.Objects(c.get(config+latest), "properties.signingKeys")); diff != "" {
		t.Errorf("a second PUT makes other keys: %s", diff)
	}
	c.refused("PUT", public+"/dnssecConfigs/other"+latest, "", 400, "BadRequest")
	c.delete(config + latest)
}

func TestRecordSetRefusals(t *testing.T) {
	c := start(t)
	c.put(inside, `{"location":"global"}`)
	c.put(inside+"/A/www", `{"properties":{"ttl":60,"aRecords":[{"ipv4Address":"10.0.0.4"}]}}`)
	c.put(inside+"/CNAME/alias", `{"properties":{"ttl":60,"cnameRecord":{"cname":"www.corp.example"}}}`)
	for path, properties := range map[string]string{
		"A/a":       `"aRecords":[{"ipv4Address":"10.0.0.4"}]`,
		"A/b":       `"ttl":60,"aRecords":[{"ipv4Address":"fd00::4"}]`,
		"A/c":       `"ttl":60,"aRecords":[{}]`,
		"A/d":       `"ttl":60,"aRecords":["10.0.0.4"]`,
		"A/e":       `"ttl":-1,"aRecords":[]`,
		"A/f":       `"ttl":60,"txtRecords":[{"value":["x"]}]`,
		"A/-g":      `"ttl":60,"aRecords":[]`,
		"A/alias":   `"ttl":60,"aRecords":[]`,
		"AAAA/h":    `"ttl":60,"aaaaRecords":[{"ipv6Address":"10.0.0.4"}]`,
		"CNAME/www": `"ttl":60,"cnameRecord":{"cname":"x"}`,
		"CNAME/@":   `"ttl":60,"cnameRecord":{"cname":"x"}`,
		"SOA/i":     `"ttl":60,"soaRecord":{"email":"x"}`,
		"TXT/j":     `"ttl":60,"txtRecords":[{"value":["` + strings.Repeat("x", 256) + `"]}]`,
		"TXT/k":     `"ttl":60,"txtRecords":[` + txt(17) + `]`,
		"TXT/l":     `"ttl":60,"txtRecords":[` + strings.Repeat(`{"value":["x"]},`, 20) + `{"value":["x"]}]`,
	} {
		c.refused("PUT", inside+"/"+path, `{"properties":{`+properties+`}}`, 400, "BadRequest")
	}
	c.refused("DELETE", inside+"/SOA/@", "", 400, "BadRequest")
	c.put(inside+"/TXT/long", `{"properties":{"ttl":60,"txtRecords":[`+txt(16)+`]}}`)
	c.put(public, `{"location":"global"}`)
	c.refused("PUT", public+"/NS/*", `{"properties":{"TTL":60,"NSRecords":[{"nsdname":"ns.example.net."}]}}`, 400, "BadRequest")
	c.put(inside+"/A/*", `{"properties":{"ttl":60,"aRecords":[{"ipv4Address":"10.0.0.5"}]}}`)
}

// TestFullZone fills a public zone, which has an NS and an SOA record set from its beginning.
func TestFullZone(t *testing.T) {
	c := start(t)
	c.put(public, `{"location":"global"}`)
	const most, body = 10000, `{"properties":{"TTL":60,"ARecords":[{"ipv4Address":"10.0.0.4"}]}}`
	for i := range most - 2 {
		if got := c.do("PUT", fmt.Sprintf("%s/A/r%d", public, i), body); got.Status != http.StatusCreated {
			t.Fatalf("record set %d: %d %v", i, got.Status, got.Body)
		}
	}
	c.refused("PUT", public+"/A/more", body, 400, "BadRequest")
	c.put(public+"/A/r0", body)
	c.delete(public + "/A/r1")
	c.put(public+"/A/more", body)
}

// txt returns n TXT records of 255 characters each.
func txt(n int) string {
	record := `{"value":["` + strings.Repeat("x", 255) + `"]}`
	return strings.Repeat(record+",", n-1) + record
}

func TestRecordSetPreconditions(t *testing.T) {
	c := start(t)
	c.put(inside, `{"location":"global"}`)
	record, body := inside+"/A/www", `{"properties":{"ttl":60,"aRecords":[{"ipv4Address":"10.0.0.4"}]}}`
	etag := fmt.Sprint(c.put(record, body)["etag"])
	for _, test := range []struct {
		header, value string
		status        int
		message       string
	}{
		{"If-None-Match", "*", 412, "The Record set www exists already and hence cannot be created again."},
		{"If-Match", "other", 412, "The Record set www has been modified (etag mismatch)."},
		{"If-Match", etag, 200, ""},
	} {
		got := c.do("PUT", record, body, test.header, test.value)
		if got.Status != test.status || test.message != "" &&
			(got.Body["message"] != test.message || got.Body["code"] != "PreconditionFailed") {
			t.Errorf("%s: %s: %d %v", test.header, test.value, got.Status, got.Body)
		}
	}
	if got := c.do("PUT", inside+"/A/new", body, "If-None-Match", "*"); got.Status != http.StatusCreated {
		t.Errorf("If-None-Match: * on a new record set: %d %v", got.Status, got.Body)
	}
}

func TestPublicZone(t *testing.T) {
	c := start(t)
	first := c.do("PUT", public, `{"location":"global"}`)
	if first.Status != 201 || first.Header.Get("Azure-AsyncOperation") != "" {
		t.Errorf("a public zone is made at once: %d %v", first.Status, first.Header)
	}
	if _, tagged := first.Body["tags"]; !tagged || first.Header.Get("ETag") == "" {
		t.Errorf("the reply to a PUT of a public zone has its tags and its etag: %v %v", first.Header, first.Body)
	}
	got := c.get(public)
	c.has(got, `{"name":"example.com","type":"Microsoft.Network/dnszones","properties":{"maxNumberOfRecordSets":10000,
		"numberOfRecordSets":2,"zoneType":"Public"}}`)
	if servers := behaviour.Texts(got, "properties.nameServers"); len(servers) != 4 || !strings.HasPrefix(servers[0], "ns1-") ||
		!strings.HasSuffix(servers[3], ".info.") {
		t.Errorf("name servers %v", servers)
	}
	c.has(c.put(public+"/A/www", `{"properties":{"ttl":300,"aRecords":[{"ipv4Address":"20.0.0.4"}]}}`),
		`{"type":"Microsoft.Network/dnszones/A","properties":{"fqdn":"www.example.com.","TTL":300,"ARecords":[{"ipv4Address":"20.0.0.4"}],
			"targetResource":{},"provisioningState":"Succeeded"}}`)
	c.has(c.get(public+"/NS/@"), `{"properties":{"targetResource":{},"trafficManagementProfile":{}}}`)
	for _, list := range []string{"recordsets", "all"} {
		if n := len(behaviour.Objects(c.get(public+"/"+list), "value")); n != 3 {
			t.Errorf("%d record sets in %s, want A, NS and SOA", n, list)
		}
	}
	c.refused("DELETE", public+"/NS/@", "", 400, "BadRequest")
	gone := c.do("DELETE", public, "")
	if gone.Status != 202 || !strings.Contains(gone.Header.Get("Azure-AsyncOperation"), "dnsOperationStatuses") {
		t.Errorf("delete of a public zone: %d %v", gone.Status, gone.Header)
	}
	c.refused("GET", public+"/A/www", "", 404, "ParentResourceNotFound")
}
