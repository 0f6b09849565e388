package index

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
)

type (
	// Pool is a backend address pool.
	Pool = azure.Child[network.BackendAddressPool]
	// FrontendConfig is a frontend IP configuration as Azure has it.
	FrontendConfig = azure.Child[network.FrontendIPConfiguration]
	// Rule is a load balancing rule.
	Rule = azure.Child[network.LoadBalancingRule]
)

// IsByAddress reports whether a pool is one of addresses: it has its virtual network.
func IsByAddress(p Pool) bool { return p.Properties.VirtualNetwork != nil || HasAddresses(p) }

// HasAddresses reports whether members of a pool are addresses. Azure shows interfaces in the same place.
func HasAddresses(p Pool) bool {
	return slices.ContainsFunc(p.Properties.LoadBalancerBackendAddresses, func(m azure.Child[network.BackendAddress]) bool {
		return m.Properties.NetworkInterfaceIPConfiguration == nil && m.Properties.IPAddress != ""
	})
}

// LoadBalancer is the external or the internal load balancer of an entry of the configuration, or another one of the
// snapshot. A configured one may not exist yet.
type LoadBalancer struct {
	azure.Resource[network.LoadBalancer]
	Internal bool
	Entry    int // of the configuration, -1 for a load balancer that is configured no more
	Exists   bool
	// Ours says that it is configured, or has a frontend or a rule of a known Service: the configuration may have been
	// different before.
	Ours bool

	RulesOf   map[string][]network.LoadBalancingRule // by owner
	Owned     map[string][]Frontend                  // that are named after an owner
	PoolUsers map[string]map[string]bool             // owners of rules that lead to a pool, by its name in lower case

	uses  map[string][]Use // of frontends, by name in lower case
	rules map[string]bool  // names, in lower case
	order map[string]int   // of the frontends, by name in lower case
}

// Balancers are the load balancers that a decision reads: the configured ones, and all others that are known. A load
// balancer that cannot be read is listed as if it did not exist. The error is that of the first such load balancer.
func Balancers(in Input) (all []*LoadBalancer, unreadable error) {
	known := in.byOwner()
	read := func(id azure.ID, internal bool, entry int) {
		r, exists, err := plan.View[network.LoadBalancer](in.Have, id)
		if err != nil {
			r, unreadable = azure.Resource[network.LoadBalancer]{}, cmp.Or(unreadable, err)
		}
		r.ID = id
		lb := &LoadBalancer{Resource: r, Internal: internal, Entry: entry, Exists: exists, Ours: entry >= 0}
		lb.index(known)
		all = append(all, lb)
	}
	for i, e := range in.Config.Entries() {
		read(in.Config.BalancerID(e.Name, false), false, i)
		read(in.Config.BalancerID(e.Name, true), true, i)
	}
	for _, d := range in.Have.List(in.Config.NetworkGroup(), network.LoadBalancers) {
		if id := d.ID(); !slices.ContainsFunc(all, func(lb *LoadBalancer) bool { return lb.ID.Equal(id) }) {
			read(id, cluster.HasSuffix(id.Name(), cluster.InternalSuffix), -1)
		}
	}
	return all, unreadable
}

func (lb *LoadBalancer) index(known map[string]*v1.Service) {
	p := lb.Properties
	lb.RulesOf = make(map[string][]network.LoadBalancingRule, len(p.LoadBalancingRules))
	lb.Owned = make(map[string][]Frontend, len(p.FrontendIPConfigurations))
	lb.PoolUsers = map[string]map[string]bool{}
	lb.uses = make(map[string][]Use, len(p.FrontendIPConfigurations))
	lb.rules = make(map[string]bool, len(p.LoadBalancingRules))
	lb.order = make(map[string]int, len(p.FrontendIPConfigurations))
	use := func(frontend *azure.Reference, u Use) {
		name := strings.ToLower(frontend.To().Name())
		lb.uses[name] = append(lb.uses[name], u)
	}
	for i, fe := range p.FrontendIPConfigurations {
		owner := naming.Owner(fe.Name)
		lb.Ours = lb.Ours || known[owner] != nil
		lb.order[strings.ToLower(fe.Name)] = i
		lb.Owned[owner] = append(lb.Owned[owner], Frontend{lb, fe.Name})
	}
	for _, r := range p.LoadBalancingRules {
		p, owner := r.Properties, naming.Owner(r.Name)
		lb.Ours = lb.Ours || known[owner] != nil
		lb.rules[strings.ToLower(r.Name)] = true
		lb.RulesOf[owner] = append(lb.RulesOf[owner], p)
		pool := strings.ToLower(p.BackendAddressPool.To().Name())
		if lb.PoolUsers[pool] == nil {
			lb.PoolUsers[pool] = map[string]bool{}
		}
		lb.PoolUsers[pool][owner] = true
		use(p.FrontendIPConfiguration, Use{"rule", r.Name, p.Protocol, p.FrontendPort, p.FrontendPort, owner})
	}
	for _, r := range p.InboundNATRules {
		p := r.Properties
		first, last := cmp.Or(p.FrontendPortRangeStart, p.FrontendPort), cmp.Or(p.FrontendPortRangeEnd, p.FrontendPort)
		use(p.FrontendIPConfiguration, Use{"inbound NAT rule", r.Name, p.Protocol, first, last, ""})
	}
	for _, r := range p.InboundNATPools {
		p := r.Properties
		use(p.FrontendIPConfiguration, Use{"inbound NAT pool", r.Name, p.Protocol, p.FrontendPortRangeStart, p.FrontendPortRangeEnd, ""})
	}
	for _, r := range p.OutboundRules {
		for _, frontend := range r.Properties.FrontendIPConfigurations {
			use(&frontend, Use{What: "outbound rule", Name: r.Name, Protocol: noPorts})
		}
	}
}

