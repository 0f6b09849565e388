package wiring

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// index is the documents with their references resolved.
type index struct {
	docs     *Documents
	state    State
	networks []*network
	byID     map[string]*network
	pools    map[string][]*address     // members that are IP configurations, by the key of the pool
	groups   map[string][]netip.Prefix // addresses, by the key of the application security group
}

// network is a virtual network.
type network struct {
	id           azure.ID
	space        []netip.Prefix
	subnets      []*resolvedSubnet
	interfaces   []*nic
	applications []*application
	byAddress    map[netip.Addr]*address
	router       string // names of its namespaces
	gateway      string
	link         string // its link to the internet
}

type resolvedSubnet struct {
	id       azure.ID
	doc      subnet
	network  *network
	ranges   []netip.Prefix
	first    netip.Addr // of its first IPv4 range
	routes   []userRoute
	prefixes []netip.Prefix // the meaning of the tag VirtualNetwork in this subnet
}

// nic is a network interface.
type nic struct {
	id         azure.ID
	doc        networkInterface
	subnet     *resolvedSubnet
	addresses  []*address
	primary    netip.Addr
	attachment *Attachment
	accepted   []netip.Addr // its addresses, and the floating frontends that it answers for
}

// address is an IP configuration.
type address struct {
	address netip.Addr
	nic     *nic
	doc     ipConfiguration
	public  netip.Addr
}

func (c *nic) mark() uint32 { return number(c.primary) }

// link returns the name of the interface's link in the router.
func (c *nic) link() string { return fmt.Sprintf("n%08x", c.mark()) }

// mac returns the hardware address in the kernel's spelling.
func (c *nic) mac() string {
	if mac := strings.ToLower(strings.ReplaceAll(c.doc.MACAddress, "-", ":")); mac != "" {
		return mac
	}
	b := c.primary.As4()
	return fmt.Sprintf("00:0d:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

func hash(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// resolve follows the references between the documents. It leaves out references to absent resources, because no
// packet can use them.
func resolve(docs *Documents, state State) *index {
	x := &index{docs: docs, state: state, byID: map[string]*network{}, pools: map[string][]*address{}, groups: map[string][]netip.Prefix{}}
	for _, key := range slices.Sorted(maps.Keys(docs.networks)) {
		x.addNetwork(docs.networks[key])
	}
	for _, key := range slices.Sorted(maps.Keys(docs.interfaces)) {
		x.addInterface(docs.interfaces[key])
	}
	x.resolveApplications()
	for _, n := range x.networks {
		slices.SortFunc(n.interfaces, func(a, b *nic) int { return a.primary.Compare(b.primary) })
		for _, s := range n.subnets {
			s.prefixes = s.localPrefixes()
		}
	}
	return x
}

func (x *index) addNetwork(r *resource[virtualNetwork]) {
	h := hash(r.ID.Key(), 8)
	n := &network{id: r.ID, space: parsePrefixes(r.Properties.AddressSpace.AddressPrefixes), byAddress: map[netip.Addr]*address{},
		router: Prefix(x.state.Instance) + "-" + h, gateway: Prefix(x.state.Instance) + "-" + h + "-gw", link: "v" + h}
	for _, c := range r.Properties.Subnets {
		s := &resolvedSubnet{id: r.ID.Child("subnets", c.Name), doc: c.Properties, network: n}
		texts := c.Properties.AddressPrefixes
		if len(texts) == 0 {
			texts = []string{c.Properties.AddressPrefix}
		}
		s.ranges = parsePrefixes(texts)
		for _, p := range s.ranges {
			if p.Addr().Is4() && !s.first.IsValid() {
				s.first = p.Addr()
			}
		}
		if !s.first.IsValid() {
			continue // every subnet has IPv4
		}
		if t := x.docs.tables[s.doc.RouteTable.key()]; t != nil {
			for _, route := range t.Properties.Routes {
				s.routes = append(s.routes, route.Properties)
			}
		}
		n.subnets = append(n.subnets, s)
	}
	x.networks = append(x.networks, n)
	x.byID[r.ID.Key()] = n
}

// subnet returns the subnet with an id, nil for none.
func (x *index) subnet(id azure.ID) *resolvedSubnet {
	n := x.byID[id.Parent().Key()]
	if n == nil {
		return nil
	}
	for _, s := range n.subnets {
		if s.id.Equal(id) {
			return s
		}
	}
	return nil
}

func (x *index) addInterface(r *resource[networkInterface]) {
	c := &nic{id: r.ID, doc: r.Properties}
	configurations := slices.Clone(r.Properties.IPConfigurations)
	slices.SortStableFunc(configurations, func(a, b child[ipConfiguration]) int {
		return -cmp.Compare(fmt.Sprint(a.Properties.Primary), fmt.Sprint(b.Properties.Primary))
	})
	for _, configuration := range configurations {
		p := configuration.Properties
		ip, ok := parseAddress(p.PrivateIPAddress)
		if !ok || p.Subnet == nil {
			continue
		}
		s := x.subnet(p.Subnet.ID)
		if s == nil || c.subnet != nil && s.network != c.subnet.network || s.network.byAddress[ip] != nil {
			continue
		}
		if !c.primary.IsValid() && ip.Is4() {
			c.primary, c.subnet = ip, s
		}
		a := &address{address: ip, nic: c, doc: p, public: x.public(p.PublicIPAddress)}
		c.addresses = append(c.addresses, a)
		c.accepted = append(c.accepted, ip)
	}
	if !c.primary.IsValid() {
		return // it has no address yet
	}
	if attached, ok := x.state.Attached[r.ID.Key()]; ok {
		c.attachment = &attached
	}
	c.subnet.network.interfaces = append(c.subnet.network.interfaces, c)
	for _, a := range c.addresses {
		c.subnet.network.byAddress[a.address] = a
		for _, pool := range a.doc.Pools {
			x.pools[pool.key()] = append(x.pools[pool.key()], a)
		}
		for _, group := range a.doc.ApplicationSecurityGroups {
			x.groups[group.key()] = append(x.groups[group.key()], single(a.address))
		}
	}
}

// public returns the address of a public IP address, which is invalid before its allocation.
func (x *index) public(r *reference) netip.Addr {
	doc := x.docs.addresses[r.key()]
	if doc == nil {
		return netip.Addr{}
	}
	a, _ := parseAddress(doc.Properties.IPAddress)
	return a
}

// localPrefixes returns the meaning of the tag VirtualNetwork in the subnet: the network's addresses, the platform's,
// and the destinations of the subnet's routes.
func (s *resolvedSubnet) localPrefixes() []netip.Prefix {
	all := append(slices.Clone(s.network.space), single(Platform))
	for _, route := range s.routes {
		if p, ok := parsePrefix(route.AddressPrefix); ok {
			all = append(all, p)
		}
	}
	return merged(all)
}

// merged returns the ranges in order, without ranges that others contain.
func merged(all []netip.Prefix) []netip.Prefix {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var kept []netip.Prefix
	for _, p := range all {
		if n := len(kept); n == 0 || !kept[n-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
