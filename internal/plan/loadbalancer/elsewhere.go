package loadbalancer

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// A public IP that goes may be in a resource group that nothing names any more once
// its load balancer has let it go: its Service asks for another group by now. If kaz
// is stopped then, nobody would look there. So the security group says it in a tag
// before, until the address is gone.
func (c Config) noteOfGroup(group azure.ID) string {
	return notesOfGroups(c.ClusterName) + strings.ToLower(group.Name())
}

func notesOfGroups(cluster string) string { return notesOfKaz + cluster + "-public-ips-in-" }

// notesOfKaz is how the tags begin in which kaz notes something, whatever the cluster.
const notesOfKaz = "kaz-"

// notedGroups are the resource groups that the security group's tags name. What is no name
// of one is somebody else's tag.
func notedGroups(c Config, tags azure.Tags) []azure.ID {
	prefix := notesOfGroups(c.ClusterName)
	var groups []azure.ID
	for name := range tags {
		if len(name) > len(prefix) && sameText(name[:len(prefix)], prefix) && key.IsGroup(name[len(prefix):]) {
			groups = append(groups, c.publicIPs(name[len(prefix):]))
		}
	}
	slices.Sort(groups)
	return groups
}

// Unnoted is what Services have to tell before a decision is brought about, by UID: the
// resource groups in which it makes public IPs for them, or they have private link services,
// and which they may name no more when kaz looks next. Of an address nothing else would tell
// until a load balancer has it, and of a private link service nothing ever does.
func Unnoted(in Input, graph plan.Graph) map[types.UID][]key.Note {
	var live []*v1.Service
	for _, s := range in.Services {
		if !s.Gone {
			live = append(live, s.Service)
		}
	}
	unnoted := map[types.UID][]key.Note{}
	tell := func(among []*v1.Service, who string, n key.Note) {
		for _, s := range among {
			noted := slices.Concat(key.Noted(s.Status.Conditions), unnoted[s.UID])
			if s.Namespace+"/"+s.Name == who && !slices.ContainsFunc(noted, n.Same) {
				unnoted[s.UID] = append(unnoted[s.UID], n)
			}
		}
	}
	for _, there := range linksElsewhere(in) {
		tell(live, there.owner, there.note)
	}
	for _, n := range graph.Nodes() {
		note, elsewhere := in.Config.noteOf(n.ID)
		if _, exists := in.Have.Get(n.ID); !elsewhere || n.Want() == nil || exists && note.Of == key.PublicIPs {
			continue
		}
		if link, is := n.Want().(privateLink); is { // it can be handed over
			owner, _ := link.Tags.Get(tagLinkOwner)
			tell(slices.Concat(live, in.Others), owner, note)
			continue
		}
		for _, who := range n.For {
			tell(live, who, note)
		}
	}
	return unnoted
}

// StillNoted is what Services go on telling of when they are served, by UID: where they have
// private link services, or can have some, as nobody may look there.
func StillNoted(in Input) map[types.UID][]key.Note {
	still := map[types.UID][]key.Note{}
	links := linksElsewhere(in)
	for _, s := range in.Services {
		for _, there := range links {
			if there.owner == s.Key() {
				still[s.UID] = append(still[s.UID], there.note)
			}
		}
		for _, name := range groupsOf(key.PrivateLinks, key.Noted(s.Status.Conditions)) {
			if why, unread := in.Have.Unread(in.Config.links(name), network.PrivateLinkServices); unread && why != azure.NotFound {
				still[s.UID] = append(still[s.UID], key.Note{Of: key.PrivateLinks, Group: name})
			}
		}
	}
	return still
}

// noteOf is the note of the resource group in which something is, false where it is found
// without.
func (c Config) noteOf(id azure.ID) (n key.Note, elsewhere bool) {
	for _, found := range []struct {
		of       key.Kind
		fullType string
		group    azure.ID
	}{
		{key.PublicIPs, network.PublicIPAddresses, c.publicIPs("")},
		{key.PrivateLinks, network.PrivateLinkServices, c.links("")},
	} {
		if id.Is(found.fullType) && !id.Parent().Equal(found.group) {
			return key.Note{Of: found.of, Group: id.Parent().Name()}, true
		}
	}
	return n, false
}

