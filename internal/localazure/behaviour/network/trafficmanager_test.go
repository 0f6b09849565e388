package network_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

const (
	traffic   = net + "/trafficManagerProfiles/tm"
	external  = traffic + "/externalEndpoints"
	monitored = `"monitorConfig":{"protocol":"HTTP","port":80,"path":"/"}`
)

// profileBody returns a profile with a name, a method and the parts.
func profileBody(name, method, parts string) string {
	return `{"location":"global","properties":{"trafficRoutingMethod":"` + method + `","dnsConfig":{"relativeName":"` + name + `"}` +
		parts + `}}`
}

// trafficEndpoint returns an element of a profile's endpoints.
func trafficEndpoint(kind, name, properties string) string {
	return `{"name":"` + name + `","type":"Microsoft.Network/trafficManagerProfiles/` + kind + `","properties":{` + properties + `}}`
}

func endpointsOf(all ...string) string {
	return "," + monitored + `,"endpoints":[` + strings.Join(all, ",") + `]`
}

// Priorities that a request leaves out are 1, 2, 3 in its order, however often it is sent.
func TestPrioritiesOfEndpoints(t *testing.T) {
	c := start(t)
	body := profileBody("mine", "Weighted", endpointsOf(trafficEndpoint("externalEndpoints", "b", `"target":"b.example.com"`),
		trafficEndpoint("externalEndpoints", "a", `"target":"a.example.com"`)))
	const want = `{"properties":{"endpoints":[{"name":"b","properties":{"priority":1}},{"name":"a","properties":{"priority":2}}]}}`
	for range 3 {
		c.has(c.put(traffic, body), want)
	}
	c.has(c.put(external+"/c", `{"properties":{"target":"c.example.com"}}`), `{"properties":{"priority":3,"weight":1}}`)
	c.has(c.put(external+"/a", `{"properties":{"target":"a2.example.com"}}`), `{"properties":{"priority":2,"target":"a2.example.com"}}`)
	c.refused("PUT", external+"/c", `{"properties":{"target":"c.example.com","priority":1}}`, 400, "BadRequest")
	c.has(c.put(external+"/c", `{"properties":{"target":"c.example.com","priority":"1000"}}`), `{"properties":{"priority":1000}}`)
	c.has(c.put(external+"/d", `{"properties":{"target":"d.example.com"}}`), `{"properties":{"priority":3}}`)
	c.has(c.do("PATCH", external+"/b", `{"properties":{"weight":7}}`).Body,
		`{"properties":{"weight":7,"priority":1,"target":"b.example.com"}}`)
	// A profile that is written without endpoints keeps them, and exchanged priorities are no duplicates.
	c.has(c.put(traffic, profileBody("mine", "Priority", ","+monitored)),
		`{"properties":{"endpoints":[{"name":"b"},{"name":"a"},{"name":"c"},
		{"name":"d"}]}}`)
	c.has(c.put(traffic, profileBody("mine", "Priority", endpointsOf(
		trafficEndpoint("externalEndpoints", "b", `"target":"b.example.com","priority":2`),
		trafficEndpoint("externalEndpoints", "a", `"target":"a.example.com","priority":1`)))),
		`{"properties":{"endpoints":[{"name":"b","properties":{"priority":2}},{"name":"a","properties":{"priority":1}}]}}`)
	c.delete(external + "/b")
	c.has(c.get(traffic), `{"properties":{"endpoints":[{"name":"a"}]}}`)
	for _, e := range behaviour.Objects(c.get(traffic), "properties.endpoints") {
		if e["$probe"] != nil {
			t.Error("a private field is shown")
		}
	}
	c.absent(c.get(traffic), "properties.externalEndpoints", "properties.azureEndpoints", "properties.nestedEndpoints")
}