// Has reports whether there is a frontend or a rule of an owner.
func (lb *LoadBalancer) Has(owner string) bool {
	return len(lb.Owned[owner])+len(lb.RulesOf[owner]) > 0
}

// IsBasic reports whether the load balancer has the SKU that Azure has retired. It cannot change to another SKU.
func (lb *LoadBalancer) IsBasic() bool {
	return lb.SKU != nil && strings.EqualFold(lb.SKU.Name, "Basic")
}

// HasRule reports whether there is a rule of a name.
func (lb *LoadBalancer) HasRule(name string) bool { return lb.rules[strings.ToLower(name)] }

// Order is the place of a frontend among the others.
func (lb *LoadBalancer) Order(frontend string) int { return lb.order[strings.ToLower(frontend)] }

// Frontend is the frontend of a name.
func (lb *LoadBalancer) Frontend(name string) (fe FrontendConfig, exists bool) {
	i, exists := lb.order[strings.ToLower(name)]
	if exists {
		fe = lb.Properties.FrontendIPConfigurations[i]
	}
	return fe, exists
}

// Frontend names a frontend of a load balancer, whether it exists or not.
type Frontend struct {
	LB   *LoadBalancer
	Name string
}

// Key is the frontend for comparison: Azure compares names without regard to case.
func (f Frontend) Key() Frontend { return Frontend{f.LB, strings.ToLower(f.Name)} }

// ID is the frontend's id.
func (f Frontend) ID() azure.ID { return f.LB.ID.Child(network.FrontendIPConfigurations, f.Name) }

// State is the frontend as Azure has it, an empty one where it does not exist.
func (f Frontend) State() network.FrontendIPConfiguration {
	fe, _ := f.LB.Frontend(f.Name)
	return fe.Properties
}

// Exists reports whether Azure has the frontend.
func (f Frontend) Exists() bool {
	_, exists := f.LB.Frontend(f.Name)
	return exists
}

// Uses are what uses the frontend.
func (f Frontend) Uses() []Use { return f.LB.uses[strings.ToLower(f.Name)] }

// Owner is the owner in the frontend's name.
func (f Frontend) Owner() string { return naming.Owner(f.Name) }

// UsedBy reports whether a rule of an owner uses the frontend.
func (f Frontend) UsedBy(owner string) bool {
	return slices.ContainsFunc(f.Uses(), func(u Use) bool { return u.Owner == owner })
}

// AddressKey is the address of a frontend for comparison: the id key of its public IP, or the private address, "" where
// neither is known.
func AddressKey(fe network.FrontendIPConfiguration) string {
	return cmp.Or(fe.PublicIPAddress.To().Key(), address.Plain(fe.PrivateIPAddress))
}

// Use is something in a load balancer that uses a frontend.
type Use struct {
	What        string // in a person's words
	Name        string
	Protocol    string
	First, Last int32  // its ports, 0 for all
	Owner       string // base name in lower case, "" for what is no rule of a Service
}

// noPorts is the protocol of a use that takes no ports.
const noPorts = "none"

// Takes reports whether the use leaves no room for a rule at a port; 0 is all ports.
func (u Use) Takes(protocol string, port int32) bool {
	if u.Protocol == noPorts ||
		!strings.EqualFold(u.Protocol, protocol) && !strings.EqualFold(u.Protocol, "All") && !strings.EqualFold(protocol, "All") {
		return false
	}
	return u.First == 0 || port == 0 || u.First <= port && port <= u.Last
}
