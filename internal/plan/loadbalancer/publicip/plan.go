package publicip

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/tag"
)

// Plan is the public IPs of a batch.
type Plan struct {
	index *index.Index
	batch *batch.Batch
	users map[string]*users // by id key
	order []azure.ID        // in which they were met: wanted ones first
}

// users is which Services of the batch have a public IP, or leave it.
type users struct {
	claims  []batch.Claim
	leaving []string // keys of Services
	unnamed bool     // its DNS label comes in a later round
}

// New finds the batch's users of public IPs.
func New(x *index.Index, b *batch.Batch) *Plan {
	p := &Plan{index: x, batch: b, users: map[string]*users{}}
	for s, at := range b.Placed() {
		if at.IP != "" {
			u := p.at(at.IP)
			u.claims = append(u.claims, batch.Claim{Spec: s.Spec, Placement: at})
		}
	}
	for _, s := range b.All() {
		for _, id := range ManagedOf(x, s.Spec) {
			has := func(c batch.Claim) bool { return c.Key() == s.Key() }
			if b.Holds[id.Key()] {
				continue
			}
			if u := p.at(id); !slices.ContainsFunc(u.claims, has) && !slices.Contains(u.leaving, s.Key()) {
				u.leaving = append(u.leaving, s.Key())
			}
		}
	}
	return p
}

func (p *Plan) at(id azure.ID) *users {
	u, ok := p.users[id.Key()]
	if !ok {
		u = &users{}
		p.users[id.Key()], p.order = u, append(p.order, id)
	}
	return u
}

// Nodes are the public IPs that the batch's Services have, and those that they leave. A managed public IP
// without Services is deleted after the security group has dropped its address: the address cannot be found
// later. kept are the public IPs that remain at a frontend, by key.
func (p *Plan) Nodes(kept map[string]bool) (wanted, released []plan.Node) {
	for _, id := range p.order {
		u := p.users[id.Key()]
		have := p.index.PublicIP(id)
		rest := without(have.Services, u.leaving)
		switch {
		case len(u.claims) > 0 && tag.IsOfOther(have.Tags, p.index.Config.ClusterName):
			// It is used as it is.
		case len(u.claims) > 0 && have.Exists() && !have.Tagged:
			wanted = append(wanted, foreign(u, have))
		case len(u.claims) > 0:
			var of []string
			for _, c := range u.claims {
				of = append(of, c.Key())
			}
			wanted = append(wanted, plan.Wanted(p.view(id, u), "address of "+batch.Summary(of), of...))
		case len(rest) > 0 || !kept[id.Key()]:
			released = append(released, p.released(have, u.leaving, rest))
		}
	}
	return wanted, released
}

func without(names, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(gone, name) })
}

// foreign is a public IP that is not managed: only its SKU must fit, and it is
// named in DNS if a Service asks for that.
func foreign(u *users, have *index.PublicIP) plan.Node {
	c := u.claims[0]
	view := azure.Resource[network.PublicIPAddress]{ID: have.ID}
	if have.SKU == nil || strings.EqualFold(have.SKU.Name, "Basic") {
		view.SKU = &azure.SKU{Name: "Standard"}
	}
	view.Properties.DNSSettings = have.Properties.DNSSettings
	if i := slices.IndexFunc(u.claims, asksForName); i >= 0 && !u.unnamed {
		c = u.claims[i]
		view.Properties.DNSSettings = dnsSettings(*c.Label)
	}
	view.Properties.ProvisioningState = Retried(have.Properties.ProvisioningState)
	return plan.Wanted(view, "public IP that kaz does not manage, for "+c.Key(), c.Key())
}

func asksForName(c batch.Claim) bool { return c.Label != nil }

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