// A profile is refused for what Azure refuses.
func TestRefusedProfiles(t *testing.T) {
	c := start(t)
	monitor := func(text string) string { return `,"monitorConfig":{` + text + `}` }
	const web = `"protocol":"HTTPS","port":443,"path":"/"`
	one := func(method, properties string) string {
		return profileBody("x", method, endpointsOf(trafficEndpoint("externalEndpoints", "a", properties)))
	}
	two := func(method, first, second string) string {
		return profileBody("x", method, endpointsOf(trafficEndpoint("externalEndpoints", "a", first),
			trafficEndpoint("externalEndpoints", "b", second)))
	}
	for name, body := range map[string]string{
		"no name":              `{"location":"global","properties":{` + monitored + `}}`,
		"a name of two labels": profileBody("a.b", "Priority", ","+monitored),
		"a long TTL":           strings.Replace(profileBody("x", "Priority", ","+monitored), `"x"}`, `"x","ttl":2147483648}`, 1),
		"a negative TTL":       strings.Replace(profileBody("x", "Priority", ","+monitored), `"x"}`, `"x","ttl":-1}`, 1),
		"no monitor":           profileBody("x", "Priority", ""),
		"no port":              profileBody("x", "Priority", monitor(`"protocol":"HTTP","path":"/"`)),
		"no path":              profileBody("x", "Priority", monitor(`"protocol":"HTTP","port":80`)),
		"a path with TCP":      profileBody("x", "Priority", monitor(`"protocol":"TCP","port":80,"path":"/"`)),
		"codes with TCP": profileBody("x", "Priority",
			monitor(`"protocol":"TCP","port":80,"expectedStatusCodeRanges":[{"min":200,"max":200}]`)),
		"port 0":                profileBody("x", "Priority", monitor(`"protocol":"TCP","port":0`)),
		"an interval of 20":     profileBody("x", "Priority", monitor(web+`,"intervalInSeconds":20`)),
		"a timeout of 10 of 10": profileBody("x", "Priority", monitor(web+`,"intervalInSeconds":10,"timeoutInSeconds":10`)),
		"a timeout of 4":        profileBody("x", "Priority", monitor(web+`,"timeoutInSeconds":4`)),
		"10 failures":           profileBody("x", "Priority", monitor(web+`,"toleratedNumberOfFailures":10`)),
		"codes in wrong order":  profileBody("x", "Priority", monitor(web+`,"expectedStatusCodeRanges":[{"min":300,"max":200}]`)),
		"9 headers": profileBody("x", "Priority",
			monitor(web+`,"customHeaders":[`+strings.Repeat(`{"name":"a","value":"b"},`, 8)+`{"name":"a","value":"b"}]`)),
		"9 answers":            profileBody("x", "MultiValue", `,"maxReturn":9,`+monitored),
		"no target":            one("Priority", `"weight":1`),
		"a URL":                one("Priority", `"target":"https://a.example.com"`),
		"weight 0":             one("Priority", `"target":"a.example.com","weight":0`),
		"priority 1001":        one("Priority", `"target":"a.example.com","priority":1001`),
		"an Azure resource":    one("Priority", `"target":"a.example.com","targetResourceId":"`+publicIP+`"`),
		"no location":          one("Performance", `"target":"a.example.com"`),
		"a name as an address": one("MultiValue", `"target":"a.example.com"`),
		"no geography":         one("Geographic", `"target":"a.example.com"`),
		"no subnet":            one("Subnet", `"target":"a.example.com","subnets":[{"first":"10.0.0"}]`),
		"a reversed subnet":    one("Subnet", `"target":"a.example.com","subnets":[{"first":"10.0.0.9","last":"10.0.0.1"}]`),
		"one priority twice":   two("Weighted", `"target":"a.example.com","priority":5`, `"target":"b.example.com","priority":5`),
		"one priority of two":  two("Priority", `"target":"a.example.com","priority":5`, `"target":"b.example.com"`),
		"a region twice": two("Geographic", `"target":"a.example.com","geoMapping":["WORLD"]`,
			`"target":"b.example.com","geoMapping":["world"]`),
		"overlapping subnets": two("Subnet", `"target":"1.2.3.4","subnets":[{"first":"10.0.0.0","scope":8}]`,
			`"target":"1.2.3.5","subnets":[{"first":"10.1.0.0"}]`),
		"two endpoints for all": two("Subnet", `"target":"1.2.3.4"`, `"target":"1.2.3.5"`),
		"names and addresses":   two("Priority", `"target":"a.example.com"`, `"target":"1.2.3.4"`),
		"a type that is not meant": profileBody("x", "Priority", `,"allowedEndpointRecordTypes":["IPv4Address"]`+
			endpointsOf(trafficEndpoint("externalEndpoints", "a", `"target":"a.example.com"`))),
		"an unknown kind": profileBody("x", "Priority",
			endpointsOf(trafficEndpoint("otherEndpoints", "a", `"target":"a.example.com"`))),
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.do("PUT", traffic, body); got.Status != 400 || got.Code() != "BadRequest" {
				t.Errorf("%s: %d %v", body, got.Status, got.Body)
			}
		})
	}
}

