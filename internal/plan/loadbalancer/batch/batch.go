// Package batch holds the Services that one decision is about, each with the placements of its addresses. Layer L1.
package batch

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/spec"
)

// Placement is where an address of a Service is served: at the Service's own frontend, or at that of another Service.
type Placement struct {
	For *spec.Spec // the Service
	spec.Address
	At       index.Frontend
	Own      bool            // the frontend is the Service's own
	IP       azure.ID        // the public IP, "" where the address is private
	Public   *index.PublicIP // the public IP as it is, without an id where it does not exist
	SubnetID azure.ID        // of a private address
	OwnPool  string          // to which its packets go instead of the cluster's pool, "" for that one
	Link     azure.ID        // private link service that it asks for there, "" for none
	Leads    bool            // its Service decides how the private link service is configured
}

// AddressKey is the address that is asked for, as [index.AddressKey] has it; "" for one of Azure's choice.
func (p Placement) AddressKey() string {
	if p.For.Internal {
		return p.Pinned
	}
	return p.IP.Key()
}

// PoolName names the backend pool to which the placement's packets go.
func (p Placement) PoolName(c cluster.Config) string { return cmp.Or(p.OwnPool, c.PoolName(p.Family)) }

// Pool is the id of the backend pool to which the placement's packets go.
func (p Placement) Pool(c cluster.Config) azure.ID {
	return p.At.LB.ID.Child(network.BackendAddressPools, p.PoolName(c))
}

// NewRules is how many of the placement's rules are not at its load balancer yet.
func (p Placement) NewRules() int { return NewRules(p.Address, p.At.LB) }

// NewRules is how many of an address's rules a load balancer does not have yet.
func NewRules(a spec.Address, lb *index.LoadBalancer) int {
	n := 0
	for _, r := range a.Rules {
		if !lb.HasRule(r.Name) {
			n++
		}
	}
	return n
}

// Keeps reports whether a frontend has the address that is asked for.
func (p Placement) Keeps(have network.FrontendIPConfiguration) bool {
	if p.IP != "" {
		return have.PublicIPAddress.To().Equal(p.IP)
	}
	return p.KeepsPrivate(have)
}

// KeepsPrivate reports whether an internal frontend is as asked for: in the subnet,
// and with the address if there is one that it must be.
func (p Placement) KeepsPrivate(have network.FrontendIPConfiguration) bool {
	return have.Subnet != nil && have.Subnet.ID.Equal(p.SubnetID) &&
		address.FamilyNamed(have.PrivateIPAddressVersion) == p.Family &&
		(p.Pinned == "" || p.Pinned == address.Plain(have.PrivateIPAddress))
}

// Predecessor is the frontend that an address of its own has so far, under this or another name.
func (p Placement) Predecessor() (fe index.FrontendConfig, exists bool) {
	if fe, exists = p.At.LB.Frontend(p.At.Name); exists {
		return fe, true
	}
	for _, at := range p.At.LB.Owned[p.For.Owner] {
		if cluster.HasSuffix(at.Name, cluster.SuffixIPv6) == (p.Suffix != "") {
			return p.At.LB.Frontend(at.Name)
		}
	}
	return fe, false
}

// KnownAddress is the address of the placement as far as is known.
func (p Placement) KnownAddress() string {
	if p.IP != "" {
		return p.Public.Properties.IPAddress
	}
	if p.Pinned != "" {
		return p.Pinned
	}
	if fe := p.At.State(); p.KeepsPrivate(fe) {
		return address.Plain(fe.PrivateIPAddress)
	}
	return ""
}

// Served is a Service with the placements of its addresses.
type Served struct {
	*spec.Spec
	Placements []Placement
}

// IsAt reports whether the Service has a placement at a load balancer.
func (s Served) IsAt(lb *index.LoadBalancer) bool {
	return slices.ContainsFunc(s.Placements, func(p Placement) bool { return p.At.LB == lb })
}

// Batch is the Services that one decision is about.
type Batch struct {
	Live  []Served
	All   []Served        // the deleted ones, too: they are outlines without placements
	Holds map[string]bool // public IPs, by id key, that are kept for placements that come later
	Waits []string        // why placements come in a later round

	owners map[string]bool
}