func (p *Plan) view(id azure.ID, u *users) azure.Resource[network.PublicIPAddress] {
	c := p.index.Config
	have := p.index.PublicIP(id)
	asked := p.askedTags(u, have)
	own := p.ownershipTags(u, have, asked)
	view := azure.Resource[network.PublicIPAddress]{ID: id, SKU: &azure.SKU{Name: "Standard"}}
	view.Properties = network.PublicIPAddress{
		PublicIPAllocationMethod: "Static", PublicIPAddressVersion: string(u.claims[0].Placement.Family),
		DNSSettings:       have.Properties.DNSSettings,
		ProvisioningState: Retried(have.Properties.ProvisioningState), IPTags: p.ipTags(u, have),
	}
	for _, claim := range u.claims {
		if !u.unnamed {
			p.name(&view, own, claim, have)
		}
	}
	for _, tags := range asked {
		tag.Add(own, tags)
	}
	if !have.Exists() { // what cannot be changed later
		view.Location, view.ExtendedLocation = c.Location, c.EdgeZone
		if len(c.Zones) > 0 && c.EdgeZone == nil {
			view.Zones = c.Zones
		}
		if prefix := u.claims[0].Placement.Prefix; prefix != "" {
			view.Properties.PublicIPPrefix = azure.Ref(prefix)
		}
	}
	owner := tag.LabelOwner(have.Tags)
	leaves := slices.Contains(u.leaving, owner)
	if len(c.SystemTags) > 0 && owner != "" && !leaves && tag.LabelOwner(own) == "" {
		own[tag.Label] = owner
	}
	view.Tags = tag.Wanted(c, own, have.Tags)
	if leaves && tag.LabelOwner(own) == "" {
		view.Tags = tag.DropLabel(view.Tags, have.Tags)
	}
	return view
}

// askedTags are the tags that Services ask for at a public IP, sorted by Service: those of the batch, and of
// other Services those that the public IP has.
func (p *Plan) askedTags(u *users, have *index.PublicIP) []azure.Tags {
	by := map[string]azure.Tags{}
	for _, c := range u.claims {
		by[c.Key()] = c.Tags
	}
	for _, name := range have.Services {
		if _, claims := by[name]; !claims && !slices.Contains(u.leaving, name) {
			by[name] = TagsOfOther(p.index, name, have)
		}
	}
	var tags []azure.Tags
	for _, name := range slices.Sorted(maps.Keys(by)) {
		tags = append(tags, by[name])
	}
	return tags
}

// ownershipTags say which Services a public IP serves. Tags that say so already, also by their
// older names, stay as they are, unless a tag that is asked for replaces them.
func (p *Plan) ownershipTags(u *users, have *index.PublicIP, asked []azure.Tags) azure.Tags {
	c := p.index.Config
	replaced := slices.ContainsFunc(append(asked, c.Tags), func(tags azure.Tags) bool {
		_, services := tags.Get(tag.OldServices)
		_, cluster := tags.Get(tag.OldCluster)
		return services || cluster
	})
	now := without(have.Services, u.leaving)
	for _, claim := range u.claims {
		if !slices.Contains(now, claim.Key()) {
			now = append(now, claim.Key())
		}
	}
	own := azure.Tags{tag.Cluster: tag.ClusterAs(have.Tags, c.ClusterName), tag.Services: strings.Join(now, ",")}
	text, said := have.Tags.Get(tag.Services)
	switch same := slices.Equal(now, have.Services); {
	case same && said:
		own[tag.Services] = text
		if _, named := tag.ClusterIn(have.Tags); !named && !replaced { // it is older than the tag
			delete(own, tag.Cluster)
		}
	case same && len(c.SystemTags) == 0 && !replaced:
		return azure.Tags{}
	}
	return own
}

// ipTags are the IP tags of the first Service that asks for any, where Azure can set them.
func (p *Plan) ipTags(u *users, have *index.PublicIP) []network.IPTag {
	for _, c := range u.claims {
		if WantsIPTags(c.Spec, have) && (!have.Exists() || p.index.Config.IPTagsMayChange) {
			return c.IPTags
		}
	}
	return nil
}