// An endpoint of Azure has the name of its public IP address, and one of a profile that of the profile.
func TestTargetsInAzure(t *testing.T) {
	c := start(t)
	c.put(traffic, profileBody("mine", "Priority", ","+monitored))
	const azure, nested = traffic + "/azureEndpoints/a", traffic + "/nestedEndpoints/n"
	body := func(id string) string { return `{"properties":{"targetResourceId":"` + id + `"}}` }
	c.refused("PUT", azure, `{"properties":{"target":"a.example.com"}}`, 400, "BadRequest")
	c.refused("PUT", azure, body(publicIP), 400, "BadRequest")
	c.put(publicIP, staticIP)
	c.refused("PUT", azure, body(publicIP), 400, "BadRequest")
	c.put(publicIP, strings.Replace(staticIP, `"Static"`, `"Static","dnsSettings":{"domainNameLabel":"web"}`, 1))
	c.has(c.put(azure, body(publicIP)),
		`{"properties":{"target":"web.eastus.cloudapp.azure.com","endpointLocation":"East US","endpointMonitorStatus":"CheckingEndpoint"}}`)
	c.refused("PUT", nested, body(publicIP), 400, "BadRequest")
	c.refused("PUT", nested, body(traffic), 400, "BadRequest")
	child := net + "/trafficManagerProfiles/child"
	c.put(child, profileBody("child", "Weighted", endpointsOf(trafficEndpoint("externalEndpoints", "e", `"target":"e.example.com"`))))
	c.has(c.put(nested, body(child)), `{"properties":{"target":"child.trafficmanager.net","minChildEndpoints":1,"priority":2,
		"endpointMonitorStatus":"CheckingEndpoint"}}`)
	c.refused("PUT", child+"/nestedEndpoints/n", body(traffic), 400, "BadRequest")
	c.do("PATCH", child, `{"properties":{"profileStatus":"Disabled"}}`)
	c.has(c.get(nested), `{"properties":{"endpointMonitorStatus":"Stopped"}}`)
	c.has(c.get(child), `{"properties":{"monitorConfig":{"profileMonitorStatus":"Disabled"},"endpoints":[
		{"properties":{"endpointMonitorStatus":"Inactive"}}]}}`)
	c.do("PATCH", azure, `{"properties":{"endpointStatus":"Disabled"}}`)
	c.has(c.get(traffic), `{"properties":{"monitorConfig":{"profileMonitorStatus":"Inactive"},"endpoints":[
		{"properties":{"endpointMonitorStatus":"Disabled"}},{"properties":{"endpointMonitorStatus":"Stopped"}}]}}`)
	c.has(c.put(azure, strings.Replace(body(publicIP), `{"t`, `{"alwaysServe":"Enabled","t`, 1)),
		`{"properties":{"endpointMonitorStatus":"Unmonitored"}}`)
	c.has(c.get(traffic), `{"properties":{"monitorConfig":{"profileMonitorStatus":"Online"}}}`)
}

func TestNumberOfEndpoints(t *testing.T) {
	c := start(t)
	var all []string
	for i := range 200 {
		all = append(all, trafficEndpoint("externalEndpoints", fmt.Sprint("e", i), fmt.Sprintf(`"target":"e%d.example.com"`, i)))
	}
	c.put(traffic, profileBody("mine", "Priority", endpointsOf(all...)))
	c.refused("PUT", external+"/more", `{"properties":{"target":"more.example.com"}}`, 400, "BadRequest")
}

func TestTrafficManagerNames(t *testing.T) {
	c := start(t)
	c.put(traffic, profileBody("mine", "Priority", `,"monitorConfig":{"protocol":"tcp","port":"443","intervalInSeconds":10}`))
	c.has(c.get(traffic), `{"properties":{"monitorConfig":{"timeoutInSeconds":9,"toleratedNumberOfFailures":3,"protocol":"TCP"}}}`)
	for name, want := range map[string]string{
		"Mine": `{"nameAvailable":false,"reason":"AlreadyExists"}`, "other": `{"nameAvailable":true}`,
		"a.b": `{"nameAvailable":false,"reason":"Invalid"}`,
	} {
		c.has(c.do("POST", "/providers/Microsoft.Network/checkTrafficManagerNameAvailability",
			`{"name":"`+name+`","type":"Microsoft.Network/trafficManagerProfiles"}`).Body, want)
	}
}

