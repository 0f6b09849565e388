package routes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Reasons of problems.
const (
	ReasonRange    = "InvalidPodCIDR"
	ReasonHop      = "NoNodeAddress"
	ReasonConflict = "RouteConflict" // another route has the same address range
	ReasonFull     = "RouteTableFull"

	// ReasonNearlyFull is a warning about the table.
	ReasonNearlyFull = "RouteTableNearlyFull"
)

// Desired returns the route table after the changes. A problem names the key of the change that was
// refused, or the table. A missing table is created with its first route.
func Desired(in Input) (plan.Graph, []plan.Problem, error) {
	var graph plan.Graph
	table, exists, err := plan.View[network.RouteTable](in.Have, in.ID())
	if err != nil {
		return graph, nil, err
	}
	d := decision{nodes: in.nodesByName()}
	d.read(table.Properties.Routes)
	changes := latest(in.Changes)
	for _, c := range changes {
		if c.Gone {
			d.remove(c)
		}
	}
	d.most = limit(in, len(table.Properties.Routes))
	for _, c := range changes {
		if !c.Gone {
			d.place(c)
		}
	}
	d.warn(in)
	if !exists && len(d.routes) == 0 {
		return graph, d.problems, nil
	}
	want := azure.Resource[network.RouteTable]{
		ID: in.ID(), Tags: wantedTags(in.Config, table.Tags),
		Properties: network.RouteTable{Routes: d.list()},
	}
	if !exists {
		want.Location = in.Location
	}
	node := plan.Wanted(want, "routes to the pods of the cluster's nodes", d.changed...)
	return graph, d.problems, graph.Add(node.Owning(azure.Ours(d.decides)))
}

// latest returns the last change of each key.
func latest(changes []Change) []Change {
	last := map[string]int{}
	for i, c := range changes {
		last[c.Key()] = i
	}
	var kept []Change
	for i, c := range changes {
		if last[c.Key()] == i {
			kept = append(kept, c)
		}
	}
	return kept
}

// decision is a route table during a decision.
type decision struct {
	nodes    map[string]Node
	most     int
	routes   []*azure.Child[network.Route] // nil for a route to delete
	count    int
	byName   map[string]int
	byPrefix map[string]int
	asked    map[int]bool    // routes of changes
	decided  map[string]bool // names of the routes that are written or removed
	changed  []string        // nodes of changes
	problems []plan.Problem
}

// read copies the existing routes, without obsolete ones that lead nowhere.
func (d *decision) read(routes []azure.Child[network.Route]) {
	d.byName, d.byPrefix = map[string]int{}, map[string]int{}
	d.asked, d.decided = map[int]bool{}, map[string]bool{}
	for _, r := range routes {
		if n, outdated := d.formerly(r); outdated {
			if _, has := n.spelled(r.Properties.AddressPrefix); !has {
				d.decide(r.Name)
				continue
			}
		}
		d.add(r)
	}
}

// formerly reports whether a route has the name that routes had when nodes had only one range: the
// node's name. Such routes to unmanaged nodes belong to others.
func (d *decision) formerly(r azure.Child[network.Route]) (Node, bool) {
	n, ok := d.nodes[strings.ToLower(r.Name)]
	return n, ok && !n.Unmanaged && strings.EqualFold(r.Properties.NextHopType, network.VirtualAppliance)
}

func (d *decision) add(r azure.Child[network.Route]) {
	d.byName[strings.ToLower(r.Name)] = len(d.routes)
	if r.Properties.AddressPrefix != "" {
		d.byPrefix[prefix(r.Properties.AddressPrefix)] = len(d.routes)
	}
	d.routes = append(d.routes, &r)
	d.count++
}

// decide has the route table's write touch a route. All others are left alone.
func (d *decision) decide(name string) { d.decided[strings.ToLower(name)] = true }

// decides reports whether the route is one that goes or is written.
func (d *decision) decides(r azure.Child[network.Route]) bool {
	return d.decided[strings.ToLower(r.Name)]
}

func (d *decision) drop(i int) {
	r := d.routes[i]
	d.decide(r.Name)
	delete(d.byName, strings.ToLower(r.Name))
	if p := prefix(r.Properties.AddressPrefix); r.Properties.AddressPrefix != "" && d.byPrefix[p] == i {
		delete(d.byPrefix, p)
	}
	d.routes[i] = nil
	d.count--
}

