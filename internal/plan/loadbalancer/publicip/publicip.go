// Package publicip finds the public IPs of Services and decides what Azure must hold of them. It decides which are
// created, changed and deleted, with their tags and DNS labels. Layer L1.
package publicip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// Asked is the placement that a Service asks for in a family, without its frontend, and what is wrong with it. An
// external Service has the public IP that it names, the one with the address that it names, or its own.
func Asked(x *index.Index, s *spec.Spec, a spec.Address) (p batch.Placement, wrong problem.List) {
	p = batch.Placement{For: s, Address: a, Public: x.PublicIP("")}
	if s.Internal {
		p.SubnetID = x.Config.SubnetID(s.Subnet)
		return p, nil
	}
	group := x.Config.PublicIPGroup(s.Group)
	own, by := naming.PublicIP(x.Config.ClusterName, a.Base, a.Prefix.Name(), a.Suffix), "name"
	id := group.Resource(network.PublicIPAddresses, cmp.Or(a.PublicIP, own))
	if a.PublicIP == "" && a.Pinned != "" {
		id, by = "", "address"
		if i := slices.IndexFunc(x.PublicIPsAt[a.Pinned], func(id azure.ID) bool { return id.Parent().Equal(group) }); i >= 0 {
			id = x.PublicIPsAt[a.Pinned][i]
		}
	}
	ip := x.PublicIP(id)
	switch {
	case !a.Given() && (!ip.Exists() || ip.IsOnlyFor(s.Key())):
		p.IP, p.Public = id, ip
	case !ip.Exists():
		wrong.Refuse(s.Key(), problem.Address, "%s is not found in resource group %s, allowed is the %s of a public IP that is there",
			a.Asked, group.Name(), by)
	case !ip.HasFamily(a.Family):
		wrong.Refuse(s.Key(), problem.Address, "%s: public IP %s has %s, allowed is one with %s", cmp.Or(a.Asked, "its own"),
			id.Name(), ip.Properties.PublicIPAddressVersion, a.Family)
	default:
		checkLabelOwner(x, s, ip, &wrong)
		p.IP, p.Public = ip.ID, ip
	}
	return p, wrong
}

// checkLabelOwner refuses a Service's DNS label at a public IP to which another Service has given one. An owner that is
// not known may still ask for its label.
func checkLabelOwner(x *index.Index, s *spec.Spec, ip *index.PublicIP, wrong *problem.List) {
	owner := naming.LabelOwner(ip.Tags)
	if s.Label == nil || owner == "" || owner == s.Key() {
		return
	}
	all := slices.Concat(x.Staying(), x.All())
	named, or := ip.Label(), ""
	if i := slices.IndexFunc(all, func(s *v1.Service) bool { return spec.KeyOf(s) == owner }); i >= 0 {
		if label, _ := key.DNSLabel.Read(all[i].Annotations); label == "" {
			or = fmt.Sprintf("; that Service no longer asks for a label, but %q stays there until its annotation is \"\"", named)
		}
	}
	if named == "" && or != "" {
		return // the owner has taken it away again
	}
	wrong.Refuse(s.Key(), problem.DNSLabel,
		"annotation %s: %q cannot be set, Service %s has named public IP %s, allowed is one Service that does%s", key.DNSLabel.Name,
		*s.Label, owner, ip.ID.Name(), or)
}

// AsksFor reports whether a Service is to be served at a public IP.
func AsksFor(x *index.Index, s *spec.Spec, id azure.ID) bool {
	return slices.ContainsFunc(s.Addresses, func(a spec.Address) bool {
		p, _ := Asked(x, s, a)
		return p.IP.Equal(id)
	})
}

// GivesUp reports whether the owner of a frontend asks for another one, or for another address.
func GivesUp(x *index.Index, s *spec.Spec, at index.Frontend) bool {
	i := slices.IndexFunc(s.Addresses, func(a spec.Address) bool { return a.Frontend() == at.Name })
	if i < 0 || s.Internal != at.LB.Internal {
		return true
	}
	p, _ := Asked(x, s, s.Addresses[i])
	return p.AddressKey() != "" && p.AddressKey() != index.AddressKey(at.State())
}

// ManagedOf lists the managed public IPs that a tag says serve a Service. A public IP that
// something else uses is not among them.
func ManagedOf(x *index.Index, s *spec.Spec) []azure.ID {
	var ids []azure.ID
	for _, ip := range x.PublicIPsFor[s.Key()] {
		isOther := false
		if at := ip.Properties.IPConfiguration.To(); at != "" {
			f, known := x.FrontendAt(at)
			isOther = !known || f.Owner() != s.Owner && len(ip.Services) <= 1 && !f.UsedBy(s.Owner)
		} else if s.Service.Gone && len(ip.Services) == 1 { // it may have been made for another Service of the name
			owner := naming.PublicIPOwner(x.Config.ClusterName, ip.ID.Name())
			isOther = owner != "" && owner != s.Owner
		}
		if ip.Managed && !isOther && !slices.ContainsFunc(ids, ip.ID.Equal) {
			ids = append(ids, ip.ID)
		}
	}
	return ids
}

