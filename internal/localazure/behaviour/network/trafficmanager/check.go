package trafficmanager

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Limits of Azure.
const (
	mostProfiles  = 200 // of a subscription
	mostEndpoints = 200 // of a profile
	mostHeaders   = 8
	mostRanges    = 8
	mostReturned  = 8
	mostPriority  = 1000
	mostWeight    = 1000
	longestTTL    = 2147483647
)

// checkName checks the DNS name of a profile, which no other profile has, and writes its full name.
func checkName(c *behaviour.Call) error {
	relative := behaviour.Text(c.Doc, "properties.dnsConfig.relativeName")
	if relative == "" {
		return badRequest("The property 'dnsConfig.relativeName' of profile '%s' is missing.", c.ID.Name())
	}
	if !isRelativeName(relative) {
		return badRequest("The property 'dnsConfig.relativeName' of profile '%s' is no DNS label: '%s'.", c.ID.Name(), relative)
	}
	if id, _, taken := Find(c.World, relative); taken && !id.Equal(c.ID) {
		return behaviour.Conflict("Conflict", "Domain name %s.%s already exists. Please choose a different DNS prefix.", relative, Domain)
	}
	if c.Old == nil && c.Count(azure.SubscriptionID(c.ID.Subscription()), Type) >= mostProfiles {
		return badRequest("The subscription has %d Traffic Manager profiles, the most that it can have.", mostProfiles)
	}
	behaviour.Set(c.Doc, "properties.dnsConfig.fqdn", strings.ToLower(relative)+"."+Domain)
	return within(c.Doc, "profile '"+c.ID.Name()+"'", "properties.dnsConfig.ttl", 0, longestTTL)
}

// isRelativeName reports whether a text is one label of a DNS name.
func isRelativeName(text string) bool { return !strings.Contains(text, ".") && isHost(text) }

// isHost reports whether a text is a DNS name.
func isHost(text string) bool {
	const longestLabel, longestName = 63, 253
	if len(text) > longestName {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		other := func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}
		if label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, other) {
			return false
		}
	}
	return true
}

// isTarget reports whether a text is a DNS name or an IP address.
func isTarget(text string) bool {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Zone() == ""
	}
	return isHost(text)
}

// within refuses a number that is given and outside of its range.
func within(doc behaviour.Object, of, path string, least, most int) error {
	if behaviour.At(doc, path) == nil {
		return nil
	}
	if n, ok := behaviour.Int(doc, path); !ok || n < least || n > most {
		return badRequest("The value '%v' of property '%s' of %s must be a number from %d to %d.", behaviour.At(doc, path),
			strings.TrimPrefix(path, "properties."), of, least, most)
	}
	return nil
}

// checkMonitor checks how the endpoints of a profile are probed, and writes the timeout of probes every 10 seconds.
func checkMonitor(c *behaviour.Call) error {
	const at = "properties.monitorConfig."
	of := "profile '" + c.ID.Name() + "'"
	stream := behaviour.Text(c.Doc, at+"protocol") == "TCP"
	interval, given := behaviour.Int(c.Doc, at+"intervalInSeconds")
	const fast, slow = 10, 30
	mostTimeout := 10
	if interval == fast {
		mostTimeout = 9
		behaviour.Default(c.Doc, at+"timeoutInSeconds", mostTimeout)
	}
	if err := checkPath(c.Doc, of); err != nil {
		return err
	}
	switch {
	case behaviour.Text(c.Doc, at+"protocol") == "" || behaviour.At(c.Doc, at+"port") == nil:
		return badRequest("The property 'monitorConfig' of %s must have a protocol and a port.", of)
	case given && interval != fast && interval != slow:
		return badRequest("The value '%d' of property 'monitorConfig.intervalInSeconds' of %s must be %d or %d.", interval, of, fast, slow)
	case stream && len(behaviour.Array(c.Doc, at+"expectedStatusCodeRanges")) > 0:
		return badRequest("The property 'monitorConfig.expectedStatusCodeRanges' of %s must be empty with the protocol TCP.", of)
	}
	for _, r := range []struct {
		name        string
		least, most int
	}{{"port", 1, 65535}, {"timeoutInSeconds", 5, mostTimeout}, {"toleratedNumberOfFailures", 0, 9}} {
		if err := within(c.Doc, of, at+r.name, r.least, r.most); err != nil {
			return err
		}
	}
	if err := checkHeaders(c.Doc, of, at+"customHeaders"); err != nil {
		return err
	}
	return checkRanges(c.Doc, of, at+"expectedStatusCodeRanges")
}

// checkPath checks the path of probes: HTTP needs one, and TCP has none.
func checkPath(doc behaviour.Object, of string) error {
	path := behaviour.Text(doc, "properties.monitorConfig.path")
	switch stream := behaviour.Text(doc, "properties.monitorConfig.protocol") == "TCP"; {
	case stream && path != "":
		return badRequest("The property 'monitorConfig.path' of %s must be empty with the protocol TCP.", of)
	case !stream && !strings.HasPrefix(path, "/"):
		return badRequest("The property 'monitorConfig.path' of %s must begin with '/': '%s'.", of, path)
	}
	return nil
}