func (d *decision) refuse(c Change, reason, format string, args ...any) {
	d.problems = append(d.problems, plan.Problem{Object: c.Key(), Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// remove deletes a route, under its current or former name.
func (d *decision) remove(c Change) {
	if i, ok := d.byName[c.Key()]; ok {
		d.changed = append(d.changed, c.Node)
		d.drop(i)
	}
	if i, ok := d.byName[strings.ToLower(c.Node)]; ok {
		if _, outdated := d.formerly(*d.routes[i]); outdated && prefix(d.routes[i].Properties.AddressPrefix) == prefix(c.CIDR) {
			d.drop(i)
		}
	}
}

// place creates or updates the route to a node.
func (d *decision) place(c Change) {
	p, err := netip.ParsePrefix(c.CIDR)
	if err != nil {
		d.refuse(c, ReasonRange, "pod CIDR %q of node %s: want a range such as 10.244.0.0/24", c.CIDR, c.Node)
		return
	}
	if !c.Hop.IsValid() || c.Hop.Unmap().Is4() != p.Addr().Is4() {
		d.refuse(c, ReasonHop, "node %s has no address of the family of its pod CIDR %s", c.Node, c.CIDR)
		return
	}
	if !d.clear(c, p) {
		return
	}
	want := network.Route{AddressPrefix: c.CIDR, NextHopType: network.VirtualAppliance, NextHopIPAddress: c.Hop.Unmap().String()}
	i, there := d.byName[c.Key()]
	if !there {
		if d.count >= d.most {
			d.refuse(c, ReasonFull, "no route to pod CIDR %s of node %s: its route table holds %d routes, and Azure allows %d", c.CIDR,
				c.Node, d.count, d.most)
			return
		}
		d.changed = append(d.changed, c.Node)
		d.asked[len(d.routes)] = true
		name := Name(c.Node, c.CIDR)
		d.decide(name)
		d.add(azure.Child[network.Route]{Name: name, Properties: want})
		return
	}
	have := d.routes[i].Properties
	if prefix(have.AddressPrefix) == prefix(want.AddressPrefix) {
		want.AddressPrefix = have.AddressPrefix // keep Azure's spelling
	}
	if have != want {
		d.changed = append(d.changed, c.Node)
	}
	delete(d.byPrefix, prefix(have.AddressPrefix))
	d.byPrefix[prefix(c.CIDR)], d.asked[i] = i, true
	d.decide(d.routes[i].Name)
	d.routes[i] = &azure.Child[network.Route]{Name: d.routes[i].Name, Properties: want}
}

// clear deletes other routes with the same range, because Azure allows one route for each range. It
// returns false if such a route must stay.
func (d *decision) clear(c Change, p netip.Prefix) bool {
	i, taken := d.byPrefix[p.Masked().String()]
	if !taken || strings.EqualFold(d.routes[i].Name, c.Key()) {
		return true
	}
	r := d.routes[i]
	owner, ours := nodeOf(r.Name)
	if _, outdated := d.formerly(*r); outdated {
		owner, ours = r.Name, true
	}
	if !ours {
		d.refuse(c, ReasonConflict, "no route to pod CIDR %s of node %s: route %s, which kaz did not make, leads to %s already", c.CIDR,
			c.Node, r.Name, r.Properties.AddressPrefix)
		return false
	}
	if d.asked[i] {
		d.refuse(c, ReasonConflict, "no route to pod CIDR %s of node %s: node %s has the same pod CIDR", c.CIDR, c.Node, owner)
		return false
	}
	if other, known := d.nodes[strings.ToLower(owner)]; known && !strings.EqualFold(owner, c.Node) {
		if _, has := other.spelled(c.CIDR); has {
			d.refuse(c, ReasonConflict, "no route to pod CIDR %s of node %s: node %s has the same pod CIDR", c.CIDR, c.Node, other.Name)
			return false
		}
	}
	d.drop(i)
	return true
}

// list is the routes to write.
func (d *decision) list() []azure.Child[network.Route] {
	list := []azure.Child[network.Route]{}
	for _, r := range d.routes {
		if r != nil && d.decides(*r) {
			list = append(list, *r)
		}
	}
	return list
}

// wantedTags returns the tags to write; see [Config].
func wantedTags(c Config, have azure.Tags) azure.Tags {
	if len(c.Tags) == 0 || !strings.EqualFold(c.ResourceGroup, c.ClusterGroup) {
		return nil
	}
	tags := maps.Clone(c.Tags)
	if len(c.SystemTags) == 0 {
		return tags
	}
	for name := range have {
		system := func(start string) bool {
			return len(name) >= len(start) && strings.EqualFold(name[:len(start)], start)
		}
		if _, wanted := tags.Get(name); !wanted && !slices.ContainsFunc(c.SystemTags, system) {
			tags[name] = azure.DropTag
		}
	}
	return tags
}