// WantsIPTags reports whether a Service asks for other IP tags than a public IP has.
func WantsIPTags(s *spec.Spec, have *index.PublicIP) bool {
	return s.IPTags != nil && (len(s.IPTags) != len(have.Properties.IPTags) ||
		slices.ContainsFunc(have.Properties.IPTags, func(has network.IPTag) bool {
			return !slices.ContainsFunc(s.IPTags, func(asked network.IPTag) bool {
				return strings.EqualFold(asked.IPTagType, has.IPTagType) && strings.EqualFold(asked.Tag, has.Tag)
			})
		}))
}

// IPTagsText is a public IP's IP tags as an annotation has them.
func IPTagsText(ip *index.PublicIP) string {
	var pairs []string
	for _, tag := range ip.Properties.IPTags {
		pairs = append(pairs, tag.IPTagType+"="+tag.Tag)
	}
	return cmp.Or(strings.Join(pairs, ","), "none")
}

// IsOutdated reports whether a public IP must be recreated. Its IP tags or its family differ from the request, and its
// tag names no other Service.
func IsOutdated(x *index.Index, p batch.Placement) bool {
	have := p.Public
	return have.Exists() && p.Own && (!x.Config.IPTagsMayChange && WantsIPTags(p.For, have) || !have.HasFamily(p.Family)) &&
		have.IsOnlyFor(p.For.Key())
}

// tagsOfOther returns the tags of a public IP for which a Service asks. This decision leaves that Service unchanged.
func tagsOfOther(x *index.Index, service string, have *index.PublicIP) azure.Tags {
	tags := azure.Tags{}
	for _, o := range x.All() {
		if spec.KeyOf(o) != service {
			continue
		}
		asked, _ := key.PublicIPTags.Read(o.Annotations)
		for name := range asked.Values {
			if value, there := have.Tags.Get(name); there {
				tags[name] = value
			}
		}
	}
	return tags
}

// address is a public IP with the Services of the batch that have it, or leave it.
type address struct {
	id      azure.ID
	have    *index.PublicIP // an empty one where there is none
	claims  []batch.Placement
	leaving []string // keys of Services
	unnamed bool     // its DNS label comes in a later round
}

// addresses are the public IPs of a batch, wanted ones first, and the same by id key.
func addresses(x *index.Index, b *batch.Batch) (all []*address, byID map[string]*address) {
	byID = map[string]*address{}
	at := func(id azure.ID) *address {
		if byID[id.Key()] == nil {
			a := &address{id: id, have: x.PublicIP(id)}
			byID[id.Key()], all = a, append(all, a)
		}
		return byID[id.Key()]
	}
	for p := range b.Placed() {
		if p.IP != "" {
			a := at(p.IP)
			a.claims = append(a.claims, p)
		}
	}
	for _, s := range b.All {
		for _, id := range ManagedOf(x, s.Spec) {
			if b.Holds[id.Key()] {
				continue
			}
			a := at(id)
			has := slices.ContainsFunc(a.claims, func(p batch.Placement) bool { return p.For.Key() == s.Key() })
			if !has && !slices.Contains(a.leaving, s.Key()) {
				a.leaving = append(a.leaving, s.Key())
			}
		}
	}
	return all, byID
}

// services returns the Services that have the public IP after the batch. They are the Services in its tag that do not
// leave it, and the Services that come.
func (a *address) services() []string {
	now := slices.DeleteFunc(slices.Clone(a.have.Services), func(name string) bool { return slices.Contains(a.leaving, name) })
	for _, p := range a.claims {
		if !slices.Contains(now, p.For.Key()) {
			now = append(now, p.For.Key())
		}
	}
	return now
}

// After returns the Services and tags of a managed public IP after placements have come there and Services have left.
func After(x *index.Index, comes []batch.Placement, leaving []string) (services []string, tags azure.Tags) {
	a := address{id: comes[0].IP, have: comes[0].Public, claims: comes, leaving: leaving}
	wanted, _ := a.tags(x)
	tags = azure.Tags{}
	naming.AddTags(tags, wanted)
	naming.AddTags(tags, a.have.Tags)
	maps.DeleteFunc(tags, func(_, value string) bool { return value == azure.DropTag })
	return a.services(), tags
}

