package loadbalancer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kaz/internal/azure/compute"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

// Balancer is one of several load balancers over which a cluster's Services and nodes
// are spread: an external and an internal one, as they are needed.
type Balancer struct {
	Name           string
	AllowPlacement bool   // of Services that are not there yet
	PrimaryVMSet   string // the scale set or availability set whose nodes belong to it
	// Selectors say which Services, Services of which namespaces, and which nodes
	// belong to it; nil and empty ones say nothing.
	ServiceSelector, NamespaceSelector, NodeSelector *metav1.LabelSelector
}

// entries are the configured load balancers: one where no several are configured.
func (c Config) entries() []Balancer {
	if len(c.Balancers) == 0 {
		return []Balancer{{Name: c.LoadBalancerName, AllowPlacement: true}}
	}
	return c.Balancers
}

// choose finds the load balancer of a Service: the one that is best for it, unless it
// would take an address there from a frontend that has to stay.
func (s *search) choose(w wish, wrong *problems) *side {
	to := s.best(w, wrong)
	if wrong.blocking() {
		return to
	}
	for _, a := range w.addresses {
		at, moves := s.movesFrom(w, a, to)
		if !moves {
			continue
		}
		if by, held := s.heldBy(w, at, to); held {
			s.refuseMove(w, at, to, by, wrong)
			return at.side
		}
	}
	return to
}

// best finds the load balancer where a Service is, unless its labels or annotations lead
// elsewhere.
func (s *search) best(w wish, wrong *problems) *side {
	if len(s.Config.Balancers) == 0 {
		return s.sideOf(0, w.internal)
	}
	current := s.currentEntry(w)
	eligible := s.eligible(w, current, wrong)
	if pinned, at := s.pinnedEntry(w); pinned >= 0 {
		if len(eligible) > 0 && !slices.Contains(eligible, pinned) {
			wrong.refuse(w.service.Key(), ReasonChoice, "its address stands at load balancer %s, which may not serve it, allowed are %s", at.id.Name(), s.entryNames(eligible))
		}
		return s.sideOf(pinned, w.internal)
	}
	if len(eligible) == 0 {
		return s.sideOf(0, w.internal) // the problem is noted
	}
	if slices.Contains(eligible, current) {
		return s.sideOf(current, w.internal)
	}
	best := s.roomiest(w, eligible)
	if best == nil {
		wrong.refuse(w.service.Key(), ReasonLimit, "load balancers %s have as many rules as are allowed (%d each): take Services away, or configure another load balancer", s.entryNames(eligible), s.mostRules())
		return s.sideOf(0, w.internal)
	}
	return best
}

// mostRules is how many rules a load balancer may have for a Service to come.
func (s *search) mostRules() int {
	if s.Config.MaximumRules == 0 {
		return mostRulesPerNode
	}
	return min(s.Config.MaximumRules, mostRulesPerNode)
}

// roomiest is, in this order: a load balancer that is there without rules, the first
// that is not there yet, the one with the fewest rules; nil when all are full. Rules that
// go with the commit do not count: the next plan would choose otherwise.
func (s *search) roomiest(w wish, eligible []int) *side {
	var best *side
	rank := func(one *side) (class, rules int) {
		rules = s.staying[one] + s.planned[one]
		switch {
		case one.exists && rules == 0:
			return 0, 0
		case !one.exists && rules == 0:
			return 1, 0
		}
		return 2, rules
	}
	for _, e := range s.withIPv4(w, eligible) {
		one := s.sideOf(e, w.internal)
		class, rules := rank(one)
		full := s.Config.MaximumRules > 0 && rules >= s.Config.MaximumRules
		if full || slices.ContainsFunc(w.families(), func(six bool) bool { return !s.hasRoom(w, one, six) }) {
			continue
		}
		if best == nil {
			best = one
			continue
		}
		if bestClass, bestRules := rank(best); class < bestClass || class == bestClass && rules < bestRules {
			best = one
		}
	}
	return best
}

