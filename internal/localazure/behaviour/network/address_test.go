package network_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network/ipam"
)

func TestPublicAddress(t *testing.T) {
	c := start(t)
	first := c.do("PUT", publicIP, staticIP)
	if first.Status != 201 || behaviour.At(first.Body, "properties.ipAddress") != nil {
		t.Errorf("a static address appears when its operation ends, not in the first reply: %d %v", first.Status, first.Body)
	}
	got := c.get(publicIP)
	c.has(got, `{"type":"Microsoft.Network/publicIPAddresses","location":"eastus","sku":{"name":"Standard","tier":"Regional"},"properties":{
		"provisioningState":"Succeeded","publicIPAddressVersion":"IPv4","publicIPAllocationMethod":"Static","idleTimeoutInMinutes":4,
		"ipTags":[],"ddosSettings":{"protectionMode":"VirtualNetworkInherited"}}}`)
	c.absent(got, "properties.leases", "properties.ipConfiguration", "zones", "properties.dnsSettings")
	if a := netip.MustParseAddr(behaviour.Text(got, "properties.ipAddress")); !netip.MustParsePrefix("198.18.0.0/15").Contains(a) {
		t.Errorf("public address %s is not of the range for tests", a)
	}
	again := c.put(publicIP, staticIP)
	if again["etag"] == got["etag"] || behaviour.Text(again, "properties.ipAddress") != behaviour.Text(got, "properties.ipAddress") ||
		behaviour.Text(again, "properties.resourceGuid") != behaviour.Text(got, "properties.resourceGuid") {
		t.Errorf("a second PUT must keep address and GUID and change the etag:\n%v\n%v", got, again)
	}
	six := c.put(net+"/publicIPAddresses/six", staticIP6)
	if a := netip.MustParseAddr(behaviour.Text(six, "properties.ipAddress")); !netip.MustParsePrefix("2001:db8::/32").Contains(a) {
		t.Errorf("public IPv6 address %s is not of the range for documentation", a)
	}
	basic := c.put(net+"/publicIPAddresses/basic", `{"location":"eastus"}`)
	c.has(basic, `{"sku":{"name":"Basic","tier":"Regional"},"properties":{"publicIPAllocationMethod":"Dynamic",
		"ddosSettings":{"protectionMode":"VirtualNetworkInherited"}}}`)
	c.absent(basic, "properties.ipAddress")
}

func TestDynamicPublicAddressFollowsItsConfiguration(t *testing.T) {
	c := start(t)
	c.network()
	basic := net + "/publicIPAddresses/basic"
	c.put(basic, `{"location":"eastus"}`)
	c.put(nic, nicBody(`,"publicIPAddress":`+ref(basic)))
	got := c.get(basic)
	if behaviour.Text(got, "properties.ipAddress") == "" ||
		behaviour.RefID(got, "properties.ipConfiguration") != azure.ID(nic+"/ipConfigurations/c") {
		t.Errorf("attached: %v", got)
	}
	c.put(nic, nicBody(""))
	c.absent(c.get(basic), "properties.ipAddress", "properties.ipConfiguration")
}

func withIPTags(kind, value string) string {
	return `{` + standard + `,"properties":{"publicIPAllocationMethod":"Static","ipTags":[{"ipTagType":"` + kind + `","tag":"` +
		value + `"}]}}`
}

// Only the FirstPartyUsage tags of an address can change.
func TestIPTags(t *testing.T) {
	c := start(t)
	c.put(publicIP, withIPTags("FirstPartyUsage", "/A"))
	c.has(c.put(publicIP, withIPTags("FirstPartyUsage", "/B")), `{"properties":{"ipTags":[{"ipTagType":"FirstPartyUsage","tag":"/B"}]}}`)
	c.refused("PUT", publicIP, withIPTags("RoutingPreference", "Internet"), 400, "PropertyChangeNotAllowed")
	c.put(publicIP, staticIP)
	routed := net + "/publicIPAddresses/routed"
	c.put(routed, withIPTags("RoutingPreference", "Internet"))
	c.put(routed, withIPTags("RoutingPreference", "Internet"))
	c.refused("PUT", routed, staticIP, 400, "PropertyChangeNotAllowed")
}

