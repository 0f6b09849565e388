package loadbalancer

import (
	"slices"
	"strings"

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

// Unnoted are the resource groups in which a decision makes public IPs and of which their
// Services do not tell, by UID. Nothing else would tell of them until a load balancer
// has the address: the Service may ask for another group by then.
func Unnoted(in Input, graph plan.Graph) map[types.UID][]string {
	unnoted := map[types.UID][]string{}
	for _, n := range graph.Nodes() {
		group := n.ID.Parent()
		if _, exists := in.Have.Get(n.ID); exists || n.Want() == nil || !n.ID.Is(network.PublicIPAddresses) || group.Equal(in.Config.publicIPs("")) {
			continue
		}
		for _, s := range in.Services {
			noted := slices.Concat(key.NotedGroups(s.Annotations), unnoted[s.UID])
			if slices.Contains(n.For, s.Key()) && !slices.ContainsFunc(noted, func(name string) bool { return sameText(name, group.Name()) }) {
				unnoted[s.UID] = append(unnoted[s.UID], group.Name())
			}
		}
	}
	return unnoted
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
