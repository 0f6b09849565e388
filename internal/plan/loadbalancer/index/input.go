// Package index reads what a decision is made of: the Services, the nodes and a snapshot of Azure.
// It reads each document once and answers questions about what is there. It decides nothing, and
// nothing changes it once it is read. Layer L1.
package index

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// Input is all that a decision is made of.
type Input struct {
	Config cluster.Config
	// NoZones is why the zones of the region are not known: a Service that needs a new address is refused then.
	// It is nil where Config has them.
	NoZones  error
	Services []spec.Service
	// Others are Services of type LoadBalancer that are not of this commit. What
	// they have stays; it is best known from their objects.
	Others []*v1.Service
	// Complete says that Services and Others are all that the cluster has. Then
	// destinations of managed security rules that no Service has are removed.
	Complete bool
	// Nodes are all nodes of the cluster. Without any, the members of the backend pools stay.
	Nodes []*v1.Node
	// DeletedNodes are machines after their Node was deleted from Kubernetes, as far as is known: they are excluded until
	// there is a Node again. An instance that was just made from a scale set's model has no Node either, but is not among
	// them.
	DeletedNodes []azure.ID
	// ConcurrentMembers says that machines join and leave while other changes are applied. A machine that
	// leaves still gets packets, then, until a decision finds that it has left.
	ConcurrentMembers bool
	// RejectedAddresses are addresses of nodes that Azure takes into no pool, with the reason, by address.
	RejectedAddresses map[string]string
	// Namespaces are the labels of namespaces, by name. Endpoints are the nodes that have endpoints of a Service of
	// policy Local, by the Service's key. A Service without an entry keeps the nodes that it has. Both are for several
	// load balancers.
	Namespaces map[string]map[string]string
	Endpoints  map[string][]string
	Have       plan.Snapshot
}

// All are the Services of the commit, gone or not, and then the others.
func (in Input) All() []*v1.Service {
	var all []*v1.Service
	for _, s := range in.Services {
		all = append(all, s.Service)
	}
	return append(all, in.Others...)
}

// Staying are the Services that are not gone: the others, and then those of the commit.
func (in Input) Staying() []*v1.Service {
	all := slices.Clone(in.Others)
	for _, s := range in.Services {
		if !s.Gone {
			all = append(all, s.Service)
		}
	}
	return all
}

func (in Input) byOwner() map[string]*v1.Service {
	services := make(map[string]*v1.Service, len(in.Services)+len(in.Others))
	for _, s := range in.All() {
		services[naming.OwnerOf(s)] = s
	}
	return services
}

// HasInterfacePools reports whether a pool of the load balancers is not one of addresses yet. The function which reports
// whether a pool counts, by its name.
func HasInterfacePools(all []*LoadBalancer, which func(name string) bool) bool {
	return slices.ContainsFunc(all, func(b *LoadBalancer) bool {
		return slices.ContainsFunc(b.Properties.BackendAddressPools, func(p Pool) bool { return which(p.Name) && !IsByAddress(p) })
	})
}

// idSet is ids without repetition, in the order in which they are added.
type idSet []azure.ID

func (s *idSet) add(id azure.ID) {
	if id != "" && !slices.ContainsFunc(*s, id.Equal) {
		*s = append(*s, id)
	}
}

// AddressGroups are the resource groups of public IPs that Services have or ask for.
func AddressGroups(in Input, all []*LoadBalancer) []azure.ID {
	var groups idSet
	groups.add(in.Config.PublicIPGroup(""))
	for _, s := range in.Services {
		for _, name := range spec.GroupsOf(key.PublicIPs, key.AskedGroups(s.Annotations), s.Groups, key.Noted(s.Status.Conditions)) {
			groups.add(in.Config.PublicIPGroup(name))
		}
	}
	securityGroup, _, _ := plan.View[struct{}](in.Have, in.Config.SecurityGroupID()) // Read reports an error
	for _, noted := range NotedGroups(in.Config, securityGroup.Tags) {
		groups.add(noted)
	}
	for _, b := range all {
		for _, fe := range b.Properties.FrontendIPConfigurations {
			if naming.IsOwned(fe.Name) {
				groups.add(fe.Properties.PublicIPAddress.To().Parent())
			}
		}
	}
	return groups
}

// NoteOfGroup is the name of the security group's tag that names a resource group.
//
// A released public IP may be in a resource group for which its Service no longer asks. Once its load balancer has let it
// go, nothing names that group. If kaz is stopped then, the next decision would not look there. So the security group
// names the group in a tag before, until the public IP is gone.
func NoteOfGroup(c cluster.Config, group azure.ID) string {
	return naming.NoteTags + c.ClusterName + "-public-ips-in-" + strings.ToLower(group.Name())
}

// NotedGroups are the resource groups that the security group's tags name. A tag that names
// no valid resource group is not one of kaz.
func NotedGroups(c cluster.Config, tags azure.Tags) []azure.ID {
	prefix := NoteOfGroup(c, "")
	var groups []azure.ID
	for name := range tags {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) && key.IsGroup(name[len(prefix):]) {
			groups = append(groups, c.PublicIPGroup(name[len(prefix):]))
		}
	}
	slices.Sort(groups)
	return groups
}

// LinkGroups are the resource groups of private link services that Services ask for, or have asked for. The groups of
// other Services count if a Service may share their private link service. They also count if pools change to addresses:
// no private link service may be in front of such pools.
func LinkGroups(in Input, all []*LoadBalancer) []azure.ID {
	var groups idSet
	groups.add(in.Config.LinkGroup(""))
	add := func(s spec.Service) {
		for _, name := range spec.GroupsOf(key.PrivateLinks, key.AskedGroups(s.Annotations), s.Groups, key.Noted(s.Status.Conditions)) {
			groups.add(in.Config.LinkGroup(name))
		}
	}
	others := in.Config.PoolByIP && HasInterfacePools(all, in.Config.IsOwnPool)
	for _, s := range in.Services {
		add(s)
		others = others || !s.Gone && key.LinkStays(s.Annotations)
	}
	for _, s := range in.Others {
		if others && key.LinkStays(s.Annotations) {
			add(spec.Service{Service: s})
		}
	}
	return groups
}

// Subnets are the subnets in which Services ask for an address.
func Subnets(in Input) []azure.ID {
	var ids idSet
	for _, s := range in.Services {
		if s.Gone {
			continue
		}
		own := ""
		if internal, _ := key.Internal.Read(s.Annotations); internal {
			own, _ = key.InternalSubnet.Read(s.Annotations)
			ids.add(in.Config.SubnetID(own))
		}
		if linked, _ := key.LinkCreate.Read(s.Annotations); linked {
			name, _ := key.LinkSubnet.Read(s.Annotations)
			ids.add(in.Config.SubnetID(cmp.Or(strings.TrimSpace(name), strings.TrimSpace(own))))
		}
	}
	return ids
}