func checkHeaders(doc behaviour.Object, of, path string) error {
	headers := behaviour.Objects(doc, path)
	if len(headers) > mostHeaders {
		return badRequest("The property 'customHeaders' of %s has %d headers; at most %d are allowed.", of, len(headers), mostHeaders)
	}
	for _, h := range headers {
		if name := behaviour.Text(h, "name"); name == "" || strings.ContainsAny(name+behaviour.Text(h, "value"), "\r\n") {
			return badRequest("The property 'customHeaders' of %s has a header without a valid name and value: '%s'.", of, name)
		}
	}
	return nil
}

func checkRanges(doc behaviour.Object, of, path string) error {
	ranges := behaviour.Objects(doc, path)
	if len(ranges) > mostRanges {
		return badRequest("The property 'expectedStatusCodeRanges' of %s has %d ranges; at most %d are allowed.", of, len(ranges),
			mostRanges)
	}
	for _, r := range ranges {
		const least, most = 100, 999
		low, lowGiven := behaviour.Int(r, "min")
		high, highGiven := behaviour.Int(r, "max")
		if !lowGiven || !highGiven || low < least || high > most || low > high {
			return badRequest("The range '%v-%v' of 'expectedStatusCodeRanges' of %s must be two numbers from %d to %d.", r["min"],
				r["max"], of, least, most)
		}
	}
	return nil
}

// checkMaxReturn checks how many endpoints the method MultiValue returns. Other methods do not read it: exported profiles have 0 there.
func checkMaxReturn(c *behaviour.Call) error {
	if n, given := behaviour.Int(c.Doc, "properties.maxReturn"); given && n == 0 && method(c.Doc) != multiValue {
		return nil
	}
	return within(c.Doc, "profile '"+c.ID.Name()+"'", "properties.maxReturn", 1, mostReturned)
}

// checkEndpoint checks the properties of an endpoint.
func checkEndpoint(c *behaviour.Call) error {
	of := "endpoint '" + c.ID.Name() + "'"
	for _, r := range []struct {
		name string
		most int
	}{{"weight", mostWeight}, {"priority", mostPriority}, {"minChildEndpoints", mostEndpoints}} {
		if err := within(c.Doc, of, "properties."+r.name, 1, r.most); err != nil {
			return err
		}
	}
	for _, name := range []string{"minChildEndpointsIPv4", "minChildEndpointsIPv6"} {
		if err := within(c.Doc, of, "properties."+name, 0, mostEndpoints); err != nil {
			return err
		}
	}
	for _, s := range behaviour.Objects(c.Doc, "properties.subnets") {
		if _, _, ok := rangeOf(s); !ok {
			return badRequest("The subnets of %s have an element that is no range of addresses: '%s'.", of, behaviour.Text(s, "first"))
		}
	}
	return checkHeaders(c.Doc, of, "properties.customHeaders")
}