// New is a batch of Services.
func New(live, gone []Served) *Batch {
	all := slices.Concat(live, gone)
	b := &Batch{Live: all[:len(live)], All: all, Holds: map[string]bool{}, owners: make(map[string]bool, len(all))}
	for _, s := range all {
		b.owners[s.Owner] = true
	}
	return b
}

// Placed yields the placements of the live Services.
func (b *Batch) Placed() iter.Seq[Placement] {
	return func(yield func(Placement) bool) {
		for _, s := range b.Live {
			for _, p := range s.Placements {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Has reports whether an owner is of the batch.
func (b *Batch) Has(owner string) bool { return b.owners[owner] }

// HasService reports whether a Service of this key is of the batch.
func (b *Batch) HasService(key string) bool {
	return slices.ContainsFunc(b.All, func(s Served) bool { return s.Key() == key })
}

// Names is the keys of the batch's Services.
func (b *Batch) Names() []string { return names(b.All) }

// NamesAt is the keys of the batch's Services that have anything at a load balancer, now or after the decision.
func (b *Batch) NamesAt(lb *index.LoadBalancer) []string {
	return names(slices.DeleteFunc(slices.Clone(b.All), func(s Served) bool { return !lb.Has(s.Owner) && !s.IsAt(lb) }))
}

func names(all []Served) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Key())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Remaining returns the uses of a frontend by anything but the batch's Services.
func (b *Batch) Remaining(f index.Frontend) []index.Use {
	return slices.DeleteFunc(slices.Clone(f.Uses()), func(u index.Use) bool { return b.owners[u.Owner] })
}

// Claims are the placements by their frontends' keys: of each the one of the frontend's owner, if there is one.
func (b *Batch) Claims() map[index.Frontend]Placement {
	claims := make(map[index.Frontend]Placement, len(b.Live))
	for p := range b.Placed() {
		if _, there := claims[p.At.Key()]; !there || p.Own {
			claims[p.At.Key()] = p
		}
	}
	return claims
}

// Defer takes placements out of this round if the function why has a reason. They come in a later round.
func (b *Batch) Defer(why func(Placement) string) {
	for i, s := range b.Live {
		b.Live[i].Placements = slices.DeleteFunc(slices.Clone(s.Placements), func(p Placement) bool {
			reason := why(p)
			if reason != "" {
				b.Waits = append(b.Waits, reason)
			}
			return reason != ""
		})
	}
}

// Summary says for which Services something is done: by name as long as they are few.
func Summary(names []string) string {
	const few = 3
	if n := len(names); n > few {
		return fmt.Sprintf("%d Services", n)
	}
	return cmp.Or(strings.Join(names, ", "), "no Service")
}

// Handover is a Service that leaves a frontend, or its address, for another one.
//
// Azure may refuse what a Service asks for, and then the Service keeps what it has. So the old resources go after Azure
// has accepted the new ones. The load balancer that the Service leaves for one of the other kind is written after that
// one. The security group is written after both. A public IP can be at one load balancer only. So between two of a kind
// it leaves the first before it joins the second (see Sources).
type Handover struct{ From, To *index.LoadBalancer }

// Handovers are the handovers of the batch.
func (b *Batch) Handovers(x *index.Index) []Handover {
	var all []Handover
	for _, s := range b.Live {
		for _, at := range x.FrontendsServing(s.Owner) {
			if slices.ContainsFunc(s.Placements, func(p Placement) bool { return p.At.Key() == at.Key() && p.Keeps(at.State()) }) {
				continue // it is served there with the same address as so far
			}
			for _, p := range s.Placements {
				all = append(all, Handover{at.LB, p.At.LB})
			}
		}
	}
	return all
}

// Sources are the other load balancers of the kind from which the frontend, or the address, of a placement moves.
func Sources(x *index.Index, p Placement) (from []*index.LoadBalancer) {
	if !p.Own {
		return nil
	}
	for _, at := range slices.Concat(x.Holders[p.AddressKey()], x.FrontendsOf(p.For.Owner)) {
		if at.LB != p.At.LB && at.LB.Internal == p.At.LB.Internal {
			from = append(from, at.LB)
		}
	}
	return from
}
