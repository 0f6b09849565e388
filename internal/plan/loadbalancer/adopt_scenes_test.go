package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// Documents of others, and configurations.

const otherGroup = "/subscriptions/s/resourceGroups/other/providers/Microsoft.Network/"

func ownIP(id, address string) string {
	return `{"id":"` + id +
		`","location":"westeurope","sku":{"name":"Standard"},"tags":{"owner":"them"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"` + address + `"}}`
}

func prefix(name string) string { return network + "publicIPPrefixes/" + name }

// securityGroup has rules of others at the priorities.
func securityGroup(direction string, priorities ...int) string {
	var rules []string
	for _, n := range priorities {
		rules = append(rules,
			fmt.Sprintf(`{"name":"theirs-%d","properties":{"priority":%d,"direction":"%s","access":"Allow","protocol":"*","sourceAddressPrefix":"*","sourcePortRange":"*","destinationAddressPrefix":"10.0.0.0/8","destinationPortRange":"*"}}`, n, n, direction))
	}
	return `{"id":"` + nsgID + `","location":"westeurope","properties":{"securityRules":[` + strings.Join(rules, ",") + `]}}`
}

// crowded is a security group with a rule of others that has n destinations.
func crowded(n int) string {
	var to []string
	for i := range n {
		to = append(to, fmt.Sprintf(`"10.%d.%d.%d"`, i>>16, i>>8&255, i&255))
	}
	return strings.Replace(securityGroup("Inbound", 100), `"destinationAddressPrefix":"10.0.0.0/8"`, `"destinationAddressPrefixes":[`+
		strings.Join(to, ",")+`]`, 1)
}

func sharedProbes(c *loadbalancer.Config) {
	c.SharedProbe = &loadbalancer.SharedProbe{Port: 10256, Path: "/healthz"}
}

func byIP(c *loadbalancer.Config) { c.PoolByIP = true }

// ownTags asks for tags that name the Services of a public IP.
var ownTags = note("azure-pip-tags", "a=b,k8s-azure-service=default/x,k8s-azure-cluster-name=theirs")

func tagged(c *loadbalancer.Config) { c.Tags = azure.Tags{"team": "x", "cost": "Y"} }

// two are two load balancers, each with a scale set.
func two(c *loadbalancer.Config) {
	c.PoolByIP = true
	c.Balancers = []loadbalancer.Balancer{
		{Name: "kubernetes", AllowPlacement: true, PrimaryVMSet: "np"},
		{Name: "lb2", AllowPlacement: true, PrimaryVMSet: "np2"},
	}
}

var (
	twoSets = []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np2"}, {n: 3, set: "np2"}}
	second  = note("azure-load-balancer-configurations", "lb2")
	long    = strings.Repeat("s", 30) + strings.Repeat("9", 50)
)

func marked(i int, labels map[string]string) []machine {
	ms := []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np"}}
	ms[i].labels = labels
	return ms
}

func excluded(is ...int) []machine {
	ms := []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np"}}
	for _, i := range is {
		ms[i].labels = map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": "true"}
	}
	return ms
}

// stands puts something of others at the frontend of Service a.
func stands(kind, props string) func(*subscription) {
	return func(w *subscription) {
		lb := w.docs[azure.ID(lbID).Key()]
		fe := `{"id":"` + lbID + `/frontendIPConfigurations/` + baseOf(service("a")) + `"}`
		p := sub(lb, "properties")
		list, _ := p[kind].([]any)
		p[kind] = append(list, parse(`{"name":"theirs","properties":`+strings.ReplaceAll(props, "FRONTEND", fe)+`}`))
		w.put(lbID, lb)
	}
}

// addForeignParts adds a frontend, pool, rule, probe and outbound rule that kaz does not manage.
func addForeignParts(w *subscription) {
	w.put(network+"publicIPAddresses/theirs", parse(ownIP(network+"publicIPAddresses/theirs", "20.99.0.1")))
	lb := w.docs[azure.ID(lbID).Key()]
	fe := `{"id":"` + lbID + `/frontendIPConfigurations/theirs"}`
	p := sub(lb, "properties")
	for kind, body := range map[string]string{
		"frontendIPConfigurations": `{"publicIPAddress":{"id":"` + network + `publicIPAddresses/theirs"}}`,
		"backendAddressPools":      `{"drainPeriodInSeconds":60}`,
		"loadBalancingRules": `{"protocol":"Tcp","frontendPort":80,"backendPort":8080,"frontendIPConfiguration":` + fe +
			`,"backendAddressPool":{"id":"` + lbID + `/backendAddressPools/theirs"}}`,
		"probes": `{"protocol":"Tcp","port":8080,"intervalInSeconds":15,"numberOfProbes":4}`,
		"outboundRules": `{"protocol":"All","frontendIPConfigurations":[` + fe + `],"backendAddressPool":{"id":"` + lbID +
			`/backendAddressPools/theirs"}}`,
	} {
		list, _ := p[kind].([]any)
		p[kind] = append(list, parse(`{"name":"theirs","properties":`+body+`}`))
	}
	w.put(lbID, lb)
}

// managedOutbound is what a managed cluster has besides. Its pools hold the cluster's nodes only.
func managedOutbound(w *subscription) {
	const name = "99999999-aaaa-bbbb-cccc-dddddddddddd"
	lb := w.docs[azure.ID(lbID).Key()]
	if lb == nil { // it is there before the first Service
		lb = parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"kubernetes","properties":{}}]}}`)
	}
	w.put(network+"publicIPAddresses/"+name,
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"type":"aks-slb-managed-outbound-ip"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`))
	props := sub(lb, "properties")
	for kind, body := range map[string]string{
		"frontendIPConfigurations": `{"name":"` + name + `","properties":{"publicIPAddress":{"id":"` + network + `publicIPAddresses/` +
			name + `"}}}`,
		"backendAddressPools": `{"name":"aksOutboundBackendPool","properties":{}}`,
		"outboundRules": `{"name":"aksOutboundRule","properties":{"protocol":"All","allocatedOutboundPorts":0,"idleTimeoutInMinutes":30,"frontendIPConfigurations":[{"id":"` +
			lbID + `/frontendIPConfigurations/` + name + `"}],"backendAddressPool":{"id":"` + lbID +
			`/backendAddressPools/aksOutboundBackendPool"}}}`,
	} {
		list, _ := props[kind].([]any)
		props[kind] = append(list, parse(body))
	}
	w.put(lbID, lb)
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		c := ipConfiguration(w.docs[key], false)
		if c == nil {
			continue
		}
		pools, _ := c["loadBalancerBackendAddressPools"].([]any)
		for _, pool := range []azure.ID{"kubernetes", "aksOutboundBackendPool"} {
			id := lbID + "/backendAddressPools/" + pool
			if !slices.ContainsFunc(pools, func(p any) bool { return azure.ID(at(p.(object), "id")).Equal(id) }) {
				pools = append(pools, ref(id))
			}
		}
		c["loadBalancerBackendAddressPools"] = pools
		w.put(azure.ID(at(w.docs[key], "id")), w.docs[key])
	}
}

// fromInternet allows the Internet at port 80 of Services in all their families, besides the ranges' own rules. Older
// versions did so where ranges allow every source.
func fromInternet(names ...string) func(*subscription) {
	return func(w *subscription) {
		nsg := w.docs[azure.ID(nsgID).Key()]
		rs := &ruleSet{rules: children(sub(nsg, "properties"), "securityRules")}
		to := map[bool][]string{}
		for _, name := range names {
			for _, address := range addressesAt(w, baseOf(service(name))) {
				six := strings.Contains(address, ":")
				to[six] = append(to[six], address)
			}
		}
		for _, six := range []bool{false, true} {
			rs.allow(six, "Tcp", []string{"Internet"}, []string{"80"}, to[six])
		}
		setList(nsg, "securityRules", rs.rules)
		w.put(nsgID, nsg)
	}
}