// Plan returns the public IPs that the batch's Services have, and the public IPs that they leave. A managed public IP
// without Services is deleted after the security group has dropped its address: the address cannot be found later. The
// argument kept holds the public IPs that remain at a frontend, by key. The result waits says which DNS labels come in a
// later round.
func Plan(x *index.Index, b *batch.Batch, kept map[string]bool) (wanted, released []plan.Node, waits []string) {
	all, byID := addresses(x, b)
	for _, a := range all {
		if from := a.labelFrom(x, byID, kept); from != "" {
			a.unnamed = true
			waits = append(waits, from)
		}
		have, services := a.have, a.services()
		switch {
		case len(a.claims) > 0 && naming.IsOfOther(have.Tags, x.Config.ClusterName):
			// It is used as it is.
		case len(a.claims) > 0 && have.Exists() && len(have.Services) == 0:
			wanted = append(wanted, a.foreign())
		case len(a.claims) > 0:
			var of []string
			for _, p := range a.claims {
				of = append(of, p.For.Key())
			}
			wanted = append(wanted, plan.Wanted(a.view(x), "address of "+batch.Summary(of), of...))
		case len(services) > 0:
			view := azure.Resource[network.PublicIPAddress]{ID: have.ID, Tags: azure.Tags{naming.ServicesTag: strings.Join(services, ",")}}
			view.Properties.DNSSettings = have.Properties.DNSSettings
			if slices.Contains(a.leaving, naming.LabelOwner(have.Tags)) {
				naming.DropLabel(view.Tags, have.Tags)
			}
			released = append(released, plan.Wanted(view, "no longer serves "+batch.Summary(a.leaving), a.leaving...))
		case !kept[a.id.Key()]:
			why := "address of " + batch.Summary(a.leaving) + ", which no longer needs it"
			n := plan.Gone[network.PublicIPAddress](have.ID, why, a.leaving...)
			n.After = []azure.ID{x.Config.SecurityGroupID()}
			for _, lb := range x.LoadBalancers {
				n.After = append(n.After, lb.ID)
			}
			released = append(released, n)
		}
	}
	return wanted, released, waits
}

// namer returns the Service that names the public IP in DNS, nil for none. It is the first that asks for a label, else
// the last that asks for an empty one.
func (a *address) namer() *spec.Spec {
	var namer *spec.Spec
	for _, p := range a.claims {
		if label := p.For.Label; label != nil && (namer == nil || *namer.Label == "") {
			namer = p.For
		}
	}
	return namer
}

// labelFrom says which other public IP has the wanted DNS label until this round deletes it, "" for none. A label belongs
// to one public IP alone.
func (a *address) labelFrom(x *index.Index, byID map[string]*address, kept map[string]bool) string {
	s := a.namer()
	if s == nil || *s.Label == "" || strings.EqualFold(a.have.Label(), *s.Label) {
		return ""
	}
	for _, id := range ManagedOf(x, s) {
		from := byID[id.Key()]
		goes := from != nil && !kept[id.Key()] && len(from.services()) == 0
		if goes && strings.EqualFold(from.have.Label(), *s.Label) && from.have.HasFamily(a.claims[0].Family) {
			return "public IP " + a.id.Name() + " gets the DNS label of " + id.Name() + ", which goes [" + s.Key() + "]"
		}
	}
	return ""
}

// foreign returns a public IP that kaz does not manage. Only its SKU must fit, and it gets a DNS label if a Service asks
// for one.
func (a *address) foreign() plan.Node {
	s, have := a.claims[0].For, a.have
	view := azure.Resource[network.PublicIPAddress]{ID: have.ID}
	if have.SKU == nil || strings.EqualFold(have.SKU.Name, "Basic") {
		view.SKU = &azure.SKU{Name: "Standard"}
	}
	view.Properties.DNSSettings = have.Properties.DNSSettings
	if namer := a.namer(); namer != nil && !a.unnamed {
		s, view.Properties.DNSSettings = namer, dnsSettings(*namer.Label)
	}
	view.Properties.ProvisioningState = Retried(have.Properties.ProvisioningState)
	return plan.Wanted(view, "public IP that kaz does not manage, for "+s.Key(), s.Key())
}

func dnsSettings(label string) *network.DNSSettings {
	if label == "" {
		return nil
	}
	return &network.DNSSettings{DomainNameLabel: label}
}

// Retried is the wanted provisioning state. It differs from a failed state, so that the resource is written
// once more.
func Retried(state string) string {
	if strings.EqualFold(state, "Failed") {
		return "Succeeded"
	}
	return ""
}