// The endpoints of a traffic manager profile are resources of their own, written with the profile or alone.
func TestTrafficManager(t *testing.T) {
	c := start(t)
	const profile = net + "/trafficManagerProfiles/tm"
	body := `{"location":"global","properties":{"trafficRoutingMethod":"weighted","dnsConfig":{"relativeName":"mine","ttl":"30"},
		"monitorConfig":{"protocol":"http","port":"80","path":"/"},"endpoints":[{"name":"a",
		"type":"Microsoft.Network/trafficManagerProfiles/externalEndpoints","properties":{"target":"a.example.com"}}]}}`
	c.has(c.put(profile, body), `{"location":"global","properties":{"trafficRoutingMethod":"Weighted","profileStatus":"Enabled",
		"dnsConfig":{"fqdn":"mine.trafficmanager.net","ttl":30},"monitorConfig":{"protocol":"HTTP","port":80,"timeoutInSeconds":10},
		"endpoints":[{"name":"a","id":"`+profile+`/externalEndpoints/a","properties":{"endpointStatus":"Enabled","weight":1,"priority":1}}]}}`)
	c.put(profile+"/externalEndpoints/b", `{"properties":{"target":"b.example.com","weight":"5"}}`)
	c.has(c.get(profile), `{"properties":{"endpoints":[{"name":"a"},{"name":"b","properties":{"weight":5,"priority":2}}]}}`)
	c.refused("PUT", net+"/trafficManagerProfiles/other", body, 409, "Conflict")
	free := c.do("POST", "/providers/Microsoft.Network/checkTrafficManagerNameAvailability", `{"name":"mine"}`)
	c.has(free.Body, `{"nameAvailable":false,"reason":"AlreadyExists"}`)
	c.put(profile, body)
	c.has(c.get(profile), `{"properties":{"endpoints":[{"name":"a"}]}}`)
}

// The target of an alias is a resource with addresses of the family of its record set.
func TestTargetsOfAliases(t *testing.T) {
	c := start(t)
	c.put(public, `{"location":"global"}`)
	c.put(publicIP, staticIP)
	c.put(traffic, profileBody("names", "Priority", endpointsOf(trafficEndpoint("externalEndpoints", "a", `"target":"a.example.com"`))))
	addresses := net + "/trafficManagerProfiles/addresses"
	c.put(addresses, profileBody("addresses", "MultiValue", endpointsOf(trafficEndpoint("externalEndpoints", "a", `"target":"192.0.2.1"`))))
	c.put(public+"/A/www", `{"properties":{"TTL":60,"ARecords":[{"ipv4Address":"192.0.2.1"}]}}`)
	for _, test := range []struct {
		record, target string
		fits           bool
	}{
		{"A/ip", publicIP, true}, {"AAAA/ip", publicIP, false}, {"A/gone", net + "/publicIPAddresses/gone", false},
		{"A/tm", addresses, true}, {"AAAA/tm", addresses, false}, {"A/tm", traffic, false}, {"CNAME/tm-name", traffic, true},
		{"A/same", public + "/A/www", true}, {"AAAA/same", public + "/A/www", false}, {"A/self", public + "/A/self", false},
		{"A/lb", balancer, false}, {"TXT/ip", publicIP, false},
		{"CNAME/cdn", group + "/providers/Microsoft.Cdn/profiles/p/afdEndpoints/e", true},
	} {
		got := c.do("PUT", public+"/"+test.record, `{"properties":{"TTL":60,"targetResource":`+ref(test.target)+`}}`)
		if test.fits != (got.Status < 300) || !test.fits && got.Code() != "BadRequest" {
			t.Errorf("%s of %s: %d %v", test.record, test.target, got.Status, got.Body)
		}
	}
	c.delete(publicIP)
	c.put(public+"/A/ip", `{"properties":{"TTL":90,"targetResource":`+ref(publicIP)+`}}`)
}

// At most 20 record sets follow a resource, in all zones.
func TestMostAliases(t *testing.T) {
	c := start(t)
	other := net + "/dnszones/other.example"
	c.put(public, `{"location":"global"}`)
	c.put(other, `{"location":"global"}`)
	c.put(publicIP, staticIP)
	alias := `{"properties":{"TTL":60,"targetResource":` + ref(publicIP) + `}}`
	for n := range 19 {
		c.put(fmt.Sprintf("%s/A/n%d", public, n), alias)
	}
	c.put(other+"/A/last", alias)
	c.refused("PUT", other+"/A/more", alias, 400, "BadRequest")
	c.put(public+"/A/n0", alias)
	c.delete(public + "/A/n0")
	c.put(other+"/A/more", alias)
}
