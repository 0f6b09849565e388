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

// rule is a load balancing rule with its references followed.
type rule struct {
	id       azure.ID
	balancer *resource[loadBalancer]
	doc      balancingRule
	frontend netip.Addr
	internal bool
	network  *network
	receivers
}

// receivers are those of a rule. Rules with the same pools and the same probe share
// them: clusters have hundreds of rules and a thousand machines behind each.
type receivers struct {
	key              string
	backends         []backend
	all, healthy     []netip.Addr
	healthyReceivers []backend
}

// backend is a receiver.
type backend struct {
	*address
	probe Probe // the zero one when nobody asks
	admin string
}

// addRules follows the references of all rules, those first whose ids are first.
func (f *facts) addRules() {
	for _, key := range slices.Sorted(maps.Keys(f.docs.balancers)) {
		b := f.docs.balancers[key]
		for _, c := range b.Properties.Rules {
			r := &rule{id: b.ID.Child("loadBalancingRules", c.Name), balancer: b, doc: c.Properties}
			if f.follow(r) {
				f.rules = append(f.rules, r)
			}
		}
	}
}

// follow finds the frontend and the receivers of a rule. It reports whether packets
// can be for it.
func (f *facts) follow(r *rule) bool {
	for _, c := range r.balancer.Properties.Frontends {
		if r.doc.Frontend != nil && r.balancer.ID.Child("frontendIPConfigurations", c.Name).Equal(r.doc.Frontend.ID) {
			r.frontend, r.internal = f.frontendAddress(c.Properties)
			if s := c.Properties.Subnet; r.internal && s != nil {
				r.network = f.byID[s.ID.Parent().Key()]
			}
		}
	}
	if !r.frontend.IsValid() {
		return false
	}
	members := f.members(r)
	if r.network == nil && len(members) > 0 {
		// A frontend leads into one network: where a balancer spans several, the first.
		r.network = members[0].card.subnet.network
	}
	if r.network == nil {
		return false
	}
	r.receivers = f.receiversOf(r, members)
	if r.doc.EnableFloatingIP {
		for _, m := range r.backends {
			if !m.card.doc.EnableIPForwarding {
				m.card.own = append(m.card.own, r.frontend)
			}
		}
	}
	return true
}

// receiversOf are those of the members that are in the rule's network. A load balancer
// does not know which of their machines run: it asks.
func (f *facts) receiversOf(r *rule, members []backend) receivers {
	key := fmt.Sprint(r.membersKey(), " ", r.doc.Probe.key(), " ", r.network.router)
	if have, ok := f.receivers[key]; ok {
		return have
	}
	out := receivers{key: key}
	probe := f.probeOf(r)
	for _, m := range members {
		if m.card.subnet.network != r.network {
			continue
		}
		if probe.Key != "" {
			m.probe = probe
			m.probe.Key += " " + m.address.address.String()
			m.probe.Address, m.probe.Device = m.address.address, m.card.link()
		}
		out.backends = append(out.backends, m)
		out.all = append(out.all, m.address.address)
		up := strings.EqualFold(m.admin, "Up") || m.probe.Key == "" || f.state.Healthy[m.probe.Key]
		if up && !strings.EqualFold(m.admin, "Down") {
			out.healthy = append(out.healthy, m.address.address)
			out.healthyReceivers = append(out.healthyReceivers, m)
		}
	}
	f.receivers[key] = out
	return out
}