func TestDomainNames(t *testing.T) {
	c := start(t)
	labelled := func(family, name string) string {
		return `{` + standard + `,"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"` + family +
			`","dnsSettings":{"domainNameLabel":"` + name + `"}}}`
	}
	label := func(name string) string { return labelled("IPv4", name) }
	available := func(name string) bool {
		return c.get(subscription + "/providers/Microsoft.Network/locations/eastus/CheckDnsNameAvailability?domainNameLabel=" +
			name)["available"] == true
	}
	if !available("web") {
		t.Error("an unused label is not available")
	}
	c.has(c.put(publicIP, label("web")), `{"properties":{"dnsSettings":{"domainNameLabel":"web","fqdn":"web.eastus.cloudapp.azure.com"}}}`)
	if available("web") {
		t.Error("a label in use is available")
	}
	c.put(publicIP, label("web"))
	c.refused("PUT", net+"/publicIPAddresses/other", label("web"), 400, "DnsRecordInUse")
	c.refused("PUT", net+"/publicIPAddresses/other", label("Web"), 400, "InvalidDomainNameLabel")
	c.put(publicIP, label("shop"))
	c.put(net+"/publicIPAddresses/other", label("web"))

	// Each family can have one address with the name.
	six := net + "/publicIPAddresses/six"
	c.has(c.put(six, labelled("IPv6", "shop")),
		`{"properties":{"dnsSettings":{"domainNameLabel":"shop","fqdn":"shop.eastus.cloudapp.azure.com"}}}`)
	c.refused("PUT", net+"/publicIPAddresses/more", labelled("IPv6", "shop"), 400, "DnsRecordInUse")
	c.put(publicIP, label("store"))
	if available("shop") {
		t.Error("a label that an IPv6 address alone has is available")
	}
}

func TestPrefixGivesItsAddresses(t *testing.T) {
	c := start(t)
	prefix := net + "/publicIPPrefixes/prefix"
	got := c.put(prefix, `{`+standard+`,"properties":{"prefixLength":31}}`)
	c.has(got, `{"sku":{"name":"Standard","tier":"Regional"},"properties":{"prefixLength":31,"publicIPAddressVersion":"IPv4","ipTags":[]}}`)
	r := netip.MustParsePrefix(behaviour.Text(got, "properties.ipPrefix"))
	body := `{` + standard + `,"properties":{"publicIPAllocationMethod":"Static","publicIPPrefix":` + ref(prefix) + `}}`
	seen := map[string]bool{}
	for i := range 2 {
		a := behaviour.Text(c.put(fmt.Sprint(net, "/publicIPAddresses/p", i), body), "properties.ipAddress")
		if !r.Contains(netip.MustParseAddr(a)) || seen[a] {
			t.Errorf("address %s of prefix %s, taken: %v", a, r, seen)
		}
		seen[a] = true
	}
	if got := refs(c.get(prefix), "properties.publicIPAddresses"); got != "p0 p1" {
		t.Errorf("addresses of the prefix: %q", got)
	}
	// The prefix has no third address, so the operation fails.
	third := c.do("PUT", net+"/publicIPAddresses/p2", body)
	poll := third.Header.Get("Azure-AsyncOperation")
	c.has(c.get(strings.TrimPrefix(poll, "http://azure")),
		`{"status":"Failed","error":{"code":"PublicIpPrefixOutOfIpAddressesForTheGivenZones"}}`)
	c.delete(net + "/publicIPAddresses/p2")
	c.refused("DELETE", prefix, "", 400, "InUsePublicIpPrefixCannotBeDeleted")
	for i := range 2 {
		c.delete(fmt.Sprint(net, "/publicIPAddresses/p", i))
	}
	c.delete(prefix)
}