// saved writes the security rules in the other way that Azure has for each.
func saved(w *subscription) {
	for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
		props := sub(r, "properties")
		for one, many := range map[string]string{"sourceAddressPrefix": "sourceAddressPrefixes",
			"destinationAddressPrefix": "destinationAddressPrefixes", "destinationPortRange": "destinationPortRanges"} {
			list, _ := props[many].([]any)
			slices.Reverse(list)
			switch {
			case len(list) == 1:
				props[one], props[many] = list[0], []any{}
			case len(list) == 0 && at(props, one) != "*":
				props[many] = []any{props[one]}
				delete(props, one)
			}
		}
		delete(props, "sourcePortRange")
		props["sourcePortRanges"] = []any{"*"}
	}
}

// addressesAt are the addresses of the frontends that carry a base name.
func addressesAt(w *subscription, base string) (addresses []string) {
	for _, id := range []string{lbID, innerID} {
		for _, fe := range children(sub(w.docs[azure.ID(id).Key()], "properties"), "frontendIPConfigurations") {
			if !strings.HasPrefix(nameOf(fe), base) {
				continue
			}
			address := at(fe, "properties", "privateIPAddress")
			if ip := at(fe, "properties", "publicIPAddress", "id"); ip != "" {
				address = at(w.docs[azure.ID(ip).Key()], "properties", "ipAddress")
			}
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// sharedRules are what versions before 1.29 wrote for port 80 of Services that shared their
// rules, besides a rule of others that looks nearly so.
func sharedRules(names ...string) func(*subscription) {
	return func(w *subscription) {
		nsg := w.docs[azure.ID(nsgID).Key()]
		rules := children(sub(nsg, "properties"), "securityRules")
		var to []string
		for _, name := range names {
			to = append(to, addressesAt(w, baseOf(service(name)))...)
		}
		for i, one := range []struct{ name, access, source, port string }{
			{"shared-TCP-80-Internet", "Allow", "Internet", "80"},
			{"shared-TCP-80-deny_all", "Deny", "*", "80"},
			{"shared-TCP-80-office", "Allow", "10.0.0.0/8", "8080"}, // a foreign rule
		} {
			r := parse(fmt.Sprintf(`{"name":%q,"properties":{"priority":%d,"direction":"Inbound","access":%q,"protocol":"Tcp","sourceAddressPrefix":%q,"sourcePortRange":"*","destinationPortRange":%q}}`,
				one.name, 600+i, one.access, one.source, one.port))
			setDestinations(r, to)
			rules = append(rules, r)
		}
		setList(nsg, "securityRules", rules)
		w.put(nsgID, nsg)
	}
}

// allowName is the name of the rule that lets the Internet in at port 80.
func allowName(six bool) string {
	rs := &ruleSet{}
	rs.allow(six, "Tcp", []string{"Internet"}, []string{"80"}, []string{"x"})
	return nameOf(rs.rules[0])
}

func retag(name string, how func(tags object)) func(*subscription) {
	return func(w *subscription) { how(sub(w.docs[azure.ID(network+"publicIPAddresses/"+name).Key()], "tags")) }
}

// theirTags puts a tag of others at all that can be tagged.
func theirTags(w *subscription) {
	for key, doc := range w.docs {
		if _, tagged := doc["location"]; tagged && azure.ID(key).Key() != azure.ID(vmss).Key() {
			sub(doc, "tags")["theirs"] = "stays"
		}
	}
}

var (
	ipOfA     = "kubernetes-" + baseOf(service("a"))
	unmanaged = func(w *subscription) {
		w.put(network+"privateLinkServices/theirs",
			parse(`{"location":"westeurope","tags":{},"properties":{"loadBalancerFrontendIpConfigurations":[{"id":"`+
				innerID+`/frontendIPConfigurations/`+baseOf(service("a"))+
				`"}],"ipConfigurations":[{"name":"x","properties":{"primary":true}}]}}`))
	}
	longSubnet = `{"id":"` + vnetID + `/subnets/` + long + `","properties":{"addressPrefixes":["10.0.0.0/16"]}}`
)

// scenes are the states of the scenarios, by their rows.
var scenes = []scene{
	{row: 1, is: "defaults", have: list(web("a"))},
	{row: 1, is: "things elsewhere", config: func(c *loadbalancer.Config) {
		c.NetworkSubscription, c.LoadBalancerResourceGroup, c.SecurityGroupResourceGroup, c.VirtualNetworkResourceGroup,
			c.PrivateLinkResourceGroup = "net", "lbs", "nsgs", "vnets", "links"
	}, given: []string{
		strings.Replace(securityGroup("Inbound", 500), "/subscriptions/s/resourceGroups/rg/", "/subscriptions/net/resourceGroups/nsgs/", 1),
		`{"id":"/subscriptions/net/resourceGroups/vnets/providers/Microsoft.Network/virtualNetworks/v/subnets/n","properties":{"addressPrefixes":["10.0.0.0/16"]}}`,
	}, have: list(web("a"), web("b", inside, linked))},
	{row: 1, is: "things elsewhere, by IP",
		config: func(c *loadbalancer.Config) { c.LoadBalancerResourceGroup, c.PoolByIP = "lbs", true },
		have:   list(web("a"), web("b", inside))},
	{row: 1, is: "another name", config: func(c *loadbalancer.Config) { c.LoadBalancerName = "gate" },
		have: list(web("a"), web("b", inside))},
	{row: 1, is: "no outbound SNAT", config: func(c *loadbalancer.Config) { c.DisableOutboundSNAT, c.Zones = true, nil },
		have: list(web("a"), web("b", inside))},
	{row: 2, is: "deleted", have: list(web("a")), gone: []string{"a"}},
	{row: 2, is: "deleted beside another", have: list(web("a"), web("b")), gone: []string{"a"}},
	{row: 3, is: "two ports", have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443))))},
	{row: 4, is: "two at one port", have: list(web("a"), web("b"))},
	{row: 5, is: "one of two goes", have: list(web("a"), web("b"), web("c")), gone: []string{"b"}},
	{row: 6, is: "TCP and UDP", have: list(web("a", ports(tcp(53, 30053), udp(53, 30054))))},
	{row: 7, is: "port changed", before: list(web("a")), have: list(web("a", ports(other)))},
	{row: 8, is: "local", have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443), udp(443, 30444)), localAt(31000)))},
	{row: 8, is: "local with probe values of its port",
		have: list(web("a", localAt(31000), note("port_31000_health-probe_interval", "10"),
			note("azure-load-balancer-health-probe-num-of-probe", "3")))},
	{row: 8, is: "local without node ports", have: list(web("a", ports(tcp(80, 0)), localAt(31000)))},
	{row: 9, is: "cluster to local", before: list(web("a")), have: list(web("a", localAt(31000)))},
	{row: 9, is: "local to cluster", before: list(web("a", localAt(31000))), have: list(web("a"))},
	{row: 10, is: "local UDP", have: list(web("a", ports(udp(53, 30053)), localAt(31000)))},
	{row: 11, is: "internal", have: list(web("a", inside), web("b"))},
	{row: 12, is: "internal with ranges", have: list(web("a", inside, letsIn("10.0.0.0/8", "172.16.0.0/12")))},
	{row: 13, is: "internal and open", have: list(web("a", inside, letsIn("0.0.0.0/0")))},
	{row: 14, is: "subnet", have: list(web("a", inside, note("azure-load-balancer-internal-subnet", "apps")))},
	{row: 14, is: "subnet without being internal", have: list(web("a", note("azure-load-balancer-internal-subnet", "apps")))},
	{row: 15, is: "long subnet", given: []string{longSubnet},
		have: list(web("a", inside, note("azure-load-balancer-internal-subnet", long)))},
	{row: 15, is: "long subnet of two families", given: []string{strings.Replace(longSubnet, `16"`, `16","fd00::/64"`, 1)},
		have: list(web("a", dual, inside, note("azure-load-balancer-internal-subnet", long)))},
	{row: 16, is: "blank subnet", have: list(web("a", inside, note("azure-load-balancer-internal-subnet", "  ")))},
	{
		row: 17, is: "subnet changed", before: list(web("a", inside, note("azure-load-balancer-internal-subnet", "n"))),
		have: list(web("a", inside, note("azure-load-balancer-internal-subnet", "apps"))),
	},
	{row: 17, is: "subnet no more", before: list(web("a", inside, note("azure-load-balancer-internal-subnet", "apps"))),
		have: list(web("a", inside))},
	{row: 18, is: "external to internal", before: list(web("a")), have: list(web("a", inside))},
	{row: 18, is: "external to internal beside others", before: list(web("a"), web("b"), web("c", inside)),
		have: list(web("a", inside), web("b"), web("c", inside))},
	{row: 19, is: "internal to external", before: list(web("a", inside)), have: list(web("a"))},
	{row: 20, is: "static", have: list(web("a", inside, note("azure-load-balancer-ipv4", "10.0.0.99")))},
	{row: 20, is: "static by spec", have: list(web("a", inside, pins("10.0.0.99")))},
	{
		row: 20, is: "static changed", before: list(web("a", inside, note("azure-load-balancer-ipv4", "10.0.0.99"))),
		have: list(web("a", inside, note("azure-load-balancer-ipv4", "10.0.0.98"))),
	},
	{row: 20, is: "static shared",
		have: list(web("a", inside, pins("10.0.0.99")), web("b", inside, ports(other), note("azure-load-balancer-ipv4", "10.0.0.99")))},
	{
		row: 20, is: "static shared, one deleted", gone: []string{"a"},
		have: list(web("a", inside, pins("10.0.0.99")), web("b", inside, ports(other), note("azure-load-balancer-ipv4", "10.0.0.99"))),
	},
	{row: 20, is: "static no more", before: list(web("a", inside, pins("10.0.0.99"))), have: list(web("a", inside))},
	{row: 21, is: "all ports",
		have: list(web("a", inside, ports(tcp(80, 30080), tcp(443, 30443)),
			note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 21, is: "all ports, UDP first",
		have: list(web("a", inside, ports(udp(80, 30081), tcp(443, 30443)),
			note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 21, is: "all ports, local",
		have: list(web("a", inside, localAt(31000), ports(tcp(80, 30080), tcp(443, 30443)),
			note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 22, is: "all ports with SCTP",
		have: list(web("a", inside, ports(sctp(90, 30090), tcp(80, 30080)),
			note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 23, is: "SCTP", have: list(web("a")), now: map[string]edit{"a": ports(sctp(90, 30090))}},
	{row: 24, is: "all ports external",
		have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443)), note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 25, is: "own public IP by address", given: []string{ownIP(network+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", pins("20.200.0.1")))},
	{row: 25, is: "own public IP by annotation", given: []string{ownIP(network+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", note("azure-load-balancer-ipv4", "20.200.0.1")))},
	{
		row: 26, is: "own public IP of another group", given: []string{ownIP(otherGroup+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", note("azure-pip-name", "mine"), note("azure-load-balancer-resource-group", "other"))),
	},
	{row: 26, is: "own public IP", given: []string{ownIP(network+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", note("azure-pip-name", "mine")))},
	{row: 26, is: "managed public IP of another group", have: list(web("a", note("azure-load-balancer-resource-group", "other")))},
	{row: 27, is: "missing public IP", have: list(web("a"), web("b")), now: map[string]edit{"a": note("azure-pip-name", "none")}},
	{row: 28, is: "no public address", have: list(web("a")), now: map[string]edit{"a": pins("10.0.0.1")}},
	{row: 29, is: "address without a public IP", have: list(web("a")), now: map[string]edit{"a": pins("20.200.0.9")}},
	{
		row: 30, is: "managed to own", given: []string{ownIP(otherGroup+"publicIPAddresses/mine", "20.200.0.1")},
		before: list(web("a"), web("b")),
		have:   list(web("a", note("azure-pip-name", "mine"), note("azure-load-balancer-resource-group", "other")), web("b")),
	},
	{row: 31, is: "shared", have: list(web("a"), web("b", pins("@a"), ports(other)))},
	{row: 31, is: "shared, first deleted", have: list(web("a"), web("b", pins("@a"), ports(other))), gone: []string{"a"}},
	{row: 31, is: "shared, second deleted", have: list(web("a"), web("b", pins("@a"), ports(other))), gone: []string{"b"}},
	{row: 31, is: "shared, both deleted", have: list(web("a"), web("b", pins("@a"), ports(other))), gone: []string{"a", "b"}},
	{row: 31, is: "shared by three, one deleted",
		have: list(web("a"), web("b", pins("@a"), ports(other)), web("c", pins("@a"), ports(tcp(82, 30282)))), gone: []string{"b"}},
	{row: 31, is: "shared by name", have: list(web("a"), web("b", note("azure-pip-name", ipOfA), ports(other)))},
	{
		row: 31, is: "shared, own public IP", given: []string{ownIP(network+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", pins("20.200.0.1"), localAt(31000)), web("b", note("azure-pip-name", "mine"), ports(other))),
	},
	{row: 31, is: "shared in one family, D38", have: list(web("a"), web("b", dual, note("azure-load-balancer-ipv4", "@a"), ports(other)))},
	{row: 32, is: "same port", have: list(web("a")), more: list(web("b", pins("@a")))},
	{row: 33, is: "prefix", have: list(web("a", note("azure-pip-prefix-id", prefix("p"))))},
	{row: 33, is: "prefix of two families",
		have: list(web("a", dual, note("azure-pip-prefix-id", prefix("p")), note("azure-pip-prefix-id-ipv6", prefix("p6"))))},
	{row: 34, is: "prefix and IPv6 alone", have: list(web("a", six, note("azure-pip-prefix-id", prefix("p"))), web("b"))},
	{
		row: 35, is: "IP tags changed", before: list(web("a", note("azure-pip-ip-tags", "RoutingPreference=Internet"))),
		have: list(web("a", note("azure-pip-ip-tags", "RoutingPreference=Internet,FirstPartyUsage=/x"))),
	},
	{row: 35, is: "IP tags no more asked for", before: list(web("a", note("azure-pip-ip-tags", "RoutingPreference=Internet"))),
		have: list(web("a"))},
	{
		row: 36, is: "IP tags in place", config: func(c *loadbalancer.Config) { c.IPTagsMayChange = true },
		before: list(web("a", note("azure-pip-ip-tags", "FirstPartyUsage=/x"))),
		have:   list(web("a", note("azure-pip-ip-tags", "FirstPartyUsage=/y"))),
	},
	{row: 37, is: "DNS label", have: list(web("a", note("azure-dns-label-name", "www")))},
	{row: 37, is: "DNS label of two families", have: list(web("a", dual, note("azure-dns-label-name", "www")))},
	{row: 37, is: "DNS label changed", before: list(web("a", note("azure-dns-label-name", "web"))),
		have: list(web("a", note("azure-dns-label-name", "www")))},
	{row: 37, is: "DNS label emptied", before: list(web("a", note("azure-dns-label-name", "web"))),
		have: list(web("a", note("azure-dns-label-name", "")))},
	{row: 37, is: "DNS label no more asked for", before: list(web("a", note("azure-dns-label-name", "web"))), have: list(web("a"))},
	{row: 37, is: "DNS label of one that is deleted",
		have: list(web("a", note("azure-dns-label-name", "web")), web("b", pins("@a"), ports(other))), gone: []string{"a"}},
	{
		row: 37, is: "DNS label of another", have: list(web("a", note("azure-dns-label-name", "web")), web("b", pins("@a"), ports(other))),
		now: map[string]edit{"b": note("azure-dns-label-name", "www")},
	},
	{
		row: 37, is: "DNS label of own public IP", given: []string{ownIP(network+"publicIPAddresses/mine", "20.200.0.1")},
		have: list(web("a", note("azure-pip-name", "mine"), note("azure-dns-label-name", "www"))),
	},
	{row: 38, is: "unreadable tags", have: list(web("a", note("azure-pip-tags", "a=b,bad,c=d=e")))},
	{row: 39, is: "configured tags", config: tagged, have: list(web("a", note("azure-pip-tags", "cost=z")), web("b", inside))},
	{row: 39, is: "tags no more asked for", config: tagged, before: list(web("a", note("azure-pip-tags", "a=b"))), have: list(web("a"))},
	{
		row: 39, is: "system tags", config: func(c *loadbalancer.Config) { tagged(c); c.SystemTags = []string{"sys", "owner"} },
		have:   list(web("a", note("azure-pip-tags", "a=b")), web("b", inside, linked)),
		midway: retag(ipOfA, func(tags object) { tags["system"] = "stays" }),
	},
	{
		row: 39, is: "system tags without tags", config: func(c *loadbalancer.Config) { c.SystemTags = []string{"sys"} },
		have: list(web("a", note("azure-pip-tags", "a=b")), web("b", inside, linked)), midway: theirTags,
	},
	{
		row: 39, is: "system tags and tags of others", config: func(c *loadbalancer.Config) { tagged(c); c.SystemTags = []string{"sys"} },
		have: list(web("a"), web("b", inside, linked)), midway: theirTags,
	},
	{row: 40, is: "legacy tags", have: list(web("a"), web("b", pins("@a"), ports(other)), web("c")), left: retag(ipOfA, func(tags object) {
		for name, legacy := range legacyTags {
			if v, is := tags[name]; is {
				tags[legacy] = v
				delete(tags, name)
			}
		}
	})},
	{row: 40, is: "public IP that names no cluster", have: list(web("a"), web("b", pins("@a"), ports(other))),
		left: retag(ipOfA, func(tags object) {
			delete(tags, clusterTag) // it is younger than the tag that lists Services
		})},
	{row: 40, is: "public IP that names no cluster, in new and old words", have: list(web("a")), left: retag(ipOfA, func(tags object) {
		delete(tags, clusterTag)
		tags[legacyTags[serviceTag]] = tags[serviceTag]
	})},
	{row: 40, is: "legacy tag of before", have: list(web("a"), web("b", pins("@a"), ports(other))), left: retag(ipOfA, func(tags object) {
		tags[legacyTags[serviceTag]] = "default/x"
		tags[serviceTag] = strings.ReplaceAll(tags[serviceTag].(string), ",", " , ")
	})},
	{
		row: 40, is: "legacy tags beside new ones that are asked for", have: list(web("a", ownTags)), left: retag(ipOfA, func(tags object) {
			tags[legacyTags[serviceTag]], tags[legacyTags[clusterTag]] = tags[serviceTag], tags[clusterTag]
			delete(tags, serviceTag)
			delete(tags, clusterTag)
		}),
	},
	{row: 40, is: "tags of its own that are asked for", have: list(web("a", ownTags))},
	{row: 40, is: "tags of its own that are asked for, system tags", have: list(web("a", ownTags)),
		config: func(c *loadbalancer.Config) { tagged(c); c.SystemTags = []string{"sys"} }},
	{row: 41, is: "ranges", have: list(web("a", letsIn("10.0.0.0/8")))},
	{row: 41, is: "ranges that meet",
		have: list(web("a", letsIn("192.168.0.0/24", "192.168.1.0/24", "10.0.0.0/8", "10.1.0.0/16")),
			web("b", note("load-balancer-source-ranges", "192.168.0.0/23, 10.0.0.0/8")))},
	{row: 41, is: "ranges that are everything, D17", have: list(web("a", letsIn("0.0.0.0/1", "128.0.0.0/1")))},
	{
		row: 41, is: "ranges that are everything, by an older version", left: fromInternet("a", "b", "c"),
		have: list(web("a", letsIn("0.0.0.0/0")), web("b", inside, letsIn("0.0.0.0/0", "10.0.0.0/8")),
			web("c", dual, note("azure-allowed-ip-ranges", "0.0.0.0/0,::/0"),
				note("azure-deny-all-except-load-balancer-source-ranges", "true"))),
	},
	{row: 41, is: "ranges of two families", have: list(web("a", dual, note("azure-allowed-ip-ranges", "10.0.0.0/8,2001:db8::/32")))},
	{row: 42, is: "ranges in two places", have: list(web("a", letsIn("10.0.0.0/8"))),
		now: map[string]edit{"a": note("azure-allowed-ip-ranges", "11.0.0.0/8")}},
	{row: 43, is: "service tags and ranges",
		have: list(web("a", letsIn("10.0.0.0/8"), note("azure-allowed-service-tags", "AzureCloud")),
			web("b", note("azure-allowed-service-tags", "AzureCloud,Storage")))},
	{row: 44, is: "all else denied",
		have: list(web("a", letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true")))},
	{row: 44, is: "all else denied twice", have: list(
		web("a", letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true")),
		web("b", dual, letsIn("2001:db8::/32"), note("azure-deny-all-except-load-balancer-source-ranges", "True")))},
	{row: 44, is: "all else denied, no floating IP",
		have: list(web("a", anchored, letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true")))},
	{row: 45, is: "denied without ranges", have: list(web("a", note("azure-deny-all-except-load-balancer-source-ranges", "true")))},
	{row: 46, is: "a range that is none", have: list(web("a", letsIn("10.0.0.1/8")), web("b", letsIn("10.0.0.1/8", "11.0.0.0/8")))},
	{row: 47, is: "ranges of one family", have: list(web("a", dual, letsIn("10.0.0.0/8")))},
	{
		row: 48, is: "priorities of others", given: []string{securityGroup("Inbound", 500, 501, 4095)},
		have: list(web("a", letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true")), web("b")),
	},
	{
		row: 49, is: "limit of the security group", given: []string{crowded(3998)}, have: list(web("a")),
		now: map[string]edit{"a": note("azure-allowed-service-tags", "AzureCloud,Storage,Sql")},
	},
	{
		row: 48, is: "security rules as a person has saved them", left: saved,
		have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443)), letsIn("10.0.0.0/8", "11.0.0.0/8")), web("b"), web("c"),
			web("d", dual, letsIn("10.0.0.1/8"))),
	},
	{row: 50, is: "further addresses",
		have: list(web("a", note("azure-additional-public-ips", "1.2.3.4,1.2.3.5,2603:9::1")),
			web("b", inside, note("azure-additional-public-ips", "1.2.3.9")))},
	{row: 50, is: "further addresses, unreadable", have: list(web("a", note("azure-additional-public-ips", "1.2.3.4"))),
		now: map[string]edit{"a": note("azure-additional-public-ips", "1.2.3.4,x")}},
	{
		row: 50, is: "further addresses with blanks, D34", have: list(web("a", note("azure-additional-public-ips", "1.2.3.4"))),
		now:    map[string]edit{"a": note("azure-additional-public-ips", "1.2.3.4, 1.2.3.5")},
		repair: []string{"update " + nsgID + ": access to default/a", `"1.2.3.5"`},
	},
	{row: 51, is: "no security rules", before: list(web("a"), web("b")),
		have: list(web("a", note("azure-disable-load-balancer-nsg-rule", "true")), web("b"))},
	{row: 51, is: "security rules again", before: list(web("a", note("azure-disable-load-balancer-nsg-rule", "true")), web("b")),
		have: list(web("a"), web("b"))},
	{row: 52, is: "no floating IP", have: list(web("a", anchored), web("b"))},
	{row: 52, is: "no floating IP twice", have: list(web("a", anchored), web("b", dual, anchored, letsIn("10.0.0.0/8")))},
	{row: 52, is: "no floating IP, internal with ranges", have: list(web("a", inside, anchored, letsIn("10.0.0.0/8")))},
	{row: 53, is: "probe at another port by name",
		have: list(web("a", ports(called("http", tcp(80, 30080)), called("metrics", tcp(9100, 30910))),
			note("port_80_health-probe_port", "metrics")))},
	{row: 53, is: "probe at another port, local",
		have: list(web("a", localAt(31000), ports(called("http", tcp(80, 30080)), called("metrics", tcp(9100, 30910))),
			note("port_80_health-probe_port", "9100")))},
	{row: 54, is: "probe at a literal port", have: list(web("a", note("port_80_health-probe_port", "8080")))},
	{row: 55, is: "probe at no port", have: list(web("a")), now: map[string]edit{"a": note("port_80_health-probe_port", "nope")}},
	{row: 56, is: "probe too slow", have: list(web("a")),
		now: map[string]edit{"a": all(note("azure-load-balancer-health-probe-interval", "60"),
			note("azure-load-balancer-health-probe-num-of-probe", "2"))}},
	{row: 57, is: "probe interval", have: list(web("a")),
		now: map[string]edit{"a": note("azure-load-balancer-health-probe-interval", "4")}},
	{row: 57, is: "probe threshold", have: list(web("a")), now: map[string]edit{"a": note("port_80_health-probe_num-of-probe", "1")}},
	{row: 58, is: "appProtocol",
		have: list(web("a",
			ports(speaks("HTTP", tcp(80, 30080)), speaks("https", tcp(443, 30443)), speaks("kubernetes.io/h2c", tcp(81, 30081)))))},
	{row: 59, is: "https with Basic", none: "Azure has no load balancers of the SKU Basic any more; what is left of them is row 85"},
	{row: 60, is: "probe protocols that are none",
		have: list(web("a", note("azure-load-balancer-health-probe-protocol", "htpp")),
			web("b", note("port_80_health-probe_protocol", "grpc")))},
	{row: 60, is: "probe protocols",
		have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443)), note("azure-load-balancer-health-probe-protocol", " HTTPS"),
			note("port_80_health-probe_protocol", "tcp"), note("azure-load-balancer-health-probe-request-path", "/h"),
			note("port_443_health-probe_interval", "7")))},
	{row: 61, is: "port without a rule", have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443)), note("port_443_no_lb_rule", "true")))},
	{row: 62, is: "port without a probe",
		have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443)), note("port_443_no_probe_rule", "true")))},
	{row: 63, is: "shared probe", config: sharedProbes, have: list(web("a"), web("b"), web("c", ports(udp(53, 30053)), dual))},
	{row: 63, is: "shared probe without node ports", config: sharedProbes, have: list(web("a", ports(tcp(80, 0))))},
	{row: 63, is: "shared probe, one goes", config: sharedProbes, have: list(web("a"), web("b"), web("c")), gone: []string{"c"}},
	{row: 63, is: "shared probe, all go", config: sharedProbes, have: list(web("a"), web("b")), gone: []string{"a", "b"}},
	{row: 64, is: "shared probe and local", config: sharedProbes, before: list(web("a"), web("b")),
		have: list(web("a", localAt(31000)), web("b"))},
	{row: 64, is: "shared probe and local alone", config: sharedProbes, before: list(web("a")), have: list(web("a", localAt(31000)))},
	{row: 65, is: "idle timeout",
		have: list(web("a", note("azure-load-balancer-tcp-idle-timeout", " 20 "), ports(tcp(80, 30080), udp(80, 30081))))},
	{row: 65, is: "idle timeout 3", have: list(web("a")), now: map[string]edit{"a": note("azure-load-balancer-tcp-idle-timeout", "3")}},
	{row: 65, is: "idle timeout 101", have: list(web("a")), now: map[string]edit{"a": note("azure-load-balancer-tcp-idle-timeout", "101")}},
	{row: 65, is: "idle timeout x", have: list(web("a", note("azure-load-balancer-tcp-idle-timeout", "20"))),
		now: map[string]edit{"a": note("azure-load-balancer-tcp-idle-timeout", "x")}},
	{row: 66, is: "no TCP reset", have: list(web("a", note("azure-load-balancer-disable-tcp-reset", "True")))},
	{row: 66, is: "switches that are neither on nor off",
		have: list(web("a", note("azure-load-balancer-internal", "yes"), note("azure-disable-load-balancer-floating-ip", "1")),
			web("b", inside, note("azure-load-balancer-disable-tcp-reset", "on"), note("port_80_no_lb_rule", "x"),
				note("azure-pls-create", "y")))},
	{row: 67, is: "session affinity", have: list(web("a", func(s *v1.Service) { s.Spec.SessionAffinity = v1.ServiceAffinityClientIP }))},
	{row: 68, is: "two families", have: list(web("a", dual), web("b", dual, localAt(31000)), web("c", dual, inside))},
	{row: 69, is: "IPv4 to both", before: list(web("a", four)), have: list(web("a", dual))},
	{row: 69, is: "both to IPv4", before: list(web("a", dual), web("b")), have: list(web("a", four), web("b"))},
	{row: 70, is: "IPv6 alone", have: list(web("a", six), web("b"))},
	{row: 70, is: "IPv6 alone, to both", before: list(web("a", six), web("b")), have: list(web("a", dual), web("b"))},
	{row: 70, is: "IPv6 alone, from a time of other names", have: list(web("a", six), web("b")), left: func(w *subscription) {
		old, id := w.docs[azure.ID(network+"publicIPAddresses/"+ipOfA).Key()], azure.ID(network+"publicIPAddresses/"+ipOfA+"-IPv6")
		w.put(id, old)
		delete(w.docs, azure.ID(network+"publicIPAddresses/"+ipOfA).Key())
		lb := w.docs[azure.ID(lbID).Key()]
		sub(named(children(sub(lb, "properties"), "frontendIPConfigurations"), baseOf(service("a"))),
			"properties")["publicIPAddress"] = ref(id)
		w.put(lbID, lb)
	}, repair: []string{"create " + network + "publicIPAddresses/" + ipOfA + ":", "delete " + network + "publicIPAddresses/" +
		ipOfA + "-IPv6"}},
	{row: 71, is: "internal IPv6", have: list(web("a", six, inside), web("b", inside))},
	{row: 71, is: "internal, both families, all ports",
		have: list(web("a", dual, inside, note("azure-load-balancer-enable-high-availability-ports", "true")))},
	{row: 72, is: "node excluded", have: list(web("a"), web("b", inside)), later: excluded(1)},
	{row: 72, is: "node excluded, by IP", config: byIP, have: list(web("a"), web("b", inside)), later: excluded(1)},
	// The predecessor keeps a node's address in the rules as long as there is such a node, in a pool or not. Rules of kaz
	// lead only to where packets go.
	{row: 72, is: "node excluded, no floating IP", have: list(web("a", anchored)), later: excluded(1), repair: []string{`"10.0.0.5"`}},
	{row: 73, is: "all nodes excluded", have: list(web("a")), later: excluded(0, 1, 2), blind: []string{"member: gone"}},
	{row: 73, is: "all nodes excluded, by IP", config: byIP, have: list(web("a")), later: excluded(0, 1, 2),
		blind: []string{"member: gone"}},
	{row: 74, is: "node added", have: list(web("a", dual)),
		later: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np"}, {n: 3, set: "np"}, {n: 4, set: "np9"}}},
	{row: 74, is: "node added, by IP", config: byIP, have: list(web("a", dual)),
		later: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np"}, {n: 3, set: "np"}}},
	{row: 74, is: "nodes of all kinds", have: list(web("a", dual), web("b", inside)),
		machines: []machine{{n: 0, set: "np"}, {n: 1, set: "flex", flex: true}, {n: 2}, {n: 3, set: "np2"}}},
	{row: 75, is: "machine gone", have: list(web("a")),
		later: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np", gone: true}}},
	{row: 76, is: "machine deallocated", have: list(web("a")),
		machines: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np", off: true}}},
	{row: 75, is: "machine gone, by IP", config: byIP, have: list(web("a")),
		later: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np", gone: true}}},
	{row: 76, is: "machine deallocated, by IP", config: byIP, have: list(web("a")),
		machines: []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np", off: true}}},
	{row: 77, is: "control plane", have: list(web("a")),
		machines: marked(0, map[string]string{"node-role.kubernetes.io/control-plane": ""})},
	{row: 77, is: "control plane, by IP", config: byIP, have: list(web("a")),
		machines: marked(0, map[string]string{"node-role.kubernetes.io/control-plane": ""})},
	{row: 77, is: "control plane wanted", config: func(c *loadbalancer.Config) { c.ExcludeControlPlane = false }, have: list(web("a")),
		machines: marked(0, map[string]string{"node-role.kubernetes.io/control-plane": ""})},
	{row: 78, is: "node of another group", have: list(web("a")),
		machines: []machine{{n: 0, set: "np"}, {n: 1, set: "np"},
			{n: 2, group: "other", labels: map[string]string{"kubernetes.azure.com/resource-group": "other"}}}},
	{row: 78, is: "node that is not managed", have: list(web("a")),
		machines: marked(2, map[string]string{"kubernetes.azure.com/managed": "false"})},
	{row: 79, is: "preset pools", config: func(c *loadbalancer.Config) { c.PresetExternal, c.PresetInternal = true, true },
		have: list(web("a"), web("b", inside))},
	{
		row: 79, is: "preset pools and no floating IP",
		config: func(c *loadbalancer.Config) { c.PresetExternal, c.PresetInternal = true, true },
		have:   list(web("a", anchored), web("b", inside, anchored, letsIn("10.0.0.0/8"))), midway: func(w *subscription) {
			for i := range 3 {
				at := machine{n: i, set: "np"}.attached()
				ipConfiguration(w.docs[at.Key()],
					false)["loadBalancerBackendAddressPools"] = []any{ref(lbID + "/backendAddressPools/kubernetes"),
					ref(innerID + "/backendAddressPools/kubernetes")}
				w.put(at, w.docs[at.Key()])
			}
		},
		blind: []string{"member: gone"}, // neither puts it back; kaz closes its address
	},
	{row: 79, is: "preset pools, external", config: func(c *loadbalancer.Config) { c.PresetExternal = true },
		have: list(web("a"), web("b", inside))},
	{
		row: 80, is: "outbound rule at a frontend", have: list(web("a"), web("b")), gone: []string{"a"},
		midway: stands("outboundRules", `{"protocol":"All","frontendIPConfigurations":[FRONTEND],"backendAddressPool":{"id":"`+lbID+
			`/backendAddressPools/kubernetes"}}`),
		blind: []string{"frontend: gone", "public IP: SKU", "public IP: owner"}, // of a Service that is gone
	},
	{
		row: 81, is: "NAT rule at a port", have: list(web("a")),
		midway: stands("inboundNatRules", `{"protocol":"Tcp","frontendPort":81,"backendPort":22,"frontendIPConfiguration":FRONTEND}`),
		now:    map[string]edit{"a": ports(tcp(80, 30080), other)},
	},
	{
		row: 81, is: "NAT rule for several machines", have: list(web("a", ports(tcp(80, 30080), tcp(443, 30443))), web("b")),
		midway: stands("inboundNatRules",
			`{"protocol":"Tcp","frontendPortRangeStart":50000,"frontendPortRangeEnd":50099,"backendPort":22,"frontendIPConfiguration":FRONTEND,"backendAddressPool":{"id":"`+lbID+`/backendAddressPools/kubernetes"}}`),
	},
	{
		row: 81, is: "NAT rule for several machines at a port", have: list(web("a")),
		now: map[string]edit{"a": ports(tcp(80, 30080), tcp(50050, 30181))},
		midway: stands("inboundNatRules",
			`{"protocol":"Tcp","frontendPortRangeStart":50000,"frontendPortRangeEnd":50099,"backendPort":22,"frontendIPConfiguration":FRONTEND,"backendAddressPool":{"id":"`+lbID+`/backendAddressPools/kubernetes"}}`),
	},
	{row: 82, is: "managed cluster", have: list(web("a"), web("b", inside)), midway: managedOutbound},
	{row: 82, is: "managed cluster after its last Service", have: list(web("a")), midway: managedOutbound, gone: []string{"a"},
		blind: []string{"member: gone"}},
	{row: 82, is: "foreign parts", have: list(web("a"), web("b", dual)), midway: addForeignParts},
	{row: 83, is: "nothing to do", have: list(
		web("a"), web("b", inside), web("c", localAt(31000)), web("d", dual), web("e", anchored),
		web("f", pins("@a"), ports(udp(90, 30590))),
		web("g", inside, dual, note("azure-load-balancer-internal-subnet", "apps"), letsIn("10.0.0.0/8")),
		web("h", letsIn("10.0.0.0/8", "2001:db8::/32"), dual))},
	{row: 84, is: "written after all", have: list(web("a"), web("b"))},
	{row: 85, is: "Basic made anew", have: list(web("a"), web("b", inside))},
	{row: 85, is: "Basic left", have: list(web("a")), left: func(w *subscription) {
		w.put(innerID,
			parse(`{"location":"westeurope","sku":{"name":"Basic"},"properties":{"frontendIPConfigurations":[{"name":"x","properties":{"subnet":{"id":"`+vnetID+`/subnets/n"}}}],"backendAddressPools":[{"name":"kubernetes","properties":{}}]}}`))
	}, repair: []string{"delete " + innerID}},
	{row: 86, is: "edge zone", config: func(c *loadbalancer.Config) {
		c.EdgeZone, c.Zones = &azure.ExtendedLocation{Name: "microsoftlosangeles1", Type: "EdgeZone"}, nil
	}, have: list(web("a"), web("b", inside, linked))},
	{row: 87, is: "only the public IP is left", have: list(web("a")), gone: []string{"a"}, left: func(w *subscription) {
		w.put(azure.ID(network+"publicIPAddresses/"+ipOfA),
			parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"k8s-azure-service":"default/a","k8s-azure-cluster-name":"kubernetes"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`))
	}, repair: []string{"delete " + network + "publicIPAddresses/"}},
	{row: 88, is: "public IP after all", have: list(web("a"))},
	{row: 88, is: "public IP failed", have: list(web("a")), left: func(w *subscription) {
		sub(w.docs[azure.ID(network+"publicIPAddresses/"+ipOfA).Key()], "properties")["provisioningState"] = "Failed"
	}, repair: []string{"update " + network + "publicIPAddresses/"}},
	{row: 89, is: "private link", have: list(web("a", inside, linked))},
	{row: 89, is: "private link with everything", config: tagged,
		have: list(web("a", inside, linked, note("azure-pls-name", "mine"), note("azure-pls-fqdns", "b.x a.x"),
			note("azure-pls-proxy-protocol", "true"), note("azure-pls-visibility", "s2 *"), note("azure-pls-auto-approval", "s2 s1"),
			note("azure-pls-ip-configuration-subnet", "apps")))},
	{row: 89, is: "private link of another group, two families",
		have: list(web("a", dual, inside, linked, note("azure-pls-resource-group", "other"),
			note("azure-load-balancer-internal-subnet", "apps")))},
	{row: 90, is: "private link with addresses",
		have: list(web("a", inside, linked, note("azure-pls-ip-configuration-ip-address-count", "3"),
			note("azure-pls-ip-configuration-ip-address", "10.0.0.77")))},
	{row: 90, is: "private link with addresses alone",
		have: list(web("a", inside, linked, note("azure-pls-ip-configuration-ip-address-count", "2"),
			note("azure-pls-ip-configuration-ip-address", "10.0.0.78 10.0.0.77")))},
	{row: 91, is: "private link renamed", have: list(web("a", inside, linked)), now: map[string]edit{"a": note("azure-pls-name", "other")}},
	{row: 92, is: "private link external", have: list(web("a", anchored, linked))},
	{row: 92, is: "private link and floating IP", have: list(web("a")), now: map[string]edit{"a": linked}},
	{row: 93, is: "private link shared",
		have: list(web("a", inside, linked, pins("10.0.0.99")), web("b", inside, linked, pins("10.0.0.99"), ports(other)))},
	{
		row: 93, is: "private link shared with options", have: list(web("a", inside, linked, pins("10.0.0.99"))),
		more: list(web("b", inside, linked, note("azure-pls-fqdns", "x"), pins("10.0.0.99"), ports(other))),
	},
	{row: 94, is: "private link of others", have: list(web("a", inside)), midway: unmanaged, now: map[string]edit{"a": linked}},
	{row: 95, is: "private link gone", have: list(web("a", inside, linked), web("b", inside)), gone: []string{"a"}},
	{row: 96, is: "PROXY protocol and local",
		have: list(web("a", inside, linked, localAt(31000), ports(tcp(80, 30080), udp(80, 30081)),
			note("azure-pls-proxy-protocol", "true")))},
	{row: 97, is: "several, annotation", config: two, machines: twoSets, at: map[string]string{"a": "lb2"},
		have: list(web("a", second), web("b"))},
	{row: 97, is: "several, one is empty", config: two, machines: twoSets, at: map[string]string{"a": "lb2"}, before: list(web("a")),
		have: list(web("a", second))},
	{row: 97, is: "several, internal", config: two, machines: twoSets, at: map[string]string{"a": "lb2", "c": "lb2"},
		have: list(web("a", second), web("b"), web("c", inside, second))},
	{
		row: 98, is: "several, closed", config: two, machines: twoSets, at: map[string]string{"b": "lb2"},
		have:   list(web("a"), web("b", second)),
		lastly: func(c *loadbalancer.Config) { c.Balancers[1].AllowPlacement = false }, more: list(web("c", second)),
	},
	{
		row: 99, is: "several, selectors", config: func(c *loadbalancer.Config) {
			two(c)
			c.Balancers[1].ServiceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lb": "two"}}
			c.Balancers[1].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
		},
		machines: twoSets, at: map[string]string{"a": "lb2"}, have: list(web("a", labelled("lb", "two")), web("b")),
		namespaces: map[string]map[string]string{"default": {"team": "x"}},
	},
	{
		row: 100, is: "several, pinned", config: two, machines: twoSets, at: map[string]string{"a": "lb2"},
		have: list(web("a", second), web("b"), web("c", pins("@a"), ports(other))),
	},
	{
		row: 100, is: "several, pinned and chosen", config: two, machines: twoSets, at: map[string]string{"a": "lb2"},
		have: list(web("a", second), web("b"), web("c", pins("@a"), ports(other))),
		now:  map[string]edit{"c": note("azure-load-balancer-configurations", "kubernetes")},
	},
	{
		row: 101, is: "several, local", config: two, machines: twoSets, at: map[string]string{"b": "lb2", "c": "lb2"},
		have:      list(web("a", localAt(31000)), web("b", second), web("c", second, dual, localAt(31001))),
		endpoints: map[string][]string{"default/a": {"np000000", "np2000003"}, "default/c": {"np2000002"}},
	},
	{row: 102, is: "several, unknown", config: two, machines: twoSets, have: list(web("a")),
		now: map[string]edit{"a": note("azure-load-balancer-configurations", "lb9")}},
	{row: 103, is: "no member is left in the pool", have: list(web("a", inside), web("b")), gone: []string{"a"}},
	{row: 104, is: "listing denied, D2", have: list(web("a")), undone: []string{"a"},
		repair: []string{"delete " + network + "publicIPAddresses/", "delete " + lbID}},

	// What defects of the predecessor leave.
	{
		is: "D1 rules stay behind", config: two, machines: twoSets, at: map[string]string{"a": "lb2"},
		have: list(web("a", dual, second), web("b")),
		left: func(w *subscription) {
			stands("loadBalancingRules", "{}")(w)
			rules := sub(w.docs[azure.ID(lbID).Key()], "properties")["loadBalancingRules"].([]any)
			rules[len(rules)-1].(object)["name"] = baseOf(service("a")) + "-TCP-80-IPv6"
		}, repair: []string{"update " + lbID + ":", baseOf(service("a")) + "-TCP-80-IPv6]: -"},
	},
	{
		is: "D4 no source is denied", have: list(
			web("a", letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true")),
			web("b", pins("@a"), ports(other), letsIn("10.0.0.0/8"), note("azure-deny-all-except-load-balancer-source-ranges", "true"))),
		left: func(w *subscription) {
			rules := sub(w.docs[azure.ID(nsgID).Key()], "properties")
			setList(w.docs[azure.ID(nsgID).Key()], "securityRules",
				slices.DeleteFunc(children(rules, "securityRules"), func(r object) bool { return strings.Contains(nameOf(r), "deny-all") }))
		}, repair: []string{"[k8s-azure-lb_deny-all_IPv4]: +"},
	},
	{is: "D5 exclusion label that says false", have: list(web("a")),
		machines: marked(1, map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": "false"}),
		repair:   []string{"virtualMachines/1: node joins the backend pool"}},
	// It stays where it is: kaz would not have let it in, and does not throw it out.
	{is: "D7 node of another group, by IP", config: byIP, have: list(web("a")),
		machines: []machine{{n: 0, set: "np"},
			{n: 1, group: "other", labels: map[string]string{"kubernetes.azure.com/resource-group": "other"}}}},
	{
		is: "D8 IPv6 of a flexible scale set stays in the pool", have: list(web("a", dual)),
		machines: []machine{{n: 0, set: "np"}, {n: 1, set: "flex", flex: true}},
		later: []machine{{n: 0, set: "np"},
			{n: 1, set: "flex", flex: true, labels: map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": "true"}}},
		left:   staysIn(machine{n: 1, set: "flex", flex: true}, true),
		repair: []string{"update " + string(machine{n: 1, set: "flex", flex: true}.nic())},
	},
	{
		is: "D9 a machine stays in the pool", have: list(web("a")), machines: []machine{{n: 0, set: "np"}, {n: 1}},
		later: []machine{{n: 0, set: "np"},
			{n: 1, labels: map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": "true"}}},
		left: staysIn(machine{n: 1}, false), repair: []string{"update " + string(machine{n: 1}.nic())},
	},
	{
		is: "D10 a scale set was skipped", have: list(web("a")), machines: []machine{{n: 0, set: "np"}, {n: 1, set: "np9"}},
		left:   func(w *subscription) { machine{n: 1, set: "np9"}.furnish(w) },
		repair: []string{"virtualMachineScaleSets/np9/virtualMachines/1: node joins the backend pool"},
	},
	{
		is: "D13 no member has joined", have: list(web("a")), left: func(w *subscription) {
			for i := range 3 {
				machine{n: i, set: "np"}.furnish(w)
			}
		}, repair: []string{"virtualMachineScaleSets/np: new instances join", "virtualMachines/0: node joins",
			"virtualMachines/2: node joins"},
	},
	{
		is: "D14 nodes without endpoints", config: two, machines: twoSets, have: list(web("a", localAt(31000))),
		endpoints: map[string][]string{"default/a": {"np000000"}},
		left:      lists("default-a", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"), repair: []string{"update " + lbID, "10.0.0.7"},
	},
	{is: "D23 placement forgotten", config: two, machines: twoSets, have: list(web("a")), left: lists("kubernetes"),
		repair: []string{"update " + lbID, "10.0.0.4"}},
	{is: "D22 rules of older names", have: list(web("a")), left: func(w *subscription) {
		rules := sub(w.docs[azure.ID(nsgID).Key()], "properties")
		rules["securityRules"] = append(rules["securityRules"].([]any),
			parse(`{"name":"`+baseOf(service("a"))+
				`-TCP-80-Internet","properties":{"priority":600,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourceAddressPrefix":"Internet","sourcePortRange":"*","destinationAddressPrefix":"20.1.0.2","destinationPortRange":"80"}}`))
	}, repair: []string{baseOf(service("a")) + "-TCP-80-Internet]: -"}},
	{is: "D22 shared rules of older names", have: list(web("a"), web("b")), left: sharedRules("a", "b"),
		repair: []string{"[shared-TCP-80-Internet]: -", "[shared-TCP-80-deny_all]: -"}},
	{
		is: "D22 shared rules of older names, one goes", have: list(web("a"), web("b")), undone: []string{"a"}, left: sharedRules("a", "b"),
		repair: []string{"[shared-TCP-80-Internet]: -", "[shared-TCP-80-deny_all]: -"},
	},
	{
		is: "ranges of one family that are everything, by an older version", have: list(web("a", dual, letsIn("0.0.0.0/0"))),
		left:   fromInternet("a"),
		repair: []string{"[" + allowName(true) + "]: -"},
	},
	{
		is: "ranges that were everything, by an older version", have: list(web("a", letsIn("0.0.0.0/0"))), left: fromInternet("a"),
		now: map[string]edit{"a": letsIn("10.0.0.0/8")}, repair: []string{"[" + allowName(false) + "]: -", `"10.0.0.0/8"`},
	},
	{
		is: "D24 preset pools keep the rules", config: func(c *loadbalancer.Config) { c.PresetExternal = true }, have: list(web("a")),
		undone: []string{"a"},
		repair: []string{"loadBalancingRules[" + baseOf(service("a")) + "-TCP-80]: -"},
	},
	{is: "D28 private link that no Service asks for", before: list(web("a", inside, linked)), have: list(web("a", inside)),
		repair: []string{"delete " + network + "privateLinkServices/"}},
	{is: "D29 no ranges at all", have: list(web("a", note("azure-allowed-ip-ranges", ""))),
		repair: []string{"[k8s-azure-lb_deny-all_IPv4]: -", `"Internet"`}},
	{
		is: "D30 public IP of a group before", have: list(web("a", note("azure-load-balancer-resource-group", "other"))),
		groups: []key.Note{{Of: key.PublicIPs, Group: "third"}},
		left: func(w *subscription) {
			w.put(azure.ID(strings.Replace(otherGroup, "/other/", "/third/", 1)+"publicIPAddresses/"+ipOfA),
				parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"k8s-azure-service":"default/a","k8s-azure-cluster-name":"kubernetes"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`))
		}, repair: []string{"delete " + strings.Replace(otherGroup, "/other/", "/third/", 1)},
	},
	{
		is: "D31 case of a tag's value", config: func(c *loadbalancer.Config) { c.Tags = azure.Tags{"team": "x"} }, have: list(web("a")),
		lastly: func(c *loadbalancer.Config) { c.Tags = azure.Tags{"team": "X"} }, repair: []string{`tags[team]: "x" -> "X"`},
	},
	{is: "D35 all ports and no floating IP",
		have:   list(web("a", inside, anchored, note("azure-load-balancer-enable-high-availability-ports", "true"))),
		repair: []string{"enableFloatingIP: true -> false"}},
	{
		is:     "D35 all ports and no floating IP, ranges",
		have:   list(web("a", inside, anchored, letsIn("10.0.0.0/8"), note("azure-load-balancer-enable-high-availability-ports", "true"))),
		repair: []string{"enableFloatingIP: true -> false", `"destinationPortRanges":["80"]`},
	},
	{
		is: "D36 internal IPv6, all else denied",
		have: list(web("a", dual, inside, letsIn("10.0.0.0/8", "2001:db8::/32"),
			note("azure-deny-all-except-load-balancer-source-ranges", "true"))),
		repair: []string{`"fd00::4"`, `"30080"`, "[k8s-azure-lb_deny-all_IPv6]: -"},
	},
	{is: "D36 internal IPv6 with ranges", have: list(web("a", dual, inside, letsIn("10.0.0.0/8", "2001:db8::/32"))),
		repair: []string{`"fd00::4"`, `"30080"`}},
	{
		is: "D41 back to one load balancer", config: two, machines: twoSets, at: map[string]string{"a": "lb2"},
		have:   list(web("a", second), web("b")),
		lastly: func(c *loadbalancer.Config) { c.Balancers = nil },
		repair: []string{"delete " + network + "loadBalancers/lb2", "update " + lbID},
	},
	{
		is: "D37 another configured subnet", have: list(web("a", inside)), lastly: func(c *loadbalancer.Config) { c.Subnet = "apps" },
		repair: []string{"update " + innerID, "/subnets/apps"},
	},
}

// lists has a pool list addresses.
func lists(pool string, addresses ...string) func(*subscription) {
	return func(w *subscription) {
		var members []any
		for i, a := range addresses {
			members = append(members, object{"name": fmt.Sprint("n", i), "properties": object{"ipAddress": a}})
		}
		lb := w.docs[azure.ID(lbID).Key()]
		sub(named(children(sub(lb, "properties"), "backendAddressPools"), pool), "properties")["loadBalancerBackendAddresses"] = members
		w.put(lbID, lb)
	}
}

// staysIn has a machine in the cluster's pool.
func staysIn(m machine, six bool) func(*subscription) {
	return func(w *subscription) {
		name := "kubernetes"
		if six {
			name += "-IPv6"
		}
		ipConfiguration(w.docs[m.attached().Key()],
			six)["loadBalancerBackendAddressPools"] = []any{ref(lbID + azure.ID("/backendAddressPools/"+name))}
		w.stale = true
	}
}
