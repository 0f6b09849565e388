package network

import (
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// reserved is how many addresses at the start of a range Azure keeps for itself;
// it also keeps the last one.
const reserved = 4

// PrivateAddresses are the addresses of one subnet, used and free. It is filled
// once, so a scale set can take the addresses of all its instances from it.
type PrivateAddresses struct {
	subnet azure.ID
	ranges []netip.Prefix
	used   map[netip.Addr]azure.ID
	next   map[netip.Prefix]netip.Addr // all before it are used
}

// NewPrivateAddresses looks up a subnet. Addresses of the resource without do not
// count as used: it is the one that is being written.
func NewPrivateAddresses(w behaviour.World, subnet, without azure.ID) (*PrivateAddresses, error) {
	doc, ok := w.Get(subnet)
	if !ok {
		return nil, behaviour.InvalidReference(without, subnet)
	}
	ranges, err := parsePrefixes(subnet, subnetPrefixes(doc))
	if err != nil {
		return nil, err
	}
	p := &PrivateAddresses{subnet: subnet, ranges: ranges, used: map[netip.Addr]azure.ID{}, next: map[netip.Prefix]netip.Addr{}}
	seen := map[string]bool{}
	for _, r := range w.Referrers(subnet) {
		key := r.Resource.Key()
		if seen[key] || without != "" && r.Resource.Equal(without) || hasByInterface(r.Resource) {
			continue
		}
		seen[key] = true
		if holder, ok := w.Get(r.Resource); ok {
			p.note(r.Resource, holder)
		}
	}
	return p, nil
}

// hasByInterface reports whether a resource has its addresses through a network interface.
func hasByInterface(id azure.ID) bool { return id.Is(namespace + "privateLinkServices") }

// note finds the addresses of this subnet in a document.
func (p *PrivateAddresses) note(around azure.ID, value any) {
	switch v := value.(type) {
	case behaviour.Object:
		if id := azure.ID(behaviour.Text(v, "id")); id.Under(around) {
			around = id
		}
		if behaviour.RefID(v, "subnet").Equal(p.subnet) {
			if a, ok := parseAddress(behaviour.Text(v, "privateIPAddress")); ok {
				p.used[a] = around
			}
		}
		for _, x := range v {
			p.note(around, x)
		}
	case []any:
		for _, x := range v {
			p.note(around, x)
		}
	}
}

// Take gives the user an address of the family: the wanted one, or the lowest
// that is free when wanted is "".
func (p *PrivateAddresses) Take(user azure.ID, family, wanted string) (string, error) {
	if wanted != "" {
		return p.take(user, wanted)
	}
	for _, r := range p.ranges {
		if !strings.EqualFold(familyOf(r), family) {
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
	return "", behaviour.Invalid("SubnetIsFull", "Subnet %s with address prefix %s does not have enough capacity for 1 IP addresses.", p.subnet.Name(), rangesText(p.ranges))
}

func (p *PrivateAddresses) take(user azure.ID, wanted string) (string, error) {
	a, err := p.place(user, wanted)
	if err != nil {
		return "", err
	}
	if by, taken := p.used[a]; taken && !by.Equal(user) {
		return "", behaviour.Invalid("PrivateIPAddressIsAllocated", "IP configuration %s is using the private IP address %s which is already allocated to resource %s.", user, a, by)
	}
	p.used[a] = user
	return a.String(), nil
}

// place checks that an address is one that the subnet gives away.
func (p *PrivateAddresses) place(user azure.ID, wanted string) (netip.Addr, error) {
	a, ok := parseAddress(wanted)
	if !ok {
		return a, behaviour.Invalid("InvalidIPAddressFormat", "IP address %s of resource %s is not formatted correctly.", wanted, user)
	}
	if !holds(p.ranges, a) {
		return a, behaviour.Invalid("PrivateIPAddressNotInSubnet", "Private static IP address %s does not belong to the range of subnet prefix %s.", a, rangesText(p.ranges))
	}
	for _, r := range p.ranges {
		if r.Contains(a) && (a.Less(plus(r.Addr(), reserved)) || a == lastOf(r)) {
			return a, behaviour.Invalid("PrivateIPAddressInReservedRange", "Private static IP address %s falls within reserved IP range of subnet prefix %s.", a, r)
		}
	}
	return a, nil
}

// Free reports whether an address can be had.
func (p *PrivateAddresses) Free(address string) bool {
	a, err := p.place(p.subnet, address)
	_, taken := p.used[a]
	return err == nil && !taken
}

// FirstFree are up to n free addresses of the family, lowest first.
func (p *PrivateAddresses) FirstFree(family string, n int) []string {
	var free []string
	for _, r := range p.ranges {
		if !strings.EqualFold(familyOf(r), family) {
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

// AllocatePrivate is an address of the family in a subnet for the user: the
// wanted one, or the lowest that is free when wanted is "".
func AllocatePrivate(w behaviour.World, subnet, user azure.ID, family, wanted string) (string, error) {
	p, err := NewPrivateAddresses(w, subnet, user.TopLevel())
	if err != nil {
		return "", err
	}
	return p.Take(user, family, wanted)
}

func familyOf(p netip.Prefix) string { return family(p.Addr()) }

func rangesText(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// privateAddresses gives the address objects of a document their addresses, each
// subnet looked up once. The objects are the properties of IP configurations and
// frontends.
type privateAddresses struct {
	call    *behaviour.Call
	subnets map[string]*PrivateAddresses
}

// holder is an object with a subnet, and what it was before.
type holder struct {
	id       azure.ID
	now, was behaviour.Object
}

func (p *privateAddresses) of(subnet azure.ID) (*PrivateAddresses, error) {
	if p.subnets == nil {
		p.subnets = map[string]*PrivateAddresses{}
	}
	if have := p.subnets[subnet.Key()]; have != nil {
		return have, nil
	}
	found, err := NewPrivateAddresses(p.call.World, subnet, p.call.ID)
	if err != nil {
		return nil, err
	}
	p.subnets[subnet.Key()] = found
	return found, nil
}

// give gives every holder an address: first those that want or had one, so that
// nobody takes it from them.
func (p *privateAddresses) give(holders []holder) error {
	var rest []holder
	for _, h := range holders {
		wanted := behaviour.Text(h.now, "privateIPAddress")
		if !strings.EqualFold(behaviour.Text(h.now, "privateIPAllocationMethod"), "Static") {
			wanted = kept(h)
		} else if wanted == "" {
			return behaviour.Invalid("PrivateIPAddressMissing", "IP configuration %s has the allocation method Static but no privateIPAddress.", h.id)
		}
		if wanted == "" {
			rest = append(rest, h)
			continue
		}
		if err := p.assign(h, wanted); err != nil {
			return err
		}
	}
	for _, h := range rest {
		if err := p.assign(h, ""); err != nil {
			return err
		}
	}
	return nil
}

// kept is the address that a dynamic configuration keeps.
func kept(h holder) string {
	if behaviour.RefID(h.now, "subnet").Equal(behaviour.RefID(h.was, "subnet")) &&
		behaviour.Text(h.now, "privateIPAddressVersion") == behaviour.Text(h.was, "privateIPAddressVersion") {
		return behaviour.Text(h.was, "privateIPAddress")
	}
	return ""
}

func (p *privateAddresses) assign(h holder, wanted string) error {
	subnet, err := p.of(behaviour.RefID(h.now, "subnet"))
	if err != nil {
		return err
	}
	address, err := subnet.Take(h.id, behaviour.Text(h.now, "privateIPAddressVersion"), wanted)
	if err != nil {
		return err
	}
	h.now["privateIPAddress"] = address
	return nil
}