func TestPublicAddressRefusals(t *testing.T) {
	c := start(t)
	c.put(publicIP, staticIP)
	other := net + "/publicIPAddresses/other"
	for body, code := range map[string]string{
		`{` + standard + `}`: "StandardSkuPublicIPAddressesMustBeStatic",
		`{"location":"eastus","properties":{"idleTimeoutInMinutes":31}}`:              "InvalidRequestFormat/InvalidPropertyValue",
		`{"location":"eastus","properties":{"publicIPAllocationMethod":"Sometimes"}}`: "InvalidRequestFormat/InvalidJson",
		`{` + standard +
			`,"zones":["4"],"properties":{"publicIPAllocationMethod":"Static"}}`: "InvalidAvailabilityZone",
		`{"location":"westus","sku":{"name":"Standard"},"zones":["1"],
			"properties":{"publicIPAllocationMethod":"Static"}}`: "LocationNotSupportAvailabilityZones",
		`{` + standard + `,"properties":{"publicIPAllocationMethod":"Static","publicIPPrefix":` + ref(net+"/publicIPPrefixes/none") +
			`}}`: "InvalidResourceReference",
		`{"location":"eastus","sku":{"tier":"Global"}}`: "GlobalPublicIPAddressNotSupportedForBasicPublicIpAddress",
	} {
		c.refused("PUT", other, body, 400, code)
	}
	prefix := net + "/publicIPPrefixes/prefix"
	c.put(prefix, `{`+standard+`,"properties":{"prefixLength":31}}`)
	from := `"publicIPPrefix":` + ref(prefix)
	c.refused("PUT", other, `{"location":"eastus","properties":{"publicIPAllocationMethod":"Static",`+from+`}}`, 400,
		"PublicIPAddressSkuMustMatchPublicIPPrefixSku")
	c.refused("PUT", other, strings.Replace(staticIP6, `"properties":{`, `"properties":{`+from+`,`, 1), 400,
		"PublicIPAddressVersionMustMatchPublicIPPrefixVersion")
	c.refused("PUT", other, `{"location":"eastus","zones":["1","2"]}`, 400, "BasicSkuPublicIPAddressCannotHaveMultipleZones")
	c.refused("PUT", net+"/publicIPAddresses/-x", staticIP, 400, "InvalidResourceName")
	c.refused("PUT", net+"/publicIPAddresses/"+strings.Repeat("x", 81), staticIP, 400, "InvalidResourceName")
	c.refused("PUT", publicIP, `{`+standard+`,"zones":["1"],"properties":{"publicIPAllocationMethod":"Static"}}`, 400,
		"ResourceAvailabilityZonesCannotBeModified")
	c.refused("PUT", publicIP, staticIP6, 400, "PropertyChangeNotAllowed")
	c.refused("PUT", publicIP, withIPTags("RoutingPreference", "Internet"), 400, "PropertyChangeNotAllowed")
	if got := c.do("GET", other, ""); got.Status != 404 {
		t.Errorf("a refused address exists: %v", got.Body)
	}
}

// An address in use keeps its SKU, and a static address stays static.
func TestPublicAddressInUse(t *testing.T) {
	c := start(t)
	c.network()
	basic := net + "/publicIPAddresses/basic"
	const static = `{"location":"eastus","properties":{"publicIPAllocationMethod":"Static"}}`
	c.put(basic, static)
	c.put(nic, nicBody(`,"publicIPAddress":`+ref(basic)))
	c.refused("PUT", basic, staticIP, 400, "PublicIPAddressInUseCannotUpdate")
	c.refused("PUT", basic, strings.Replace(static, "Static", "Dynamic", 1), 400, "PublicIPAddressInUseCannotUpdateToDynamic")
	c.put(nic, nicBody(""))
	c.has(c.put(basic, staticIP), `{"sku":{"name":"Standard"}}`)
}