// linkElsewhere is a private link service that is found only because somebody tells of it.
type linkElsewhere struct {
	owner string
	note  key.Note
}

func linksElsewhere(in Input) (all []linkElsewhere) {
	for _, group := range linkGroups(in) {
		for _, d := range in.Have.List(group, network.PrivateLinkServices) {
			l, err := azure.Decode[network.PrivateLinkService](d)
			if err != nil {
				continue // Desired's to report
			}
			owner, _ := l.Tags.Get(tagLinkOwner)
			if note, elsewhere := in.Config.noteOf(l.ID); elsewhere && in.Config.isManagedLink(l) {
				all = append(all, linkElsewhere{owner, note})
			}
		}
	}
	return all
}

// securityGroupTags is as much of a security group as tells its tags.
func securityGroupTags(in Input) azure.Tags {
	if in.Config.SecurityGroupName == "" {
		return nil
	}
	// A document that cannot be read is Desired's to report.
	view, _, err := plan.View[struct{}](in.Have, in.Config.securityGroup())
	if err != nil {
		return nil
	}
	return view.Tags
}

// strayGroups are the resource groups of the public IPs to release that nothing names
// when their load balancers have let them go.
func (f *facts) strayGroups(b batch, released []plan.Node) []azure.ID {
	named := map[string]map[string]bool{} // groups by the Service that names them
	for _, w := range slices.Concat(b.live, b.gone) {
		group, _ := key.PublicIPGroup.Read(w.service.Annotations)
		if named[w.service.Key()] == nil {
			named[w.service.Key()] = map[string]bool{}
		}
		named[w.service.Key()][f.Config.publicIPs(group).Key()] = true
	}
	var groups []azure.ID
	for _, n := range released {
		group := n.ID.Parent()
		isNamed := slices.ContainsFunc(n.For, func(service string) bool { return named[service][group.Key()] })
		if n.Want() != nil || isNamed || group.Equal(f.Config.publicIPs("")) || slices.ContainsFunc(groups, group.Equal) {
			continue
		}
		groups = append(groups, group)
	}
	return groups
}

// groupNotes are the tags that name groups where public IPs are to be released: in this
// commit, or in another one as long as there is a public IP of this cluster that
// nothing uses.
func (f *facts) groupNotes(stray []azure.ID) azure.Tags {
	tags := azure.Tags{}
	for _, group := range notedGroups(f.Config, f.group.Tags) {
		if !f.hasLoose(group) {
			tags[f.Config.noteOfGroup(group)] = azure.DropTag
		}
	}
	for _, group := range stray {
		tags[f.Config.noteOfGroup(group)] = "true"
	}
	return tags
}

func (f *facts) hasLoose(group azure.ID) bool {
	if why, unread := f.Have.Unread(group, network.PublicIPAddresses); unread {
		return why != azure.NotFound // there may be one
	}
	for _, ip := range f.ips {
		_, managed := servicesIn(ip.Tags)
		_, ours := ip.Tags.Get(tagCluster)
		if managed && ours && !ofOtherCluster(ip.Tags, f.Config.ClusterName) && ip.ID.Parent().Equal(group) && ip.Properties.IPConfiguration == nil {
			return true
		}
	}
	return false
}

// afterNotes has load balancers let go only when the notes are made, and has the notes
// taken off in another round.
func (f *facts) afterNotes(nodes []plan.Node, stray []azure.ID) (pending []string) {
	if len(stray) == 0 {
		return nil
	}
	for i := range nodes {
		if nodes[i].ID.Is(network.LoadBalancers) {
			nodes[i].After = append(nodes[i].After, f.Config.securityGroup())
		}
	}
	for _, group := range stray {
		pending = append(pending, "the security group tells of resource group "+group.Name()+" until the addresses there are gone")
	}
	return pending
}