func (f *facts) frontendAddress(doc frontend) (a netip.Addr, internal bool) {
	if doc.PublicIPAddress != nil {
		return f.public(doc.PublicIPAddress), false
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

// membersKey is the same for rules with the same members.
func (r *rule) membersKey() string {
	keys := []string{r.balancer.ID.Key(), family(r.frontend)}
	for _, pool := range r.pools() {
		keys = append(keys, pool.key())
	}
	return strings.Join(keys, " ")
}

// members are the receivers in the rule's pools, of the frontend's family, by their
// addresses.
func (f *facts) members(r *rule) []backend {
	key := r.membersKey()
	have, ok := f.membership[key]
	if !ok {
		have = f.findMembers(r)
		f.membership[key] = have
	}
	return have
}

func (f *facts) findMembers(r *rule) []backend {
	var all []backend
	for _, pool := range r.pools() {
		for _, a := range f.pools[pool.key()] {
			all = append(all, backend{address: a})
		}
		for _, c := range r.balancer.Properties.Pools {
			if r.balancer.ID.Child("backendAddressPools", c.Name).Equal(pool.ID) {
				all = append(all, f.membersByAddress(c.Properties)...)
			}
		}
	}
	all = slices.DeleteFunc(all, func(b backend) bool { return b.address.address.Is4() != r.frontend.Is4() })
	slices.SortStableFunc(all, func(a, b backend) int {
		return cmp.Or(strings.Compare(a.card.subnet.network.id.Key(), b.card.subnet.network.id.Key()), a.address.address.Compare(b.address.address))
	})
	return slices.CompactFunc(all, func(a, b backend) bool { return a.address == b.address })
}

// membersByAddress are members of a pool that were named by their address.
func (f *facts) membersByAddress(pool backendPool) []backend {
	var all []backend
	for _, c := range pool.Addresses {
		p := c.Properties
		var n *network
		switch {
		case p.VirtualNetwork != nil:
			n = f.byID[p.VirtualNetwork.key()]
		case p.Subnet != nil:
			n = f.byID[p.Subnet.ID.Parent().Key()]
		default:
			n = f.byID[pool.VirtualNetwork.key()]
		}
		ip, ok := parseAddress(p.IPAddress)
		if !ok || n == nil || n.byAddress[ip] == nil {
			continue
		}
		all = append(all, backend{address: n.byAddress[ip], admin: p.AdminState})
	}
	return all
}

// probeOf is the question whose answer decides whether receivers get connections,
// but for the receiver. Its key is "" when nobody asks.
func (f *facts) probeOf(r *rule) Probe {
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

// protocols are the transport protocols of a rule, in nft's spelling.
func (r *rule) protocols() []string {
	switch strings.ToLower(r.doc.Protocol) {
	case "tcp":
		return []string{"tcp"}
	case "udp", "quic":
		return []string{"udp"}
	}
	return []string{"tcp", "udp"}
}

// allPorts reports whether the rule is for every port.
func (r *rule) allPorts() bool { return r.doc.FrontendPort == 0 }

func (r *rule) affine() bool {
	return !strings.EqualFold(r.doc.LoadDistribution, "Default") && r.doc.LoadDistribution != ""
}

// choice is the expression that picks one of n places by what the rule says that
// belongs together. Rules of one balancer pick alike, so that a client with affinity
// meets the same receiver at all ports.
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

// places are the receivers that a hash chooses from. With affinity they have many
// places each, and keep most of them when another comes or goes.
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
			// FNV alone barely mixes its last bytes into the high bits.
			weight := sum.Sum64() * 0x9e3779b97f4a7c15
			weight ^= weight >> 29
			if weight >= best {
				best, places[i] = weight, b
			}
		}
	}
	return places
}

// forward adds the rules of the network's load balancers to its router.
func (f *facts) forward(n *network, b *builder) {
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
	for _, r := range f.rules {
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

// chain makes the chain that chooses a receiver, and is its name. Rules that choose
// alike share one; it is named after what is in it.
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

// floating sends packets as they are: the first one of a connection chooses the
// receiver, whose mark the connection keeps. A receiver that does not answer keeps
// its TCP connections; datagrams go to another.
func (r *rule) floating(healthy []backend) []string {
	rules := []string{"meta l4proto tcp ct state != new return"}
	if len(healthy) == 0 {
		return append(rules, "drop")
	}
	var well, places []string
	for _, b := range healthy {
		well = append(well, mark(b.card.mark()))
	}
	all := r.places(healthy)
	for i, b := range all {
		places = append(places, fmt.Sprintf("%d : %s", i, mark(b.card.mark())))
	}
	slices.Sort(well)
	return append(rules,
		fmt.Sprintf("ct mark { %s } return", strings.Join(slices.Compact(well), ", ")),
		fmt.Sprintf("ct mark set %s map { %s }", r.choice(len(all)), strings.Join(places, ", ")))
}

// translated sends packets to the address and port of the receiver. Only the first
// one of a connection comes by.
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
