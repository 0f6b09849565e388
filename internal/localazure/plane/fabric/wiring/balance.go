package wiring

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
)

// rule is a load balancing rule with its references resolved.
type rule struct {
	id       azure.ID
	balancer *resource[loadBalancer]
	doc      balancingRule
	frontend netip.Addr
	internal bool
	network  *network
	receivers
}

// receivers are the backends of a rule. Rules with the same pools and the same probe share them, because clusters have
// hundreds of rules with a thousand machines each.
type receivers struct {
	key              string
	backends         []backend
	all, healthy     []netip.Addr
	healthyReceivers []backend
}

// backend is a member of a rule's pools.
type backend struct {
	*address
	probe Probe // zero for a rule without a probe
	admin string
}

// balancing is the load balancing rules of all load balancers with their references resolved.
type balancing struct {
	*index
	rules []*rule
	// membership and shared cache what rules with the same pools and probes have in common.
	membership map[string][]backend
	shared     map[string]receivers
}

// resolveBalancing follows the references of all rules, in the order of their ids.
func resolveBalancing(x *index) *balancing {
	l := &balancing{index: x, membership: map[string][]backend{}, shared: map[string]receivers{}}
	for _, key := range slices.Sorted(maps.Keys(x.docs.balancers)) {
		b := x.docs.balancers[key]
		for _, c := range b.Properties.Rules {
			r := &rule{id: b.ID.Child("loadBalancingRules", c.Name), balancer: b, doc: c.Properties}
			if l.resolve(r) {
				l.rules = append(l.rules, r)
			}
		}
	}
	return l
}

// resolve finds the frontend and the receivers of a rule. It reports whether a packet can match the rule.
func (l *balancing) resolve(r *rule) bool {
	l.resolveFrontend(r)
	if !r.frontend.IsValid() {
		return false
	}
	members := l.members(r)
	if r.network == nil && len(members) > 0 {
		// A frontend leads into one network. If the members are in several, it is the network of the first member.
		r.network = members[0].nic.subnet.network
	}
	if r.network == nil {
		return false
	}
	r.receivers = l.receiversOf(r, members)
	if r.doc.EnableFloatingIP {
		for _, m := range r.backends {
			if !m.nic.doc.EnableIPForwarding {
				m.nic.accepted = append(m.nic.accepted, r.frontend)
			}
		}
	}
	return true
}

func (l *balancing) resolveFrontend(r *rule) {
	for _, c := range r.balancer.Properties.Frontends {
		if r.doc.Frontend == nil || !r.balancer.ID.Child("frontendIPConfigurations", c.Name).Equal(r.doc.Frontend.ID) {
			continue
		}
		r.frontend, r.internal = l.frontendAddress(c.Properties)
		if s := c.Properties.Subnet; r.internal && s != nil {
			r.network = l.byID[s.ID.Parent().Key()]
		}
	}
}

// receiversOf returns the members in the rule's network with their health. The health comes from probes only, not from
// the power state of machines.
func (l *balancing) receiversOf(r *rule, members []backend) receivers {
	key := fmt.Sprint(r.membersKey(), " ", r.doc.Probe.key(), " ", r.network.router)
	if have, ok := l.shared[key]; ok {
		return have
	}
	out := receivers{key: key}
	probe := r.probe()
	for _, m := range members {
		if m.nic.subnet.network != r.network {
			continue
		}
		if probe.Key != "" {
			m.probe = probe
			m.probe.Key += " " + m.address.address.String()
			m.probe.Address, m.probe.Device = m.address.address, m.nic.link()
		}
		out.backends = append(out.backends, m)
		out.all = append(out.all, m.address.address)
		up := strings.EqualFold(m.admin, "Up") || m.probe.Key == "" || l.state.Healthy[m.probe.Key]
		if up && !strings.EqualFold(m.admin, "Down") {
			out.healthy = append(out.healthy, m.address.address)
			out.healthyReceivers = append(out.healthyReceivers, m)
		}
	}
	l.shared[key] = out
	return out
}

func (x *index) frontendAddress(doc frontend) (a netip.Addr, internal bool) {
	if doc.PublicIPAddress != nil {
		return x.public(doc.PublicIPAddress), false
	}
	a, _ = parseAddress(doc.PrivateIPAddress)
	return a, true
}

func (r *rule) pools() []reference {
	if len(r.doc.Pools) == 0 && r.doc.Pool != nil {
		return []reference{*r.doc.Pool}
	}
	return r.doc.Pools
}