// withIPv4 are those load balancers that have IPv4 when all is done, for a Service with IPv6
// alone: Azure would not have it elsewhere. Where none has, there is no better choice.
func (s *search) withIPv4(w wish, eligible []int) []int {
	beside := slices.DeleteFunc(slices.Clone(eligible), func(e int) bool { return !s.four[s.sideOf(e, w.internal)] })
	if w.ipv6Alone() == 0 || len(beside) == 0 {
		return eligible
	}
	return beside
}

// currentEntry is where a Service is, -1 for nowhere. The kind that it wants counts
// first.
func (s *search) currentEntry(w wish) int {
	found := -1
	for _, at := range s.ofOwner(w.base) {
		if at.side.entry >= 0 && (found < 0 || at.side.internal == w.internal) {
			found = at.side.entry
		}
	}
	if found >= 0 {
		return found
	}
	for _, one := range s.sides { // it may share a frontend
		if len(one.ruled[strings.ToLower(w.base)]) > 0 && one.entry >= 0 {
			return one.entry
		}
	}
	return -1
}

// pinnedEntry is where the address stands that a Service names, -1 for nowhere.
func (s *search) pinnedEntry(w wish) (int, *side) {
	for _, a := range w.addresses {
		t, ok := s.quietTarget(w, a)
		if !ok || !a.given() || t.key() == "" {
			continue
		}
		if at, stands := s.at[t.key()]; stands && at.side.entry >= 0 && at.side.internal == w.internal && ownerBase(at.name) != strings.ToLower(w.base) {
			return at.side.entry, at.side
		}
	}
	return -1, nil
}

func (s *search) entryNames(of []int) string {
	var names []string
	for _, e := range of {
		names = append(names, s.Config.entries()[e].Name)
	}
	return strings.Join(names, ", ")
}

