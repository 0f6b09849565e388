package ipam

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// reserved is the number of addresses at the start of a range that Azure reserves. It also reserves the last one.
const reserved = 4

// Allocator allocates the private addresses of one subnet. It reads the subnet once, so a scale set can allocate the
// addresses of all its instances.
type Allocator struct {
	subnet azure.ID
	ranges []netip.Prefix
	used   map[netip.Addr]azure.ID
	next   map[netip.Prefix]netip.Addr // all lower addresses are used
}

// NewAllocator reads a subnet. Addresses of the resource without, which is being written, do not count as used.
func NewAllocator(w behaviour.World, subnet, without azure.ID) (*Allocator, error) {
	doc, ok := w.Get(subnet)
	if !ok {
		return nil, behaviour.InvalidReference(without, subnet)
	}
	ranges, err := ParsePrefixes(subnet, SubnetPrefixes(doc))
	if err != nil {
		return nil, err
	}
	p := &Allocator{subnet: subnet, ranges: ranges, used: map[netip.Addr]azure.ID{}, next: map[netip.Prefix]netip.Addr{}}
	seen := map[string]bool{}
	for _, r := range w.Referrers(subnet) {
		key := r.Resource.Key()
		if seen[key] || without != "" && r.Resource.Equal(without) || UsesInterface(r.Resource) {
			continue
		}
		seen[key] = true
		if holder, ok := w.Get(r.Resource); ok {
			p.addUsed(r.Resource, holder)
		}
	}
	return p, nil
}

// UsesInterface reports whether a resource has the addresses of its network interface.
func UsesInterface(id azure.ID) bool { return id.Is(schema.Namespace + "privateLinkServices") }

// addUsed adds the addresses of this subnet in a document to the used addresses.
func (p *Allocator) addUsed(around azure.ID, value any) {
	switch v := value.(type) {
	case behaviour.Object:
		if id := azure.ID(behaviour.Text(v, "id")); id.Under(around) {
			around = id
		}
		if behaviour.RefID(v, "subnet").Equal(p.subnet) {
			if a, ok := Parse(behaviour.Text(v, "privateIPAddress")); ok {
				p.used[a] = around
			}
		}
		for _, x := range v {
			p.addUsed(around, x)
		}
	case []any:
		for _, x := range v {
			p.addUsed(around, x)
		}
	}
}

// Take allocates an address of the family for the user: the wanted one, or the lowest free one if wanted is "".
func (p *Allocator) Take(user azure.ID, family, wanted string) (string, error) {
	if wanted != "" {
		return p.take(user, wanted)
	}
	for _, r := range p.ranges {
		if !strings.EqualFold(Family(r.Addr()), family) {
			continue
		}
		last := lastOf(r)
		a, ok := p.next[r]
		if !ok {
			a = plus(r.Addr(), reserved)
		}
		for ; r.Contains(a) && a.Less(last); a = a.Next() {
			if _, taken := p.used[a]; !taken {
				p.used[a] = user
				p.next[r] = a.Next()
				return a.String(), nil
			}
		}
		p.next[r] = a
	}
	return "", behaviour.Invalid("SubnetIsFull", "Subnet %s with address prefix %s does not have enough capacity for 1 IP addresses.",
		p.subnet.Name(), rangesText(p.ranges))
}

func (p *Allocator) take(user azure.ID, wanted string) (string, error) {
	a, err := p.place(user, wanted)
	if err != nil {
		return "", err
	}
	if by, taken := p.used[a]; taken && !by.Equal(user) {
		return "", behaviour.Invalid("PrivateIPAddressIsAllocated",
			"IP configuration %s is using the private IP address %s which is already allocated to resource %s.", user, a, by)
	}
	p.used[a] = user
	return a.String(), nil
}

// place checks that the subnet can allocate an address.
func (p *Allocator) place(user azure.ID, wanted string) (netip.Addr, error) {
	a, ok := Parse(wanted)
	if !ok {
		return a, behaviour.Invalid("InvalidIPAddressFormat", "IP address %s of resource %s is not formatted correctly.", wanted, user)
	}
	if !Holds(p.ranges, a) {
		return a, behaviour.Invalid("PrivateIPAddressNotInSubnet",
			"Private static IP address %s does not belong to the range of subnet prefix %s.", a, rangesText(p.ranges))
	}
	if Reserved(p.ranges, a) {
		return a, behaviour.Invalid("PrivateIPAddressInReservedRange",
			"Private static IP address %s falls within reserved IP range of subnet prefix %s.", a, rangesText(p.ranges))
	}
	return a, nil
}