// membersKey returns a key that rules with the same members share.
func (r *rule) membersKey() string {
	keys := []string{r.balancer.ID.Key(), family(r.frontend)}
	for _, pool := range r.pools() {
		keys = append(keys, pool.key())
	}
	return strings.Join(keys, " ")
}

// members returns the members of the rule's pools with the frontend's family, in the order of their addresses.
func (l *balancing) members(r *rule) []backend {
	key := r.membersKey()
	have, ok := l.membership[key]
	if !ok {
		have = l.findMembers(r)
		l.membership[key] = have
	}
	return have
}

func (l *balancing) findMembers(r *rule) []backend {
	var all []backend
	for _, pool := range r.pools() {
		for _, a := range l.pools[pool.key()] {
			all = append(all, backend{address: a})
		}
		for _, c := range r.balancer.Properties.Pools {
			if r.balancer.ID.Child("backendAddressPools", c.Name).Equal(pool.ID) {
				all = append(all, l.membersByAddress(c.Properties)...)
			}
		}
	}
	all = slices.DeleteFunc(all, func(b backend) bool { return b.address.address.Is4() != r.frontend.Is4() })
	slices.SortStableFunc(all, func(a, b backend) int {
		return cmp.Or(strings.Compare(a.nic.subnet.network.id.Key(), b.nic.subnet.network.id.Key()),
			a.address.address.Compare(b.address.address))
	})
	return slices.CompactFunc(all, func(a, b backend) bool { return a.address == b.address })
}

// membersByAddress returns the members of a pool that lists IP addresses.
func (x *index) membersByAddress(pool backendPool) []backend {
	var all []backend
	for _, c := range pool.Addresses {
		p := c.Properties
		var n *network
		switch {
		case p.VirtualNetwork != nil:
			n = x.byID[p.VirtualNetwork.key()]
		case p.Subnet != nil:
			n = x.byID[p.Subnet.ID.Parent().Key()]
		default:
			n = x.byID[pool.VirtualNetwork.key()]
		}
		ip, ok := parseAddress(p.IPAddress)
		if !ok || n == nil || n.byAddress[ip] == nil {
			continue
		}
		all = append(all, backend{address: n.byAddress[ip], admin: p.AdminState})
	}
	return all
}

// probe returns the rule's probe without the fields of a member. Its key is "" if the rule has no probe.
func (r *rule) probe() Probe {
	for _, c := range r.balancer.Properties.Probes {
		id := r.balancer.ID.Child("probes", c.Name)
		if r.doc.Probe == nil || !id.Equal(r.doc.Probe.ID) {
			continue
		}
		p := c.Properties
		return Probe{
			Key: id.Key(), Namespace: r.network.router, Protocol: p.Protocol, Port: p.Port, Path: p.RequestPath,
			Interval: time.Duration(max(p.IntervalInSeconds, 5)) * time.Second, Threshold: max(p.ProbeThreshold, 1),
		}
	}
	return Probe{}
}

// protocols returns the transport protocols of a rule in nft's spelling.
func (r *rule) protocols() []string {
	switch strings.ToLower(r.doc.Protocol) {
	case "tcp":
		return []string{"tcp"}
	case "udp", "quic":
		return []string{"udp"}
	}
	return []string{"tcp", "udp"}
}

// allPorts reports whether the rule is for all ports.
func (r *rule) allPorts() bool { return r.doc.FrontendPort == 0 }

func (r *rule) affine() bool {
	return !strings.EqualFold(r.doc.LoadDistribution, "Default") && r.doc.LoadDistribution != ""
}

// choice returns the expression that chooses one of n places by a hash. The rule says which fields the hash has. Rules
// of one load balancer have the same seed, so a client with affinity gets the same member at all ports.
func (r *rule) choice(n int) string {
	ip := family(r.frontend)
	fields := []string{ip + " saddr", ip + " daddr"}
	switch {
	case strings.EqualFold(r.doc.LoadDistribution, "SourceIPProtocol"):
		fields = append(fields, "meta l4proto")
	case !r.affine():
		fields = append(fields, "th sport", "th dport", "meta l4proto")
	}
	sum := fnv.New32a()
	sum.Write([]byte(r.balancer.ID.Key()))
	return fmt.Sprintf("jhash %s mod %d seed 0x%x", strings.Join(fields, " . "), n, sum.Sum32())
}