// TestPrivateAddressesAreNeverGivenTwice allocates and frees addresses of a small subnet in any order.
func TestPrivateAddressesAreNeverGivenTwice(t *testing.T) {
	c := start(t)
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/24"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.16/28"}}]}}`)
	const usable = 11 // of 16: the first four and the last are Azure's
	rapid.Check(t, func(t *rapid.T) {
		taken := map[string]string{}
		defer func() {
			for name := range taken {
				c.delete(net + "/networkInterfaces/" + name)
			}
		}()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprint("n", rapid.IntRange(0, usable+2).Draw(t, "interface"))
			path := net + "/networkInterfaces/" + name
			if taken[name] != "" {
				c.delete(path)
				delete(taken, name)
				continue
			}
			properties := ""
			static := fmt.Sprint("10.0.0.", rapid.IntRange(16, 31).Draw(t, "address"))
			if rapid.Bool().Draw(t, "static") {
				properties = `,"privateIPAllocationMethod":"Static","privateIPAddress":"` + static + `"`
			}
			got := c.do("PUT", path, nicBody(properties))
			if got.Status != 201 {
				mustRefuse(t, got, taken, static, properties != "", usable)
				continue
			}
			address := behaviour.Text(behaviour.Objects(got.Body, "properties.ipConfigurations")[0], "properties.privateIPAddress")
			for other, has := range taken {
				if has == address {
					t.Fatalf("%s and %s both have %s", name, other, address)
				}
			}
			if a := netip.MustParseAddr(address).As4(); a[3] < 20 || a[3] > 30 {
				t.Fatalf("%s has the address %s, which is reserved or outside", name, address)
			}
			taken[name] = address
		}
	})
}

// mustRefuse checks the error of a refused allocation.
func mustRefuse(t *rapid.T, got behaviourtest.Answer, taken map[string]string, wanted string, static bool, usable int) {
	t.Helper()
	has := false
	for _, address := range taken {
		has = has || address == wanted
	}
	a := netip.MustParseAddr(wanted).As4()[3]
	reserved := a < 20 || a > 30
	want := "SubnetIsFull"
	switch {
	case static && reserved:
		want = "PrivateIPAddressInReservedRange"
	case static && has:
		want = "PrivateIPAddressIsAllocated"
	case len(taken) < usable:
		want = "an address"
	}
	if got.Code() != want {
		t.Fatalf("want %s for %s (static %v) with %v taken, got %v", want, wanted, static, taken, got.Body)
	}
}

func TestAllocatePrivate(t *testing.T) {
	c := start(t)
	c.network()
	c.put(nic, nicBody(""))
	err := c.azure.Do(func(w behaviour.World) error {
		for _, step := range []struct{ family, wanted, want, fails string }{
			{ipam.IPv4, "", "10.0.0.5", ""},
			{ipam.IPv6, "", "fd00:1::4", ""},
			{ipam.IPv4, "10.0.0.200", "10.0.0.200", ""},
			{ipam.IPv4, "10.0.0.4", "", "PrivateIPAddressIsAllocated"},
			{ipam.IPv4, "10.0.0.255", "", "PrivateIPAddressInReservedRange"},
			{ipam.IPv6, "fd00:1:0:1::9", "", "PrivateIPAddressNotInSubnet"},
			{ipam.IPv4, "ten", "", "InvalidIPAddressFormat"},
		} {
			addresses, err := ipam.NewAllocator(w, subnet, "")
			if err != nil {
				return err
			}
			got, err := addresses.Take(net+"/networkInterfaces/new/ipConfigurations/c", step.family, step.wanted)
			if got != step.want || (err != nil) != (step.fails != "") || err != nil && !strings.Contains(err.Error(), step.fails) {
				t.Errorf("%s %q: %q, %v", step.family, step.wanted, got, err)
			}
		}
		many, err := ipam.NewAllocator(w, subnet, "")
		if err != nil {
			return err
		}
		for i := range 3 {
			got, err := many.Take(azure.ID(fmt.Sprint("/u/", i)), ipam.IPv4, "")
			if want := fmt.Sprint("10.0.0.", 5+i); got != want || err != nil {
				t.Errorf("address %d of many: %s, %v", i, got, err)
			}
		}
		_, err = ipam.NewAllocator(w, vnet+"/subnets/none", "")
		if err == nil {
			t.Error("an address of a subnet that does not exist")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
