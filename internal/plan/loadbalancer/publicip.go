package loadbalancer

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

type publicIP = azure.Resource[network.PublicIPAddress]

func (f *facts) readPublicIPs() error {
	docs := f.Have.List(f.Config.publicIPs(), network.PublicIPAddresses)
	f.ips = make(map[string]publicIP, len(docs))
	f.ipsOf = make(map[string][]azure.ID, len(docs))
	for _, d := range docs {
		ip, err := azure.Decode[network.PublicIPAddress](d)
		if err != nil {
			return err
		}
		f.ips[ip.ID.Key()] = ip
		names, _ := servicesIn(ip.Tags)
		for _, name := range names {
			f.ipsOf[name] = append(f.ipsOf[name], ip.ID)
		}
	}
	return nil
}

// publicIPOf is the public IP that a Service shall have.
func (f *facts) publicIPOf(w wish) azure.ID {
	return f.Config.publicIP(publicIPName(f.Config.ClusterName, w.base))
}

// newPublicIPs says which addresses are not known because their public IPs do not
// exist yet.
func (f *facts) newPublicIPs(b batch) []string {
	var pending []string
	for _, w := range b.live {
		id := f.publicIPOf(w)
		if _, ok := f.ips[id.Key()]; !ok {
			pending = append(pending, pendingAddress(id, w))
		}
	}
	return pending
}

func pendingAddress(id azure.ID, w wish) string {
	return "the load balancer and the security group need the address of " + id.Name() + " [" + w.service.Key() + "]"
}

// wantedPublicIPs are the managed public IPs of live Services. One without a tag
// that names its Services is somebody's own: it is used and not written.
func (f *facts) wantedPublicIPs(b batch) []plan.Node {
	var nodes []plan.Node
	for _, w := range b.live {
		id := f.publicIPOf(w)
		have, exists := f.ips[id.Key()]
		names, managed := servicesIn(have.Tags)
		if exists && !managed {
			continue
		}
		nodes = append(nodes, plan.Wanted(f.publicIPView(id, w, have, names, exists), "address of "+w.service.Key(), w.service.Key()))
	}
	return nodes
}

func (f *facts) publicIPView(id azure.ID, w wish, have publicIP, names []string, exists bool) publicIP {
	own := f.ownershipTags(w.service.Key(), have, names)
	for name, value := range w.ipTags {
		if _, ours := own.Get(name); !ours {
			own[name] = value
		}
	}
	view := publicIP{
		ID: id, SKU: &azure.SKU{Name: "Standard"}, Tags: wantedTags(f.Config, own, have.Tags),
		Properties: network.PublicIPAddress{PublicIPAllocationMethod: "Static", PublicIPAddressVersion: "IPv4"},
	}
	if !exists {
		view.Location = f.Config.Location
		if len(f.Config.Zones) > 0 {
			view.Zones = f.Config.Zones
		}
	}
	return view
}

// ownershipTags says whom a public IP serves. What is said already, in this or in
// older words, is not said again.
func (f *facts) ownershipTags(service string, have publicIP, names []string) azure.Tags {
	own := azure.Tags{tagCluster: f.Config.ClusterName, tagServices: service}
	text, said := have.Tags.Get(tagServices)
	listed := slices.Contains(names, service)
	switch {
	case listed && said:
		own[tagServices] = text
	case listed && len(f.Config.SystemTags) == 0:
		return azure.Tags{}
	case len(names) > 0 && !listed:
		own[tagServices] = strings.Join(names, ",") + "," + service
	}
	if text, ok := have.Tags.Get(tagCluster); ok && sameText(text, f.Config.ClusterName) {
		own[tagCluster] = text
	}
	return own
}