// name gives a managed public IP the DNS label that a Service asks for, and notes
// which Service that was: the first one counts.
func (p *Plan) name(view *azure.Resource[network.PublicIPAddress], own azure.Tags, c batch.Claim, have *index.PublicIP) {
	if c.Label == nil || tag.LabelOwner(own) != "" {
		return
	}
	view.Properties.DNSSettings = dnsSettings(*c.Label)
	_, said := have.Tags.Get(tag.Label)
	if *c.Label == "" || tag.LabelOwner(have.Tags) == c.Key() && !said && len(p.index.Config.SystemTags) == 0 {
		return
	}
	own[tag.Label] = tag.LabelAs(have.Tags, c.Key())
}

func (p *Plan) released(ip *index.PublicIP, leaving, rest []string) plan.Node {
	if len(rest) > 0 {
		view := azure.Resource[network.PublicIPAddress]{ID: ip.ID, Tags: azure.Tags{tag.Services: strings.Join(rest, ",")}}
		view.Properties.DNSSettings = ip.Properties.DNSSettings
		if slices.Contains(leaving, tag.LabelOwner(ip.Tags)) {
			view.Tags = tag.DropLabel(view.Tags, ip.Tags)
		}
		return plan.Wanted(view, "no longer serves "+batch.Summary(leaving), leaving...)
	}
	n := plan.Gone[network.PublicIPAddress](ip.ID, "address of "+batch.Summary(leaving)+", which no longer needs it", leaving...)
	n.After = []azure.ID{p.index.Config.SecurityGroupID()}
	for _, lb := range p.index.LoadBalancers {
		n.After = append(n.After, lb.ID)
	}
	return n
}

// DeferLabels omits DNS labels in this round that another public IP still has which is deleted in it: a label
// belongs to one public IP alone. It says which ones.
func (p *Plan) DeferLabels(kept map[string]bool) (waits []string) {
	for _, id := range p.order {
		u := p.users[id.Key()]
		i := slices.IndexFunc(u.claims, asksForName)
		if i < 0 {
			continue
		}
		if from := p.labelHolder(u.claims[i], kept); from != "" {
			u.unnamed = true
			waits = append(waits, "public IP "+id.Name()+" gets the DNS label of "+from.Name()+", which goes ["+
				u.claims[i].Key()+"]")
		}
	}
	return waits
}

// labelHolder is the public IP that a Service leaves and that has the label which the Service asks for
// elsewhere, "" for none. It is deleted in this round.
func (p *Plan) labelHolder(c batch.Claim, kept map[string]bool) azure.ID {
	if *c.Label == "" || strings.EqualFold(p.index.PublicIP(c.Placement.IP).Label(), *c.Label) {
		return ""
	}
	for _, id := range ManagedOf(p.index, c.Spec) {
		ip := p.index.PublicIP(id)
		u := p.users[id.Key()]
		stays := u == nil || len(u.claims) > 0 || kept[id.Key()] || len(without(ip.Services, u.leaving)) > 0
		if !stays && strings.EqualFold(ip.Label(), *c.Label) && ip.HasFamily(c.Placement.Family) {
			return id
		}
	}
	return ""
}

// UnnamedGroups are the resource groups of released public IPs that nothing names after their load balancers
// are written.
func (p *Plan) UnnamedGroups(released []plan.Node) []azure.ID {
	by := map[string][]azure.ID{} // groups by the Service that names them
	for _, s := range p.batch.All() {
		name, _ := key.PublicIPGroup.Read(s.Service.Annotations)
		by[s.Key()] = append(by[s.Key()], p.index.Config.PublicIPGroup(name))
	}
	var groups []azure.ID
	for _, n := range released {
		group := n.ID.Parent()
		isNamed := slices.ContainsFunc(n.For, func(service string) bool { return slices.ContainsFunc(by[service], group.Equal) })
		if n.Want() != nil || isNamed || group.Equal(p.index.Config.PublicIPGroup("")) || slices.ContainsFunc(groups, group.Equal) {
			continue
		}
		groups = append(groups, group)
	}
	return groups
}
