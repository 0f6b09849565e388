package arm

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
)

// Where lists are.
func TestListPaths(t *testing.T) {
	subscription := azure.SubscriptionID("s1")
	scaleSet := group.Resource("Microsoft.Compute/virtualMachineScaleSets", "v")
	for _, c := range []struct {
		q           azure.Query
		path, query string
	}{
		{azure.Query{Scope: group, Type: "Microsoft.Network/loadBalancers"}, string(group) + "/providers/Microsoft.Network/loadBalancers",
			"api-version=2025-05-01"},
		{azure.Query{Scope: subscription, Type: "Microsoft.Compute/disks"}, "/subscriptions/s1/providers/Microsoft.Compute/disks",
			"api-version=2025-01-02"},
		{azure.Query{Scope: lb("l"), Type: "microsoft.network/loadBalancers/backendAddressPools"}, string(lb("l")) +
			"/backendAddressPools", "api-version=2025-05-01"},
		{azure.Query{Scope: scaleSet, Type: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", Expand: "instanceView"},
			string(scaleSet) + "/virtualMachines", "%24expand=instanceView&api-version=2025-04-01"},
		{azure.Query{Scope: scaleSet, Type: "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces"}, string(scaleSet) +
			"/networkInterfaces", "api-version=2018-10-01"},
		{azure.Query{Scope: scaleSet.Child("virtualMachines", "0"),
			Type: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"},
			string(scaleSet) + "/virtualMachines/0/networkInterfaces", "api-version=2018-10-01"},
		{azure.Query{Scope: group, Type: "Microsoft.Compute/virtualMachines", Filter: "'virtualMachineScaleSet/id' eq 'x'"},
			string(group) + "/providers/Microsoft.Compute/virtualMachines",
			"%24filter=%27virtualMachineScaleSet%2Fid%27+eq+%27x%27&api-version=2025-04-01"},
		{azure.Query{Scope: group.Resource("Microsoft.Network/dnsZones", "z"), Type: "Microsoft.Network/dnsZones/TXT", Suffix: "s"},
			string(group) + "/providers/Microsoft.Network/dnsZones/z/TXT", "%24recordsetnamesuffix=s&api-version=2018-05-01"},
		{azure.Query{Scope: subscription, Type: "Microsoft.Resources/resourceGroups"}, "/subscriptions/s1/resourceGroups",
			"api-version=2021-04-01"},
		{azure.Query{Scope: subscription, Type: "Microsoft.Resources/subscriptions/locations"}, "/subscriptions/s1/locations",
			"api-version=2022-12-01"},
		{azure.Query{Scope: subscription, Type: "Microsoft.Resources/subscriptions/providers"}, "/subscriptions/s1/providers",
			"api-version=2021-04-01"},
		{azure.Query{Type: "Microsoft.Resources/subscriptions"}, "/subscriptions", "api-version=2022-12-01"},
		{azure.Query{Scope: group, Type: "Microsoft.Resources/resources"}, string(group) + "/resources", "api-version=2021-04-01"},
		{azure.Query{Scope: lb("l"), Type: "Microsoft.Authorization/roleAssignments"}, string(lb("l")) +
			"/providers/Microsoft.Authorization/roleAssignments", "api-version=2022-04-01"},
	} {
		s := script(answer{status: 200, body: `{"value":[]}`})
		if _, err := open(t, s).List(t.Context(), c.q); err != nil {
			t.Errorf("%v: %v", c.q, err)
			continue
		}
		if r := s.requests()[0]; r.path != c.path || r.query != c.query {
			t.Errorf("%v\n got %s?%s\nwant %s?%s", c.q, r.path, r.query, c.path, c.query)
		}
	}
}

// What can be read beside resources.
func TestGetPaths(t *testing.T) {
	vm := group.Resource("Microsoft.Compute/virtualMachines", "m")
	nic := group.Resource("Microsoft.Compute/virtualMachineScaleSets", "v").Child("virtualMachines", "0").Child("networkInterfaces", "n")
	for id, version := range map[azure.ID]string{
		"/subscriptions/s1/providers/Microsoft.Compute": "2021-04-01",
		vm + "/instanceView":                            "2025-04-01",
		nic:                                             "2018-10-01",
		nic.Child("ipConfigurations", "c").Child("publicIPAddresses", "p"): "2018-10-01",
		group:                        "2021-04-01",
		azure.SubscriptionID("s1"):   "2022-12-01",
		lb("l").Child("probes", "p"): "2025-05-01",
		group.Resource("microsoft.network/privatednszones", "z").Child("A", "@"): "2024-06-01",
	} {
		s := script(answer{status: 200, body: `{"a":1}`})
		if _, err := open(t, s).Get(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if r := s.requests()[0]; r.path != string(id) || r.query != "api-version="+version {
			t.Errorf("%s is read at %s?%s, want version %s", id, r.path, r.query, version)
		}
	}
}

func TestListFollowsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := func(value, next string) answer {
			return answer{status: 200, body: `{"value":[` + value + `],"nextLink":"` + next + `"}`}
		}
		q := azure.Query{Scope: group, Type: "Microsoft.Network/loadBalancers"}
		s := script(page(`{"id":"a"}`, endpoint+"/next?%24skiptoken=1"), page("", endpoint+"/next?%24skiptoken=2"), answer{status: 500},
			page(`{"id":"b"},{"id":"c"}`, ""))
		got, err := open(t, s).List(t.Context(), q)
		if err != nil || len(got) != 3 || got[2].ID() != "c" {
			t.Errorf("got %s, %v", got, err)
		}
		if r := s.requests()[2]; r.query != "%24skiptoken=2" || r.header.Get("Authorization") == "" {
			t.Errorf("third page asked with %q", r.query)
		}

		for name, c := range map[string]struct {
			answers []answer
			want    string
		}{
			"another host": {[]answer{page("", "https://evil.test/next")}, "evil.test"},
			"a circle":     {[]answer{page(`{"id":"a"}`, endpoint+"/next")}, "no end"},
			"no list":      {[]answer{{status: 200, body: `{"value":3}`}}, "cannot be read"},
			"no group":     {[]answer{{status: 404, body: fail("ResourceGroupNotFound")}}, "not found"},
		} {
			if docs, err := open(t, script(c.answers...)).List(t.Context(), q); err == nil || docs != nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if docs, err := open(t, script(answer{status: 200, body: `{"value":null}`})).List(t.Context(), q); err != nil || len(docs) != 0 {
			t.Errorf("nothing there: %v %v", docs, err)
		}
	})
}

// Compute writes the default port into the links of its lists, and leaves their queries unencoded.
func TestListFollowsLinksOfCompute(t *testing.T) {
	const path = "/subscriptions/s1/providers/Microsoft.Compute/virtualMachines"
	for name, c := range map[string]struct{ link, query string }{
		"port":       {endpoint + ":443" + path + "?api-version=2025-04-01", "api-version=2025-04-01"},
		"host":       {"HTTPS://MANAGEMENT.test:443" + path + "?a=b", "a=b"},
		"encoded":    {endpoint + path + "?%24skiptoken=a%2Bb%3D+c&x=%27", "%24skiptoken=a%2Bb%3D+c&x=%27"},
		"unencoded":  {endpoint + path + `?$filter='v/id' eq \"x\"&$skiptoken=é`, "%24filter=%27v/id%27%20eq%20%22x%22&%24skiptoken=%C3%A9"},
		"both":       {endpoint + ":443" + path + "?$skiptoken=a%2Bb c", "%24skiptoken=a%2Bb%20c"},
		"no percent": {endpoint + path + "?a=100%&b=%zz;c", "a=100%25&b=%25zz%3Bc"},
	} {
		s := script(answer{status: 200, body: `{"value":[{"id":"a"}],"nextLink":"` + c.link + `"}`},
			answer{status: 200, body: `{"value":[{"id":"b"}]}`})
		got, err := open(t, s).List(t.Context(), azure.Query{Scope: azure.SubscriptionID("s1"), Type: "Microsoft.Compute/virtualMachines"})
		if err != nil || len(got) != 2 {
			t.Errorf("%s: %s, %v", name, got, err)
			continue
		}
		if r := s.requests()[1]; !strings.EqualFold(r.host, "management.test") || r.path != path || r.query != c.query {
			t.Errorf("%s: got %s%s?%s, want %s", name, r.host, r.path, r.query, c.query)
		}
	}
}

// Lists of images in the marketplace are arrays.
func TestListOfAnArray(t *testing.T) {
	sku := azure.SubscriptionID("s1") + "/providers/Microsoft.Compute/locations/l/publishers/p/artifacttypes/vmimage/offers/o/skus/s"
	for body, want := range map[string]int{`[{"name":"1"},{"name":"2"}]`: 2, `[]`: 0} {
		found, err := open(t, script(answer{status: 200, body: body})).List(t.Context(), azure.Query{Scope: sku, Type: sku.Type() + "/versions"})
		if err != nil || len(found) != want {
			t.Errorf("%s: %v %v", body, found, err)
		}
	}
	s := script(answer{status: 200, body: `[1`}, answer{status: 200, body: `{"value":[{"name":"1"}]}`})
	if found, err := open(t, s).List(t.Context(), azure.Query{Scope: sku, Type: sku.Type() + "/versions"}); err != nil || len(found) != 1 {
		t.Errorf("after an answer that is cut off: %v %v", found, err)
	}
}

// A list that Azure throttles goes on with its next page, if the caller has the patience.
func TestListThrottledBetweenPages(t *testing.T) {
	pages := []answer{
		{status: 200, body: `{"value":[{"name":"a"}],"nextLink":"https://management.test/next?p=2"}`},
		{status: 429, header: header("Retry-After", "1200")},
		{status: 200, body: `{"value":[{"name":"b"}]}`},
	}
	q := azure.Query{Scope: group, Type: "Microsoft.Network/loadBalancers"}
	for patience, want := range map[time.Duration]int{0: 0, time.Hour: 2} {
		synctest.Test(t, func(t *testing.T) {
			s := script(pages...)
			q.Patience = patience
			start := time.Now()
			found, err := open(t, s).List(t.Context(), q)
			if len(found) != want || (err == nil) != (want > 0) {
				t.Errorf("patience %v: %v, %v", patience, found, err)
			}
			if took := time.Since(start); want > 0 && (len(s.requests()) != 3 || took < 20*time.Minute) {
				t.Errorf("%d requests in %v", len(s.requests()), took)
			}
		})
	}
}