// Reserved reports whether Azure keeps an address of the ranges to itself.
func Reserved(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool {
		return r.Contains(a) && (a.Less(plus(r.Addr(), reserved)) || a == lastOf(r))
	})
}

// Free reports whether an address is free.
func (p *Allocator) Free(address string) bool {
	a, err := p.place(p.subnet, address)
	_, taken := p.used[a]
	return err == nil && !taken
}

// Outside reports whether an address in use is in none of the ranges.
func (p *Allocator) Outside(ranges []netip.Prefix) bool {
	for address := range p.used {
		if !Holds(ranges, address) {
			return true
		}
	}
	return false
}

// Ranges returns the ranges of the subnet, separated by commas.
func (p *Allocator) Ranges() string { return rangesText(p.ranges) }

// FirstFree returns up to n free addresses of the family, lowest first.
func (p *Allocator) FirstFree(family string, n int) []string {
	var free []string
	for _, r := range p.ranges {
		if !strings.EqualFold(Family(r.Addr()), family) {
			continue
		}
		last := lastOf(r)
		for a := plus(r.Addr(), reserved); r.Contains(a) && a.Less(last) && len(free) < n; a = a.Next() {
			if _, taken := p.used[a]; !taken {
				free = append(free, a.String())
			}
		}
	}
	return free
}

func rangesText(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// Configuration is an IP configuration or a frontend in a subnet, with its properties before and after the write.
type Configuration struct {
	ID       azure.ID
	Now, Was behaviour.Object
}

// AssignPrivate writes a private address into each configuration of the call's document. Configurations with a static
// or an earlier address come first, so that no other configuration takes that address.
func AssignPrivate(c *behaviour.Call, all []Configuration) error {
	subnets := NewSubnets(c.World, c.ID)
	var rest []Configuration
	for _, one := range all {
		wanted := behaviour.Text(one.Now, "privateIPAddress")
		if !strings.EqualFold(behaviour.Text(one.Now, "privateIPAllocationMethod"), "Static") {
			wanted = one.kept()
		} else if wanted == "" {
			return behaviour.Invalid("PrivateIPAddressMissing",
				"IP configuration %s has the allocation method Static but no privateIPAddress.", one.ID)
		}
		if wanted == "" {
			rest = append(rest, one)
			continue
		}
		if err := one.assign(subnets, wanted); err != nil {
			return err
		}
	}
	for _, one := range rest {
		if err := one.assign(subnets, ""); err != nil {
			return err
		}
	}
	return nil
}

// kept returns the address that a dynamic configuration keeps, "" for none.
func (o Configuration) kept() string {
	if behaviour.RefID(o.Now, "subnet").Equal(behaviour.RefID(o.Was, "subnet")) &&
		behaviour.Text(o.Now, "privateIPAddressVersion") == behaviour.Text(o.Was, "privateIPAddressVersion") {
		return behaviour.Text(o.Was, "privateIPAddress")
	}
	return ""
}

func (o Configuration) assign(subnets *Subnets, wanted string) error {
	address, err := subnets.Take(behaviour.RefID(o.Now, "subnet"), o.ID, behaviour.Text(o.Now, "privateIPAddressVersion"), wanted)
	if err != nil {
		return err
	}
	o.Now["privateIPAddress"] = address
	return nil
}

// Subnets allocates addresses of several subnets during one call. It reads each subnet once.
type Subnets struct {
	world   behaviour.World
	without azure.ID
	known   map[string]*Allocator
}

// NewSubnets returns the subnets of the world. Addresses of the resource without do not count as used.
func NewSubnets(w behaviour.World, without azure.ID) *Subnets {
	return &Subnets{world: w, without: without, known: map[string]*Allocator{}}
}

// Take allocates an address as [Allocator.Take] does.
func (s *Subnets) Take(subnet, user azure.ID, family, wanted string) (string, error) {
	known := s.known[subnet.Key()]
	if known == nil {
		var err error
		if known, err = NewAllocator(s.world, subnet, s.without); err != nil {
			return "", err
		}
		s.known[subnet.Key()] = known
	}
	return known.Take(user, family, wanted)
}

// SubnetPrefixes returns the ranges of a subnet document, which has one range or a list.
func SubnetPrefixes(doc behaviour.Object) []string {
	if many := behaviour.Texts(doc, "properties.addressPrefixes"); len(many) > 0 {
		return many
	}
	if one := behaviour.Text(doc, "properties.addressPrefix"); one != "" {
		return []string{one}
	}
	return nil
}

func AddressSpace(doc behaviour.Object) []string {
	return behaviour.Texts(doc, "properties.addressSpace.addressPrefixes")
}