// rangeOf returns the first and the last address of an element of subnets. The element has a last address, or the length of a prefix, or
// is one address.
func rangeOf(subnet behaviour.Object) (first, last netip.Addr, ok bool) {
	first, err := netip.ParseAddr(behaviour.Text(subnet, "first"))
	if err != nil {
		return first, last, false
	}
	if bits, given := behaviour.Int(subnet, "scope"); given {
		prefix, err := first.Prefix(bits)
		if err != nil {
			return first, last, false
		}
		return prefix.Addr(), lastOf(prefix), true
	}
	if behaviour.Text(subnet, "last") == "" {
		return first, first, true
	}
	last, err = netip.ParseAddr(behaviour.Text(subnet, "last"))
	return first, last, err == nil && first.BitLen() == last.BitLen() && first.Compare(last) <= 0
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	const bitsOfByte = 8
	for i := p.Bits(); i < len(bytes)*bitsOfByte; i++ {
		bytes[i/bitsOfByte] |= 1 << (bitsOfByte - 1 - i%bitsOfByte)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// checkProfile checks the rules between a profile and its endpoints.
func checkProfile(c *behaviour.Call) error {
	all := endpoints(c.Doc)
	if len(all) > mostEndpoints {
		return badRequest("The profile '%s' has %d endpoints; at most %d are allowed.", c.ID.Name(), len(all), mostEndpoints)
	}
	if err := checkPriorities(c.ID, all); err != nil {
		return err
	}
	if err := checkRecordTypes(c, all); err != nil {
		return err
	}
	if check := methods[method(c.Doc)].check; check != nil {
		return check(c.ID, all)
	}
	return nil
}

func checkPriorities(profile azure.ID, all []behaviour.Object) error {
	by := map[int]string{}
	for _, e := range all {
		p, _ := behaviour.Int(e, priorityPath)
		if other, taken := by[p]; taken {
			return badRequest("The endpoints '%s' and '%s' of profile '%s' have the same priority '%d'.", other, behaviour.Text(e, "name"),
				profile.Name(), p)
		}
		by[p] = behaviour.Text(e, "name")
	}
	return nil
}

// The types of records to which endpoints lead.
const (
	domainName  = "DomainName"
	ipv4Address = "IPv4Address"
	ipv6Address = "IPv6Address"
)

// recordType returns the type of records to which an endpoint leads, "" for a nested endpoint.
func recordType(endpoint behaviour.Object) string {
	a, err := netip.ParseAddr(behaviour.Text(endpoint, "properties.target"))
	switch {
	case kindOf(endpoint) == nestedKind:
		return ""
	case err != nil:
		return domainName
	case a.Is4():
		return ipv4Address
	}
	return ipv6Address
}

// checkRecordTypes refuses endpoints of different types in one profile, other than IPv4 and IPv6 addresses with the method MultiValue.
func checkRecordTypes(c *behaviour.Call, all []behaviour.Object) error {
	allowed := behaviour.Texts(c.Doc, "properties.allowedEndpointRecordTypes")
	first := ""
	for _, e := range all {
		t := recordType(e)
		if t == "" {
			continue
		}
		if len(allowed) > 0 && !slices.Contains(allowed, t) && !slices.Contains(allowed, "Any") {
			return badRequest("The endpoint '%s' of profile '%s' has the record type %s. Allowed are: %s.", behaviour.Text(e, "name"),
				c.ID.Name(), t, strings.Join(allowed, ", "))
		}
		if first == "" {
			first = t
		}
		if t != first && method(c.Doc) != multiValue {
			return badRequest("The endpoints of profile '%s' have the record types %s and %s. Only one is allowed with the routing method "+
				"%s.", c.ID.Name(), first, t, method(c.Doc))
		}
	}
	return nil
}

// checkLocations refuses endpoints without a region that are no Azure resources.
func checkLocations(_ azure.ID, all []behaviour.Object) error {
	for _, e := range all {
		if kindOf(e) != azureKind && behaviour.Text(e, "properties.endpointLocation") == "" {
			return badRequest("The location must be specified for the endpoint '%s' with the routing method Performance.",
				behaviour.Text(e, "name"))
		}
	}
	return nil
}

// checkAddresses refuses endpoints that are no addresses.
func checkAddresses(_ azure.ID, all []behaviour.Object) error {
	for _, e := range all {
		if kind := kindOf(e); kind == azureKind || recordType(e) == domainName {
			return badRequest("The endpoint '%s' must be external and have an IP address as its target with the routing method MultiValue.",
				behaviour.Text(e, "name"))
		}
	}
	return nil
}

// checkGeography refuses endpoints without regions, and a region of two endpoints.
func checkGeography(_ azure.ID, all []behaviour.Object) error {
	by := map[string]string{}
	for _, e := range all {
		name, codes := behaviour.Text(e, "name"), behaviour.Texts(e, "properties.geoMapping")
		if len(codes) == 0 {
			return badRequest("The endpoint '%s' must have a 'geoMapping' with the routing method Geographic.", name)
		}
		for _, code := range codes {
			if other, taken := by[strings.ToUpper(code)]; taken {
				return badRequest("The region '%s' is mapped to the endpoints '%s' and '%s'. It can be mapped to one.", code, other, name)
			}
			by[strings.ToUpper(code)] = name
		}
	}
	return nil
}

// checkSubnets refuses addresses of two endpoints, and two endpoints for all other addresses.
func checkSubnets(_ azure.ID, all []behaviour.Object) error {
	type subnet struct {
		first, last netip.Addr
		of          string
	}
	var have []subnet
	rest := ""
	for _, e := range all {
		name, subnets := behaviour.Text(e, "name"), behaviour.Objects(e, "properties.subnets")
		if len(subnets) == 0 {
			if rest != "" {
				return badRequest("The endpoints '%s' and '%s' have no subnets. One endpoint can have none.", rest, name)
			}
			rest = name
		}
		for _, s := range subnets {
			first, last, _ := rangeOf(s)
			for _, h := range have {
				if first.Compare(h.last) <= 0 && h.first.Compare(last) <= 0 {
					return badRequest("The subnets of the endpoints '%s' and '%s' overlap at '%s'.", h.of, name, first)
				}
			}
			have = append(have, subnet{first, last, name})
		}
	}
	return nil
}

// HasAddresses reports whether all endpoints of a stored profile are addresses, and at least one of them of a family. A nested endpoint
// counts as both.
func HasAddresses(profile behaviour.Object, family func(netip.Addr) bool) bool {
	found := false
	for _, e := range endpoints(profile) {
		a, err := netip.ParseAddr(behaviour.Text(e, "properties.target"))
		nested := kindOf(e) == nestedKind
		if err != nil && !nested {
			return false
		}
		found = found || nested || family(a)
	}
	return found
}
