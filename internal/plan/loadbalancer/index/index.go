package index

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/nodes"
)

// Index is an input with its documents parsed.
type Index struct {
	Input
	LoadBalancers    []*LoadBalancer // the configured ones first
	SecurityGroup    azure.Resource[network.SecurityGroup]
	HasSecurityGroup bool
	SortedNodes      []*Node // all, by name
	Links            []*Link
	Balancers        []*LoadBalancer // all that were read, those of others too

	Known        map[string]*v1.Service // all Services, by owner
	PublicIPs    map[string]*PublicIP   // by id key
	PublicIPsFor map[string][]*PublicIP // by the key of a Service that a tag names
	PublicIPsAt  map[string][]azure.ID  // by address
	NodeIPs      map[netip.Addr]bool
	Holders      map[string][]Frontend // frontends by [AddressKey]

	none *PublicIP // stands for those that do not exist
}

// PublicIP is a public IP address, with what its tags say.
type PublicIP struct {
	azure.Resource[network.PublicIPAddress]
	Services []string // that a tag names, in its order; with any the public IP is managed, maybe by another cluster
	Managed  bool     // it is this cluster's to change
}

// Exists reports whether Azure has the public IP.
func (ip *PublicIP) Exists() bool { return ip.ID != "" }

// HasFamily reports whether a public IP is of a family.
func (ip *PublicIP) HasFamily(family v1.IPFamily) bool {
	return address.FamilyNamed(ip.Properties.PublicIPAddressVersion) == family
}

// IsOnlyFor reports whether a public IP is managed and serves one Service alone, by its key.
func (ip *PublicIP) IsOnlyFor(service string) bool {
	return ip.Managed && slices.Equal(ip.Services, []string{service})
}

// Label is the DNS label that a public IP has, "" for none.
func (ip *PublicIP) Label() string {
	if set := ip.Properties.DNSSettings; set != nil {
		return set.DomainNameLabel
	}
	return ""
}

// Link is a private link service, with what its tags say.
type Link struct {
	azure.Resource[network.PrivateLinkService]
	Managed bool   // it is this cluster's to change
	Owner   string // the Service that a tag of a managed one names, "" for none
}