// places returns the members by the value of the hash. With affinity a member has many values, and keeps most of them
// when another member is added or removed.
func (r *rule) places(healthy []backend) []backend {
	if !r.affine() || len(healthy) < 2 {
		return healthy
	}
	const each = 16
	n := 1
	for n < len(r.backends)*each {
		n *= 2
	}
	places := make([]backend, n)
	for i := range places {
		var best uint64
		for _, b := range healthy {
			sum := fnv.New64a()
			fmt.Fprintf(sum, "%s/%d", b.address.address, i)
			// FNV alone does not mix its last bytes into the high bits enough.
			weight := sum.Sum64() * 0x9e3779b97f4a7c15
			weight ^= weight >> 29
			if weight >= best {
				best, places[i] = weight, b
			}
		}
	}
	return places
}

// addBalancing adds the rules of the network's load balancers to its router.
func addBalancing(b *builder, l *balancing, n *network) {
	for _, where := range []string{"public", "internal"} {
		for _, v := range []string{"4", "6"} {
			typ := "typeof ip daddr . meta l4proto . th dport : verdict"
			all := "type ipv4_addr : verdict"
			if v == "6" {
				typ, all = strings.Replace(typ, "ip daddr", "ip6 daddr", 1), strings.Replace(all, "ipv4", "ipv6", 1)
			}
			for _, how := range []string{"floating", "translated"} {
				b.set(where+"_"+how+v, "map", typ)
				b.set(where+"_"+how+"_all"+v, "map", all)
			}
		}
	}
	made := map[string]string{}
	for _, r := range l.rules {
		if r.network != n {
			continue
		}
		how, where, v := "translated", "public", "6"
		if r.doc.EnableFloatingIP {
			how = "floating"
		}
		if r.internal {
			where = "internal"
		}
		if r.frontend.Is4() {
			v = "4"
		}
		chain := r.chain(b, made)
		if r.allPorts() {
			b.Sets[where+"_"+how+"_all"+v].Elements[r.frontend.String()] = "jump " + chain
			continue
		}
		for _, protocol := range r.protocols() {
			b.Sets[where+"_"+how+v].Elements[fmt.Sprintf("%s . %s . %d", r.frontend, protocol, r.doc.FrontendPort)] = "jump " + chain
		}
	}
}

// chain adds the chain that chooses a member, and returns its name. Rules with the same choice share a chain. The name
// is a hash of its content.
func (r *rule) chain(b *builder, made map[string]string) string {
	key := fmt.Sprint(r.key, " ", r.doc.EnableFloatingIP, " ", r.doc.LoadDistribution)
	if !r.doc.EnableFloatingIP {
		key += fmt.Sprint(" ", r.doc.Protocol, " ", r.doc.BackendPort)
	}
	if name := made[key]; name != "" {
		return name
	}
	rules := r.translated(r.healthyReceivers)
	if r.doc.EnableFloatingIP {
		rules = r.floating(r.healthyReceivers)
	}
	made[key] = "lb_" + hash(strings.Join(rules, "\n"), 16)
	b.chain(made[key], rules...)
	return made[key]
}

// floating returns the chain of a rule with floating IP, which does not change packets. The first packet of a
// connection chooses the member, and the connection keeps its mark. A member that becomes unhealthy keeps its TCP
// connections. Datagrams go to another member.
func (r *rule) floating(healthy []backend) []string {
	rules := []string{"meta l4proto tcp ct state != new return"}
	if len(healthy) == 0 {
		return append(rules, "drop")
	}
	var well, places []string
	for _, b := range healthy {
		well = append(well, mark(b.nic.mark()))
	}
	all := r.places(healthy)
	for i, b := range all {
		places = append(places, fmt.Sprintf("%d : %s", i, mark(b.nic.mark())))
	}
	slices.Sort(well)
	return append(rules,
		fmt.Sprintf("ct mark { %s } return", strings.Join(slices.Compact(well), ", ")),
		fmt.Sprintf("ct mark set %s map { %s }", r.choice(len(all)), strings.Join(places, ", ")))
}

// translated returns the chain of a rule that changes the destination to the address and port of a member. Only the
// first packet of a connection passes it.
func (r *rule) translated(healthy []backend) []string {
	if len(healthy) == 0 {
		return []string{"drop"}
	}
	var places []string
	all := r.places(healthy)
	for i, b := range all {
		places = append(places, fmt.Sprintf("%d : %s", i, b.address.address))
	}
	port := ""
	if r.doc.BackendPort != 0 && !r.allPorts() {
		port = fmt.Sprintf(" : %d", r.doc.BackendPort)
	}
	return []string{fmt.Sprintf("meta l4proto { %s } dnat %s to %s map { %s }%s",
		strings.Join(r.protocols(), ", "), family(r.frontend), r.choice(len(all)), strings.Join(places, ", "), port)}
}
