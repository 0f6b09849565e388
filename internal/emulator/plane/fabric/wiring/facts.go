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

// facts are documents with their references followed.
type facts struct {
	docs     *Documents
	state    State
	networks []*network
	byID     map[string]*network
	pools    map[string][]*address // members by interface of load balancers' pools
	groups   map[string][]netip.Prefix
	rules    []*rule

	membership map[string][]backend
	receivers  map[string]receivers
}

// network is a virtual network.
type network struct {
	id        azure.ID
	space     []netip.Prefix
	subnets   []*subnetFacts
	cards     []*card
	byAddress map[netip.Addr]*address
	router    string // names of its namespaces
	gateway   string
	link      string // its link to the internet
}

type subnetFacts struct {
	id       azure.ID
	doc      subnet
	network  *network
	ranges   []netip.Prefix
	first    netip.Addr // of its first IPv4 range
	routes   []userRoute
	prefixes []netip.Prefix // what the tag VirtualNetwork means in it
}

// card is a network interface.
type card struct {
	id         azure.ID
	doc        networkInterface
	subnet     *subnetFacts
	addresses  []*address
	primary    netip.Addr
	attachment *Attachment
	own        []netip.Addr // its addresses, and frontends that it answers for
}

// address is an IP configuration.
type address struct {
	address netip.Addr
	card    *card
	doc     ipConfiguration
	public  netip.Addr
}

func (c *card) mark() uint32 { return number(c.primary) }

// link is the name of the interface's link in the router.
func (c *card) link() string { return fmt.Sprintf("n%08x", c.mark()) }

// mac is the hardware address in the kernel's spelling.
func (c *card) mac() string {
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

// gather follows the references. What refers to nothing is left out: nothing would
// come of it.
func gather(docs *Documents, state State) *facts {
	f := &facts{docs: docs, state: state, byID: map[string]*network{}, pools: map[string][]*address{}, groups: map[string][]netip.Prefix{},
		membership: map[string][]backend{}, receivers: map[string]receivers{}}
	for _, key := range slices.Sorted(maps.Keys(docs.networks)) {
		f.addNetwork(docs.networks[key])
	}
	for _, key := range slices.Sorted(maps.Keys(docs.interfaces)) {
		f.addCard(docs.interfaces[key])
	}
	for _, n := range f.networks {
		slices.SortFunc(n.cards, func(a, b *card) int { return a.primary.Compare(b.primary) })
		for _, s := range n.subnets {
			s.prefixes = f.localPrefixes(s)
		}
	}
	f.addRules()
	return f
}

func (f *facts) addNetwork(r *resource[virtualNetwork]) {
	h := hash(r.ID.Key(), 8)
	n := &network{id: r.ID, space: parsePrefixes(r.Properties.AddressSpace.AddressPrefixes), byAddress: map[netip.Addr]*address{},
		router: Prefix(f.state.Instance) + "-" + h, gateway: Prefix(f.state.Instance) + "-" + h + "-gw", link: "v" + h}
	for _, c := range r.Properties.Subnets {
		s := &subnetFacts{id: r.ID.Child("subnets", c.Name), doc: c.Properties, network: n}
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
		if t := f.docs.tables[s.doc.RouteTable.key()]; t != nil {
			for _, route := range t.Properties.Routes {
				s.routes = append(s.routes, route.Properties)
			}
		}
		n.subnets = append(n.subnets, s)
	}
	f.networks = append(f.networks, n)
	f.byID[r.ID.Key()] = n
}

// subnet is the subnet with the id.
func (f *facts) subnet(id azure.ID) *subnetFacts {
	n := f.byID[id.Parent().Key()]
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

func (f *facts) addCard(r *resource[networkInterface]) {
	c := &card{id: r.ID, doc: r.Properties}
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
		s := f.subnet(p.Subnet.ID)
		if s == nil || c.subnet != nil && s.network != c.subnet.network || s.network.byAddress[ip] != nil {
			continue
		}
		if !c.primary.IsValid() && ip.Is4() {
			c.primary, c.subnet = ip, s
		}
		a := &address{address: ip, card: c, doc: p, public: f.public(p.PublicIPAddress)}
		c.addresses = append(c.addresses, a)
		c.own = append(c.own, ip)
	}
	if !c.primary.IsValid() {
		return // it has no address yet
	}
	if attached, ok := f.state.Attached[r.ID.Key()]; ok {
		c.attachment = &attached
	}
	c.subnet.network.cards = append(c.subnet.network.cards, c)
	for _, a := range c.addresses {
		c.subnet.network.byAddress[a.address] = a
		for _, pool := range a.doc.Pools {
			f.pools[pool.key()] = append(f.pools[pool.key()], a)
		}
		for _, group := range a.doc.ApplicationSecurityGroups {
			f.groups[group.key()] = append(f.groups[group.key()], single(a.address))
		}
	}
}

// public is the address of a public IP address, which may have none yet.
func (f *facts) public(r *reference) netip.Addr {
	doc := f.docs.addresses[r.key()]
	if doc == nil {
		return netip.Addr{}
	}
	a, _ := parseAddress(doc.Properties.IPAddress)
	return a
}

// localPrefixes is what the tag VirtualNetwork means to a subnet: the network's
// addresses, the platform's, and those that the subnet's routes lead to.
func (f *facts) localPrefixes(s *subnetFacts) []netip.Prefix {
	all := append(slices.Clone(s.network.space), single(Platform))
	for _, route := range s.routes {
		if p, ok := parsePrefix(route.AddressPrefix); ok {
			all = append(all, p)
		}
	}
	return merged(all)
}

// merged leaves out ranges that others contain, and sorts.
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
