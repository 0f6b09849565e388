// Package note decides which resource groups must be noted, at Services or at the security group,
// because later decisions would not find what is there. Layer L1.
package note

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// Missing returns the resource groups, other than the configured ones, that must be noted at Services before a decision
// is applied, by UID. In these groups the decision makes public IPs for the Service, or the Service has private link
// services. At the next decision the Service may no longer name them. Nothing else shows a public IP until a load
// balancer has it, and nothing else ever shows a private link service.
func Missing(in index.Input, graph plan.Graph) map[types.UID][]key.Note {
	all := in.Staying()
	live := all[len(in.Others):]
	missing := map[types.UID][]key.Note{}
	add := func(among []*v1.Service, service string, n key.Note) {
		for _, s := range among {
			noted := slices.Concat(key.Noted(s.Status.Conditions), missing[s.UID])
			if spec.KeyOf(s) == service && !slices.ContainsFunc(noted, n.Same) {
				missing[s.UID] = append(missing[s.UID], n)
			}
		}
	}
	for service, notes := range linksElsewhere(in) {
		for _, n := range notes {
			add(live, service, n)
		}
	}
	for _, n := range graph.Nodes() {
		group := n.ID.Parent()
		_, exists := in.Have.Get(n.ID)
		switch link, isLink := n.Want().(azure.Resource[network.PrivateLinkService]); {
		case isLink && !group.Equal(in.Config.LinkGroup("")): // it can be handed over
			add(all, link.Tags[naming.LinkOwnerTag], key.Note{Of: key.PrivateLinks, Group: group.Name()})
		case n.Want() != nil && !exists && n.ID.Is(network.PublicIPAddresses) && !group.Equal(in.Config.PublicIPGroup("")):
			for _, service := range n.For {
				add(live, service, key.Note{Of: key.PublicIPs, Group: group.Name()})
			}
		}
	}
	return missing
}

// Kept returns the resource groups that stay noted at Services that are served, by UID. The Services have private link
// services there, or the groups cannot be read.
func Kept(in index.Input) map[types.UID][]key.Note {
	kept := map[types.UID][]key.Note{}
	links := linksElsewhere(in)
	for _, s := range in.Services {
		kept[s.UID] = links[s.Key()]
		for _, n := range key.Noted(s.Status.Conditions) {
			why, unread := in.Have.Unread(in.Config.LinkGroup(n.Group), network.PrivateLinkServices)
			if n.Of == key.PrivateLinks && unread && why != azure.NotFound {
				kept[s.UID] = append(slices.Clip(kept[s.UID]), n)
			}
		}
	}
	return kept
}

// linksElsewhere returns notes for private link services outside of the configured group, which nothing else finds. They
// are by the keys of the Services in the tags.
func linksElsewhere(in index.Input) map[string][]key.Note {
	notes := map[string][]key.Note{}
	balancers, _ := index.Balancers(in)    // the decision reports an error
	links, _ := index.Links(in, balancers) // as well
	for _, l := range links {
		if at := l.ID.Parent(); l.Owner != "" && !at.Equal(in.Config.LinkGroup("")) {
			notes[l.Owner] = append(notes[l.Owner], key.Note{Of: key.PrivateLinks, Group: at.Name()})
		}
	}
	return notes
}

// Tags returns changes of the security group's tags that name groups where public IPs are to be released. It sets the
// tags of the given groups, which are those of this commit. It drops the tag of an earlier commit when this cluster has
// no unused public IP there. The tag stays while the group cannot be read.
func Tags(x *index.Index, groups []azure.ID) azure.Tags {
	tags := azure.Tags{}
	for _, group := range index.NotedGroups(x.Config, x.SecurityGroup.Tags) {
		isUnused := func(ip *index.PublicIP) bool {
			_, ours := ip.Tags.Get(key.TagCluster)
			return ip.Managed && ours && ip.ID.Parent().Equal(group) && ip.Properties.IPConfiguration == nil
		}
		why, unread := x.Have.Unread(group, network.PublicIPAddresses)
		mayBe := unread && why != azure.NotFound
		if !mayBe && !slices.ContainsFunc(slices.Collect(maps.Values(x.PublicIPs)), isUnused) {
			tags[index.NoteOfGroup(x.Config, group)] = azure.DropTag
		}
	}
	for _, group := range groups {
		tags[index.NoteOfGroup(x.Config, group)] = "true"
	}
	return tags
}