func (a *address) view(x *index.Index) azure.Resource[network.PublicIPAddress] {
	c, have, first := x.Config, a.have, a.claims[0]
	view := azure.Resource[network.PublicIPAddress]{ID: a.id, SKU: &azure.SKU{Name: "Standard"}}
	view.Properties = network.PublicIPAddress{
		PublicIPAllocationMethod: "Static", PublicIPAddressVersion: string(first.Family),
		ProvisioningState: Retried(have.Properties.ProvisioningState),
	}
	i := slices.IndexFunc(a.claims, func(p batch.Placement) bool { return WantsIPTags(p.For, have) })
	if i >= 0 && (!have.Exists() || c.IPTagsMayChange) {
		view.Properties.IPTags = a.claims[i].For.IPTags
	}
	if !have.Exists() { // what cannot be changed later
		view.Location, view.ExtendedLocation = c.Location, c.EdgeZone
		if len(c.Zones) > 0 && c.EdgeZone == nil {
			view.Zones = c.Zones
		}
		if first.Prefix != "" {
			view.Properties.PublicIPPrefix = azure.Ref(first.Prefix)
		}
	}
	view.Tags, view.Properties.DNSSettings = a.tags(x)
	return view
}

// tags returns the wanted tags of a managed public IP, and its DNS label. The first Service that asks for a label names
// the public IP, and a tag says which Service that was.
func (a *address) tags(x *index.Index) (azure.Tags, *network.DNSSettings) {
	c, have := x.Config, a.have.Tags
	asked := a.askedTags(x)
	own := a.ownershipTags(x, asked)
	dns := a.have.Properties.DNSSettings
	owner := naming.LabelOwner(have)
	if namer := a.namer(); namer != nil && !a.unnamed {
		dns = dnsSettings(*namer.Label)
		switch text, said := have.Get(naming.LabelTag); {
		case *namer.Label == "":
		case said && owner == namer.Key():
			own[naming.LabelTag] = text // as it is spelled there
		case owner != namer.Key() || len(c.SystemTags) > 0:
			own[naming.LabelTag] = namer.Key()
		}
	}
	naming.AddTags(own, asked)
	switch {
	case naming.LabelOwner(own) != "":
	case slices.Contains(a.leaving, owner):
		naming.DropLabel(own, have)
	case len(c.SystemTags) > 0 && owner != "":
		own[naming.LabelTag] = owner
	}
	return naming.WantedTags(c, own, have), dns
}

// askedTags returns the tags that Services ask for at a public IP. The first Service by name has precedence. All tags of
// the batch's Services count; of other Services only those that the public IP has.
func (a *address) askedTags(x *index.Index) azure.Tags {
	asked := azure.Tags{}
	for _, name := range slices.Sorted(slices.Values(a.services())) {
		if i := slices.IndexFunc(a.claims, func(p batch.Placement) bool { return p.For.Key() == name }); i >= 0 {
			naming.AddTags(asked, a.claims[i].For.Tags)
		} else {
			naming.AddTags(asked, tagsOfOther(x, name, a.have))
		}
	}
	return asked
}

// ownershipTags say which Services a public IP serves. Tags that say so already, also by their
// older names, stay as they are, unless a tag that is asked for replaces them.
func (a *address) ownershipTags(x *index.Index, asked azure.Tags) azure.Tags {
	c, have := x.Config, a.have.Tags
	replaced := slices.ContainsFunc([]azure.Tags{asked, c.Tags}, func(tags azure.Tags) bool {
		_, services := tags.Get(naming.OldServicesTag)
		_, cluster := tags.Get(naming.OldClusterTag)
		return services || cluster
	})
	now := a.services()
	name, _ := have.Get(naming.ClusterTag) // as it is spelled there
	own := azure.Tags{naming.ClusterTag: cmp.Or(name, c.ClusterName), naming.ServicesTag: strings.Join(now, ",")}
	text, said := have.Get(naming.ServicesTag)
	switch same := slices.Equal(now, a.have.Services); {
	case same && said:
		own[naming.ServicesTag] = text
		if _, named := naming.ClusterIn(have); !named && !replaced { // it is older than the tag
			delete(own, naming.ClusterTag)
		}
	case same && len(c.SystemTags) == 0 && !replaced:
		return azure.Tags{}
	}
	return own
}

// UnnamedGroups are the resource groups of released public IPs that nothing names after their load balancers
// are written.
func UnnamedGroups(x *index.Index, b *batch.Batch, released []plan.Node) (groups []azure.ID) {
	c := x.Config
	for _, n := range released {
		group := n.ID.Parent()
		isNamed := n.Want() != nil || group.Equal(c.PublicIPGroup("")) || slices.ContainsFunc(b.All, func(s batch.Served) bool {
			name, _ := key.PublicIPGroup.Read(s.Service.Annotations)
			return slices.Contains(n.For, s.Key()) && c.PublicIPGroup(name).Equal(group)
		})
		if !isNamed && !slices.ContainsFunc(groups, group.Equal) {
			groups = append(groups, group)
		}
	}
	return groups
}