// eligible are the load balancers that may serve a Service.
func (s *search) eligible(w wish, current int, wrong *problems) []int {
	asked := balancersAsked(w.service)
	if len(asked) > 0 && slices.ContainsFunc(w.addresses, address.given) {
		wrong.refuse(w.service.Key(), ReasonChoice, "annotation %s and an address or public IP of its own are both set, allowed is one of them", key.Balancers.Name)
		return nil
	}
	var some, chosen []int
	var why []string
	for i, e := range s.Config.entries() {
		reason, selected := s.refuses(e, w, asked, i == current)
		switch {
		case reason != "":
			why = append(why, e.Name+" "+reason)
		case selected:
			chosen = append(chosen, i)
			fallthrough
		default:
			some = append(some, i)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	if len(some) == 0 {
		said := ""
		if len(asked) > 0 {
			said = fmt.Sprintf("annotation %s: %q: ", key.Balancers.Name, strings.Join(asked, ", "))
		}
		wrong.refuse(w.service.Key(), ReasonChoice, "%sno load balancer may serve it: %s; allowed is a Service that the annotation %s, its labels and its namespace's lead to one", said, strings.Join(why, ", "), key.Balancers.Name)
	}
	return some
}

// refuses says why a load balancer may not serve a Service, "" when it may, and whether
// a selector asks for it.
func (s *search) refuses(e Balancer, w wish, asked []string, current bool) (reason string, selected bool) {
	switch {
	case len(asked) > 0 && !slices.Contains(asked, strings.ToLower(e.Name)):
		return "is not among those that it names", false
	case !e.AllowPlacement && !current:
		return "takes no further Services", false
	}
	for _, one := range []struct {
		selector *metav1.LabelSelector
		labels   map[string]string
		what     string
	}{
		{e.ServiceSelector, w.service.Labels, "wants other labels"},
		{e.NamespaceSelector, s.Namespaces[w.service.Namespace], "wants another namespace"},
	} {
		if isNoSelector(one.selector) {
			continue
		}
		if !matches(one.selector, one.labels) {
			return one.what, false
		}
		selected = true
	}
	return "", selected
}

func isNoSelector(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// matches reports whether labels fit. A selector that cannot be read fits nothing; the
// cloud configuration is checked for those.
func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// balancersAsked are the load balancers that a Service names. The key is known in any
// case.
func balancersAsked(s Service) []string {
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		if sameText(name, key.Balancers.Name) {
			asked, _ := key.Balancers.Read(map[string]string{key.Balancers.Name: s.Annotations[name]})
			return asked
		}
	}
	return nil
}

// localPoolName names the pool that a Service of policy Local has to itself where there
// are several load balancers.
func localPoolName(s *v1.Service, family v1.IPFamily) string {
	name := strings.ToLower(s.Namespace + "-" + s.Name)
	if family == v1.IPv6Protocol {
		name += strings.ToLower(suffixIPv6)
	}
	return name
}

const longestPoolName = 80

// refusePool finds Services whose own pool cannot have its name.
func (s *search) refusePool(w wish, p place, wrong *problems) {
	if p.ownPool == "" {
		return
	}
	if len(p.ownPool) > longestPoolName {
		wrong.refuse(w.service.Key(), ReasonSpec, "its backend pool would be named %q, which has %d characters, allowed are %d: a shorter name of Service or namespace", p.ownPool, len(p.ownPool), longestPoolName)
	}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		if sameText(p.ownPool, s.Config.poolName(family)) {
			wrong.refuse(w.service.Key(), ReasonSpec, "its backend pool would be named like the cluster's, %q, allowed is another name of Service or namespace", p.ownPool)
		}
	}
	other, taken := s.pools[p.side.id.Key()+"/"+p.ownPool]
	if taken && other != w.service.Key() {
		wrong.refuse(w.service.Key(), ReasonSpec, "its backend pool would be named %q like that of Service %s, allowed is another name of Service or namespace", p.ownPool, other)
	}
	for owner := range p.side.poolUsers[p.ownPool] {
		if _, live := s.wishes[owner]; owner != strings.ToLower(w.base) && !live && !s.gone[owner] {
			wrong.refuse(w.service.Key(), ReasonSpec, "its backend pool would be named %q like that of another Service at load balancer %s, allowed is another name of Service or namespace", p.ownPool, p.side.id.Name())
			return
		}
	}
}

// nodePlaces says at which of several load balancers each node is, by name, -1 for none.
func (f *facts) nodePlaces(up []bool, found *problems) map[string]int {
	entries := f.Config.entries()
	places := make(map[string]int, len(f.Nodes))
	counts := make([]int, len(entries))
	current := f.currentNodes()
	place := func(n *v1.Node, e int) {
		places[n.Name] = e
		if RoleOf(f.Config, n) == Receiver {
			counts[e]++
		}
	}
	var open []*v1.Node
	for _, n := range f.nodes {
		set := f.setOf(n)
		e := slices.IndexFunc(entries, func(b Balancer) bool { return set != "" && sameText(b.PrimaryVMSet, set) })
		if e >= 0 && up[e] {
			place(n, e)
			continue
		}
		open = append(open, n)
	}
	// Who is somewhere stays, so those count before the ones to come.
	slices.SortStableFunc(open, func(a, b *v1.Node) int { return isNew(current, a) - isNew(current, b) })
	for _, n := range open {
		some := f.nodeCandidates(n, up)
		if len(some) == 0 {
			places[n.Name] = -1
			if slices.Contains(up, true) && RoleOf(f.Config, n) == Receiver {
				found.warn(n.Name, ReasonNodeNowhere, "no load balancer is for it, allowed are nodes of a primaryVMSet, or such that a nodeSelector selects")
			}
			continue
		}
		best := some[0]
		if was, there := current[n.Name]; there && slices.Contains(some, was) {
			best = was
		} else {
			for _, e := range some {
				if counts[e] < counts[best] {
					best = e
				}
			}
		}
		place(n, best)
	}
	return places
}

func isNew(current map[string]int, n *v1.Node) int {
	if _, there := current[n.Name]; there {
		return 0
	}
	return 1
}

// nodeCandidates are the load balancers whose selector selects a node, else those
// without one.
func (f *facts) nodeCandidates(n *v1.Node, up []bool) []int {
	var selected, rest []int
	for i, e := range f.Config.entries() {
		switch {
		case !up[i]:
		case isNoSelector(e.NodeSelector):
			rest = append(rest, i)
		case matches(e.NodeSelector, n.Labels):
			selected = append(selected, i)
		}
	}
	if len(selected) > 0 {
		return selected
	}
	return rest
}

// currentNodes says at which load balancer nodes are so far, by name.
func (f *facts) currentNodes() map[string]int {
	at := map[netip.Addr]int{}
	for _, s := range f.sides {
		for _, p := range s.lb.Properties.BackendAddressPools {
			if !f.Config.isOwnPool(p.Name) || s.entry < 0 {
				continue
			}
			for _, m := range p.Properties.LoadBalancerBackendAddresses {
				if ip, err := netip.ParseAddr(m.Properties.IPAddress); err == nil {
					at[ip.Unmap()] = s.entry
				}
			}
		}
	}
	current := map[string]int{}
	for _, n := range f.Nodes {
		for _, ip := range internalIPs(n) {
			if e, there := at[ip]; there {
				current[n.Name] = e
			}
		}
	}
	return current
}

// setOf names the set that a node's machine is in, "" for none. Machines of their own say
// it in their documents.
func (f *facts) setOf(n *v1.Node) string {
	id, ok := nodes.MachineID(n.Spec.ProviderID)
	switch {
	case !ok:
		return ""
	case id.Is(compute.ScaleSetInstances):
		return id.Parent().Name()
	}
	// A document that cannot be read is membership's to report.
	vm, exists, err := plan.View[compute.VirtualMachine](f.Have, id)
	switch {
	case err != nil || !exists:
		return ""
	case vm.Properties.VirtualMachineScaleSet != nil:
		return vm.Properties.VirtualMachineScaleSet.ID.Name()
	case vm.Properties.AvailabilitySet != nil:
		return vm.Properties.AvailabilitySet.ID.Name()
	}
	return ""
}

// spreadNodes fills the cluster's pools where there are several load balancers: each with the
// nodes that are there. A pool that nobody is left in is emptied: who was there is gone, or
// serves another load balancer, and the others have nodes.
func (f *facts) spreadNodes(b batch, all []*balancer, found *problems) {
	if len(f.Config.Balancers) == 0 || len(f.Nodes) == 0 {
		return
	}
	up := make([]bool, len(f.Config.Balancers))
	for _, lb := range all {
		if lb.side.entry >= 0 && lb.stays {
			up[lb.side.entry] = true
		}
	}
	places := f.nodePlaces(up, found)
	for _, lb := range all {
		if lb.side.entry < 0 || !lb.stays || !f.fills(lb.side) || !f.byIP(lb.side) {
			continue
		}
		for i, p := range lb.BackendAddressPools {
			if family, ours := f.Config.poolFamily(p.Name); ours && !p.Keep {
				p = f.orNobody(lb.side.poolNamed(p.Name), family, slices.DeleteFunc(slices.Clone(f.nodes), func(n *v1.Node) bool { return places[n.Name] != lb.side.entry }))
				lb.BackendAddressPools[i] = p
				f.warnNobody(b, lb, p, family, found)
			}
		}
	}
}

// warnNobody tells Services that none of the nodes is at their load balancer.
func (f *facts) warnNobody(b batch, lb *balancer, p pool, family v1.IPFamily, found *problems) {
	if len(p.Properties.LoadBalancerBackendAddresses) > 0 || !slices.ContainsFunc(f.Nodes, func(n *v1.Node) bool { return RoleOf(f.Config, n) == Receiver }) {
		return // the controller tells those who have no node at all
	}
	for _, w := range b.live {
		if slices.ContainsFunc(w.places, func(p place) bool { return p.side == lb.side && p.ownPool == "" && p.family == family }) {
			found.warn(w.service.Key(), ReasonNoNodes, "There are no available nodes with %s at load balancer %s, allowed is a load balancer of whose primaryVMSet (here %q), or nodeSelector, there are nodes",
				family, lb.side.id.Name(), f.Config.Balancers[lb.side.entry].PrimaryVMSet)
		}
	}
}

// poolNamed is a pool as it is, or an empty one.
func (s *side) poolNamed(name string) pool {
	for _, p := range s.lb.Properties.BackendAddressPools {
		if sameText(p.Name, name) {
			return p
		}
	}
	return pool{Name: name}
}

// ownPools takes away the pools that Services of the batch have had to themselves and need no
// more, and fills all others of the kind with the nodes that have their Service's endpoints:
// also of a Service that is not of the batch, or refused. What it is served by stays then,
// and its endpoints move all the same.
func (f *facts) ownPools(b batch, lb *balancer) {
	referred := map[string]bool{}
	for _, r := range lb.LoadBalancingRules {
		if ref := r.Properties.BackendAddressPool; ref != nil {
			referred[strings.ToLower(ref.ID.Name())] = true
		}
	}
	lb.BackendAddressPools = slices.DeleteFunc(lb.BackendAddressPools, func(p pool) bool {
		return !referred[strings.ToLower(p.Name)] && f.wasOwnPool(b, lb.side, p.Name)
	})
	if !f.fills(lb.side) {
		return
	}
	owners := f.poolOwners(b, lb.side)
	for i, p := range lb.BackendAddressPools {
		owner, owned := owners[strings.ToLower(p.Name)]
		if ends, known := f.Endpoints[owner.service]; owned && known {
			lb.BackendAddressPools[i] = f.byEndpoints(p, owner.family, ends)
		}
	}
}

// poolOwner is the Service that has a pool to itself.
type poolOwner struct {
	service string // its key
	family  v1.IPFamily
}

// poolOwners are those of the pools of a load balancer, by the pools' names in lower case:
// Services whose rules lead there, and those of the batch that come.
func (f *facts) poolOwners(b batch, at *side) map[string]poolOwner {
	owners := map[string]poolOwner{}
	for name, users := range at.poolUsers {
		if f.Config.isOwnPool(name) {
			continue
		}
		for base := range users {
			s := f.alive[base]
			for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
				if s != nil && localPoolName(s, family) == name {
					owners[name] = poolOwner{s.Namespace + "/" + s.Name, family}
				}
			}
		}
	}
	for _, w := range b.live {
		for _, p := range w.places {
			if p.side == at && p.ownPool != "" {
				owners[p.ownPool] = poolOwner{w.service.Key(), p.family}
			}
		}
	}
	return owners
}