// releasedPublicIPs are the managed public IPs that Services of the batch let go:
// those of Services that are gone, and those that a live one has under another
// name. An IP that serves nobody any more is deleted, after the security group has
// forgotten its address: once it is gone, nobody can tell which address that was.
func (f *facts) releasedPublicIPs(b batch, lb balancer) []plan.Node {
	wanted := make(map[string]bool, len(b.live))
	for _, w := range b.live {
		wanted[f.publicIPOf(w).Key()] = true
	}
	leaving := map[string][]string{} // Services that let an IP go, by id key
	var order []azure.ID
	for _, w := range slices.Concat(b.live, b.gone) {
		for _, id := range f.managedIPsOf(w) {
			key := id.Key()
			if wanted[key] || slices.Contains(leaving[key], w.service.Key()) {
				continue
			}
			if len(leaving[key]) == 0 {
				order = append(order, id)
			}
			leaving[key] = append(leaving[key], w.service.Key())
		}
	}
	var nodes []plan.Node
	for _, id := range order {
		names, _ := servicesIn(f.ips[id.Key()].Tags)
		rest := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(leaving[id.Key()], name) })
		if len(rest) > 0 || !lb.kept[id.Key()] {
			nodes = append(nodes, f.releasedPublicIP(id, leaving[id.Key()], rest))
		}
	}
	return nodes
}

func (f *facts) releasedPublicIP(id azure.ID, leaving, rest []string) plan.Node {
	ip := f.ips[id.Key()]
	if len(rest) > 0 {
		view := publicIP{ID: ip.ID, Tags: azure.Tags{tagServices: strings.Join(rest, ",")}}
		return plan.Wanted(view, "serves "+summary(leaving)+" no more", leaving...)
	}
	n := plan.Gone[network.PublicIPAddress](ip.ID, "address of "+summary(leaving)+", which needs it no more", leaving...)
	n.After = []azure.ID{f.Config.securityGroup(), f.Config.LoadBalancer()}
	return n
}

// managedIPsOf lists the managed public IPs that serve a Service, now or by its
// name. One that something else is using is not among them.
func (f *facts) managedIPsOf(w wish) []azure.ID {
	candidates := []azure.ID{f.publicIPOf(w)}
	for _, fe := range f.frontendsOf(w.base) {
		if ip := fe.Properties.PublicIPAddress; ip != nil {
			candidates = append(candidates, ip.ID)
		}
	}
	candidates = append(candidates, f.ipsOf[w.service.Key()]...)
	var ids []azure.ID
	for _, id := range candidates {
		ip, exists := f.ips[id.Key()]
		names, managed := servicesIn(ip.Tags)
		if !exists || !managed || ofOtherCluster(ip.Tags, f.Config.ClusterName) {
			continue
		}
		if slices.Contains(names, w.service.Key()) && f.isAt(ip, w.base) && !slices.ContainsFunc(ids, ip.ID.Equal) {
			ids = append(ids, ip.ID)
		}
	}
	return ids
}

// isAt reports whether a public IP is attached to nothing, or to a frontend with
// the base name.
func (f *facts) isAt(ip publicIP, base string) bool {
	at := ip.Properties.IPConfiguration
	if at == nil {
		return true
	}
	return at.ID.Parent().Equal(f.Config.LoadBalancer()) && ownerBase(at.ID.Name()) == strings.ToLower(base)
}

// addressesOf lists the addresses that a Service has or had. What its status says
// counts too, unless it is by now somebody else's, or nobody can tell because it is
// an address of the virtual network.
func (f *facts) addressesOf(w wish, owners map[string]string) []string {
	var addresses []string
	for _, id := range append(f.managedIPsOf(w), f.publicIPOf(w)) {
		if ip, ok := f.ips[id.Key()]; ok && ip.Properties.IPAddress != "" {
			addresses = append(addresses, ip.Properties.IPAddress)
		}
	}
	for _, fe := range f.frontendsOf(w.base) {
		if ref := fe.Properties.PublicIPAddress; ref != nil && f.ips[ref.ID.Key()].Properties.IPAddress != "" {
			addresses = append(addresses, f.ips[ref.ID.Key()].Properties.IPAddress)
		}
	}
	for _, in := range w.service.Status.LoadBalancer.Ingress {
		if owner, taken := owners[in.IP]; isPublic(in.IP) && (!taken || owner == strings.ToLower(w.base)) {
			addresses = append(addresses, in.IP)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

func isPublic(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.IsGlobalUnicast() && !a.IsPrivate()
}