// Links are the private link services that a decision reads.
func Links(in Input, balancers []*LoadBalancer) ([]*Link, error) {
	var all []*Link
	for _, group := range LinkGroups(in, balancers) {
		views, err := plan.Views[network.PrivateLinkService](in.Have, group, network.PrivateLinkServices)
		if err != nil {
			return nil, err
		}
		for _, view := range views {
			l := &Link{Resource: view}
			if _, tagged := l.Tags.Get(naming.ClusterTag); tagged && !naming.IsOfOther(l.Tags, in.Config.ClusterName) {
				l.Managed = true
				l.Owner, _ = l.Tags.Get(naming.LinkOwnerTag)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// Read reads an input. An error says which document cannot be read.
func Read(in Input) (*Index, error) {
	x := &Index{
		Input: in, Known: in.byOwner(), PublicIPs: map[string]*PublicIP{},
		PublicIPsFor: map[string][]*PublicIP{}, PublicIPsAt: map[string][]azure.ID{}, Holders: map[string][]Frontend{},
		NodeIPs: make(map[netip.Addr]bool, len(in.Nodes)), none: &PublicIP{},
	}
	var err error
	if x.Balancers, err = Balancers(in); err != nil {
		return nil, err
	}
	x.LoadBalancers = slices.DeleteFunc(slices.Clone(x.Balancers), func(lb *LoadBalancer) bool { return !lb.Ours })
	for at, fe := range x.Frontends() {
		if k := AddressKey(fe.Properties); k != "" {
			x.Holders[k] = append(x.Holders[k], at)
		}
	}
	for _, n := range in.Nodes {
		machine, _ := nodes.MachineID(n.Spec.ProviderID)
		node := &Node{n, cluster.RoleOf(in.Config, n), machine, cluster.InternalIPs(n)}
		x.SortedNodes = append(x.SortedNodes, node)
		for _, ip := range node.IPs {
			x.NodeIPs[ip] = true
		}
	}
	slices.SortStableFunc(x.SortedNodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	if x.Links, err = Links(in, x.Balancers); err != nil {
		return nil, err
	}
	for _, group := range AddressGroups(in, x.Balancers) {
		views, err := plan.Views[network.PublicIPAddress](in.Have, group, network.PublicIPAddresses)
		if err != nil {
			return nil, err
		}
		for _, view := range views {
			x.addPublicIP(view)
		}
	}
	if x.SecurityGroup, x.HasSecurityGroup, err = plan.View[network.SecurityGroup](in.Have, in.Config.SecurityGroupID()); err != nil {
		return nil, err
	}
	for _, id := range Subnets(in) {
		if _, _, err := plan.View[network.Subnet](in.Have, id); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *Index) addPublicIP(view azure.Resource[network.PublicIPAddress]) {
	view.Properties.IPAddress = address.Plain(view.Properties.IPAddress)
	ip := &PublicIP{Resource: view, Services: naming.ServicesIn(view.Tags)}
	ip.Managed = len(ip.Services) > 0 && !naming.IsOfOther(ip.Tags, x.Config.ClusterName)
	x.PublicIPs[ip.ID.Key()] = ip
	x.PublicIPsAt[ip.Properties.IPAddress] = append(x.PublicIPsAt[ip.Properties.IPAddress], ip.ID)
	for _, service := range ip.Services {
		x.PublicIPsFor[service] = append(x.PublicIPsFor[service], ip)
	}
}

// Node is a node of the cluster.
type Node struct {
	*v1.Node
	Role    cluster.Role
	Machine azure.ID // "" for none that is known
	IPs     []netip.Addr
}

// Address is the node's address in a family: the first one.
func (n *Node) Address(family v1.IPFamily) (netip.Addr, bool) {
	for _, ip := range n.IPs {
		if address.Family(ip) == family {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// HasReceivers reports whether any node belongs into the backend pools.
func (x *Index) HasReceivers() bool {
	return slices.ContainsFunc(x.SortedNodes, func(n *Node) bool { return n.Role == cluster.Receiver })
}

// Rules yields the load balancing rules of all load balancers.
func (x *Index) Rules() iter.Seq2[*LoadBalancer, Rule] {
	return func(yield func(*LoadBalancer, Rule) bool) {
		for _, lb := range x.LoadBalancers {
			for _, r := range lb.Properties.LoadBalancingRules {
				if !yield(lb, r) {
					return
				}
			}
		}
	}
}

// Frontends yields the frontends of all load balancers, as Azure has them.
func (x *Index) Frontends() iter.Seq2[Frontend, FrontendConfig] {
	return func(yield func(Frontend, FrontendConfig) bool) {
		for _, lb := range x.LoadBalancers {
			for _, fe := range lb.Properties.FrontendIPConfigurations {
				if !yield(Frontend{lb, fe.Name}, fe) {
					return
				}
			}
		}
	}
}

// FrontendAt is the frontend of an id, false where it is at no load balancer of the cluster.
func (x *Index) FrontendAt(id azure.ID) (Frontend, bool) {
	lb := x.LoadBalancer(id.Parent())
	return Frontend{lb, id.Name()}, lb != nil
}

// Configured is the external or the internal load balancer of an entry of the configuration.
func (x *Index) Configured(entry int, internal bool) *LoadBalancer {
	return x.LoadBalancers[slices.IndexFunc(x.LoadBalancers, func(lb *LoadBalancer) bool {
		return lb.Entry == entry && lb.Internal == internal
	})]
}

// LoadBalancer is the load balancer of an id, nil for one that is none of the cluster's.
func (x *Index) LoadBalancer(id azure.ID) *LoadBalancer {
	if i := slices.IndexFunc(x.LoadBalancers, func(lb *LoadBalancer) bool { return lb.ID.Equal(id) }); i >= 0 {
		return x.LoadBalancers[i]
	}
	return nil
}

// FrontendsOf are the frontends that are named after an owner, at all load balancers.
func (x *Index) FrontendsOf(owner string) (all []Frontend) {
	for _, lb := range x.LoadBalancers {
		all = append(all, lb.Owned[owner]...)
	}
	return all
}

// FrontendsServing are the frontends of an owner, and those of others that its rules use.
func (x *Index) FrontendsServing(owner string) []Frontend {
	all := x.FrontendsOf(owner)
	for _, lb := range x.LoadBalancers {
		for _, r := range lb.RulesOf[owner] {
			if name := r.FrontendIPConfiguration.To().Name(); name != "" && naming.Owner(name) != owner {
				all = append(all, Frontend{lb, name})
			}
		}
	}
	return all
}

// Address is the address of a frontend as far as is known.
func (x *Index) Address(f Frontend) string {
	fe := f.State()
	return cmp.Or(x.PublicIPOf(fe).Properties.IPAddress, address.Plain(fe.PrivateIPAddress))
}

// IsIPv6 reports whether a frontend has IPv6.
func (x *Index) IsIPv6(fe network.FrontendIPConfiguration) bool {
	version := fe.PrivateIPAddressVersion
	if fe.PublicIPAddress != nil {
		version = x.PublicIPOf(fe).Properties.PublicIPAddressVersion
	}
	return address.FamilyNamed(version) == v1.IPv6Protocol
}

// PublicIP is the public IP of an id, an empty one where there is none.
func (x *Index) PublicIP(id azure.ID) *PublicIP {
	return cmp.Or(x.PublicIPs[id.Key()], x.none)
}

// PublicIPOf is the public IP of a frontend, an empty one where there is none.
func (x *Index) PublicIPOf(fe network.FrontendIPConfiguration) *PublicIP {
	return x.PublicIP(fe.PublicIPAddress.To())
}

// Describe names a use and the Service to which it belongs. The cluster knows the Service, or the tag of the public IP
// names one Service that the cluster does not know.
func (x *Index) Describe(u Use, publicIP azure.ID) string {
	text := fmt.Sprintf("the %s %q of ", u.What, u.Name)
	if s := x.Known[u.Owner]; s != nil {
		return text + "Service " + spec.KeyOf(s)
	}
	tagged := slices.Clone(x.PublicIP(publicIP).Services)
	for _, s := range x.Known {
		tagged = slices.DeleteFunc(tagged, func(name string) bool { return name == spec.KeyOf(s) })
	}
	if u.Owner != "" && len(tagged) == 1 {
		return text + "Service " + tagged[0]
	}
	return text + "an unknown owner"
}

// Link is the private link service of an id, nil for none.
func (x *Index) Link(id azure.ID) *Link {
	return x.link(func(l *Link) bool { return l.ID.Equal(id) })
}

// LinkAt is the private link service at a frontend, nil for none.
func (x *Index) LinkAt(f Frontend) *Link {
	return x.link(func(l *Link) bool {
		return slices.ContainsFunc(x.FrontendsBehind(l), func(at Frontend) bool { return at.Key() == f.Key() })
	})
}

func (x *Index) link(is func(*Link) bool) *Link {
	if i := slices.IndexFunc(x.Links, is); i >= 0 {
		return x.Links[i]
	}
	return nil
}

// FrontendsBehind are the frontends of the cluster's load balancers that a private link service is in front of.
func (x *Index) FrontendsBehind(l *Link) (all []Frontend) {
	for _, ref := range l.Properties.LoadBalancerFrontendIPConfigurations {
		if at, known := x.FrontendAt(ref.ID); known {
			all = append(all, at)
		}
	}
	return all
}

// AzureSays repeats what Azure said of a resource that is not there: another thing may be
// missing, such as its resource group.
func (x *Index) AzureSays(id azure.ID) string {
	if said, absent := x.Have.Absent(id); absent {
		return "; Azure says: " + said
	}
	return ""
}

// Subnet is what is known of a subnet.
type Subnet struct {
	Exists bool // or may exist: it could not be read
	ranges []netip.Prefix
}

// Subnet is what is known of a subnet in which a Service asks for an address.
func (x *Index) Subnet(id azure.ID) Subnet {
	view, exists, _ := plan.View[network.Subnet](x.Have, id) // Read reports an error
	_, unread := x.Have.Unread(id, network.Subnets)
	known := Subnet{Exists: exists || unread}
	for _, text := range append(slices.Clip(view.Properties.AddressPrefixes), view.Properties.AddressPrefix) {
		if p, err := netip.ParsePrefix(text); err == nil {
			known.ranges = append(known.ranges, p)
		}
	}
	return known
}

func (s Subnet) String() string {
	texts := make([]string, len(s.ranges))
	for i, r := range s.ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// Refuses says why no Service can have an address of the subnet, "" when one can.
func (s Subnet) Refuses(ip netip.Addr) string {
	switch {
	case len(s.ranges) == 0: // it is not known
		return ""
	case !s.Holds(ip):
		return "is not in the subnet"
	case slices.ContainsFunc(s.ranges, func(r netip.Prefix) bool { // the first four addresses and the last one
		return r.Contains(ip) && (!r.Contains(ip.Prev().Prev().Prev().Prev()) || !r.Contains(ip.Next()))
	}):
		return "is one that Azure keeps to itself in the subnet"
	}
	return ""
}

// Lacks reports whether the subnet has no address of a family.
func (s Subnet) Lacks(family v1.IPFamily) bool {
	return len(s.ranges) > 0 && !slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return address.Family(p.Addr()) == family })
}

// Holds reports whether an address is one of the subnet.
func (s Subnet) Holds(ip netip.Addr) bool {
	return slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}