// wasOwnPool reports whether a pool is one that a Service of the batch has had to
// itself.
func (f *facts) wasOwnPool(b batch, s *side, name string) bool {
	if f.Config.isOwnPool(name) {
		return false
	}
	for _, w := range slices.Concat(b.live, b.gone) {
		for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
			if !sameText(localPoolName(w.service.Service, family), name) {
				continue
			}
			for _, r := range s.ruled[strings.ToLower(w.base)] {
				if r.BackendAddressPool != nil && sameText(r.BackendAddressPool.ID.Name(), name) {
					return true
				}
			}
		}
	}
	return false
}

// byEndpoints is a pool with the addresses of the nodes that have endpoints, whatever
// load balancer they are at.
func (f *facts) byEndpoints(p pool, family v1.IPFamily, ends []string) pool {
	var there []*v1.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(ends))) {
		if i, is := slices.BinarySearchFunc(f.nodes, name, func(n *v1.Node, name string) int { return strings.Compare(n.Name, name) }); is {
			there = append(there, f.nodes[i])
		}
	}
	return f.orNobody(p, family, there)
}

// orNobody is byAddress where nobody is an answer, too: a nil list would leave the members as
// they are.
func (f *facts) orNobody(p pool, family v1.IPFamily, belong []*v1.Node) pool {
	next := f.byAddress(p, family, belong)
	if next.Properties.LoadBalancerBackendAddresses == nil {
		next.Properties.LoadBalancerBackendAddresses = []poolMember{}
	}
	return next
}
