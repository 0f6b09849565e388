package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/workload"
)

// Etcd is the etcd of a cluster.
type Etcd interface {
	// Members are the members of etcd.
	Members(ctx context.Context) ([]EtcdMember, error)
	// Remove removes a member by its name, after it has passed the leadership on. A member that is not there is no error.
	Remove(ctx context.Context, name string) error
	// Save stores a backup and returns where it is.
	Save(ctx context.Context) (string, error)
}

// EtcdMember is a member of etcd. Its name is that of its machine.
type EtcdMember struct {
	Name                     string
	Learner, Leader, Healthy bool
	// ID is the id of the member in etcd.
	ID string
	// Problem says why it is not healthy.
	Problem string
	// Alarms are NOSPACE and CORRUPT. A corrupt member is not healthy.
	Alarms []string
	// Size, InUse and Quota are bytes of the database, 0 if the member does not tell.
	Size, InUse, Quota int64
	// Expires is the end of the member's certificate.
	Expires time.Time
}

const (
	machineType  = "Microsoft.Compute/virtualMachines"
	scaleSetType = "Microsoft.Compute/virtualMachineScaleSets"
	nicType      = "Microsoft.Network/networkInterfaces"
	// rolloutTag at a scale set has the version of an upgrade and the number of nodes before it: "1.37.1=3".
	rolloutTag = "kaz_rollout"
	// previousTag at a scale set has the version that its model had before.
	previousTag = "kaz_previous"
)

// Generations are those of the newest members that exist, by index.
func (s State) Generations() map[int]int {
	all := map[int]int{}
	for _, r := range s.resources {
		index, generation, ok := naming.MemberSlot(r.Tags[naming.UnitTag])
		if !ok || !strings.EqualFold(r.Type, machineType) {
			continue
		}
		if had, has := all[index]; !has || had < generation {
			all[index] = generation
		}
	}
	return all
}

// instance is a machine of a pool as Azure has it.
type instance struct {
	ID         azure.ID          `json:"id"`
	InstanceID string            `json:"instanceId"`
	Zones      []string          `json:"zones"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
		LatestModel       bool   `json:"latestModelApplied"`
		ScaleSet          struct {
			ID azure.ID `json:"id"`
		} `json:"virtualMachineScaleSet"`
		OS struct {
			Name string `json:"computerName"`
		} `json:"osProfile"`
	} `json:"properties"`
}

// observation is what was found of a cluster: what [change] plans with, and the ids of the machines of pools by the names of nodes.
type observation struct {
	change.Cluster

	state     State
	instances map[string]instance
}

// observer reads what is there of a cluster, for changes.
type observer struct{ *Engine }

// observe reads what is there of a cluster, in Azure and inside of the cluster. Without etcd the nodes of the control plane count
// as its members.
func (e observer) observe(ctx context.Context, n naming.Names, etcd bool) (observation, error) {
	var in observation
	var err error
	if in.state, err = e.Read(ctx, n); err != nil {
		return in, err
	}
	if in.state.Definition == nil {
		return in, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	nodes, err := e.Workload.Nodes(ctx)
	if err != nil {
		return in, err
	}
	if in.Version, err = e.Workload.Version(ctx); err != nil {
		return in, err
	}
	if err := e.observeMembers(ctx, n, &in, nodes, etcd && e.Etcd != nil); err != nil {
		return in, err
	}
	return in, e.observePools(ctx, n, &in, nodes)
}

// observeMembers joins what Azure, the API server and etcd know of the control plane.
func (e observer) observeMembers(ctx context.Context, n naming.Names, in *observation, nodes map[string]workload.Node,
	etcd bool) error {
	all := map[string]*change.Member{}
	member := func(name string) *change.Member {
		unit, _ := strings.CutPrefix(name, n.Cluster+"-")
		index, generation, ok := naming.MemberSlot(unit)
		if !ok {
			return nil
		}
		if all[name] == nil {
			all[name] = &change.Member{Index: index, Generation: generation}
		}
		return all[name]
	}
	for unit := range in.state.units {
		member(n.With(unit))
	}
	for _, r := range in.state.resources {
		if r.Tags[naming.ClusterTag] != n.Cluster {
			continue
		}
		// What is left of a member after its machine is gone counts as a member without a machine.
		if m := member(n.With(r.Tags[naming.UnitTag])); m != nil && strings.EqualFold(r.Type, machineType) {
			m.Machine, m.Version, m.Revision = true, r.Tags[naming.VersionTag], r.Tags[naming.RevisionTag]
			nic, err := e.network(ctx, n, r.ID.Name())
			if err != nil {
				return err
			}
			m.Balanced = nic.balanced()
		}
	}
	addMemberNodes(nodes, member, etcd)
	if etcd {
		if err := e.observeEtcd(ctx, all, member); err != nil {
			return err
		}
	}
	for _, m := range all {
		in.Members = append(in.Members, *m)
	}
	slices.SortFunc(in.Members, func(a, b change.Member) int {
		return strings.Compare(naming.MemberUnit(a.Index, a.Generation), naming.MemberUnit(b.Index, b.Generation))
	})
	return nil
}

// addMemberNodes adds what the API server knows of members. Without etcd their nodes count as its members.
func addMemberNodes(nodes map[string]workload.Node, member func(string) *change.Member, etcd bool) {
	for name, node := range nodes {
		if m := member(name); m != nil {
			m.Node, m.Healthy = true, node.Ready && node.APIServer
			m.Drained = node.Cordoned && node.Pods == 0
			m.Voter = !etcd
		}
	}
}

// errSilentEtcd is in the chain of an error about an etcd of which no member answers.
var errSilentEtcd = errors.New("members of etcd")

// ErrEtcdAccess is in the chain of an error of an [Etcd] that cannot get the certificate of its client. To look again does not help.
var ErrEtcdAccess = errors.New("no certificate for etcd")

// observeEtcd adds what etcd knows of its members.
func (e observer) observeEtcd(ctx context.Context, all map[string]*change.Member, member func(string) *change.Member) error {
	members, err := e.Etcd.Members(ctx)
	switch {
	case errors.Is(err, ErrEtcdAccess):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w: see kaz cluster doctor", errSilentEtcd, err)
	}
	for name := range all {
		answers := slices.ContainsFunc(members, func(one EtcdMember) bool { return one.Name == name && one.Healthy })
		all[name].Healthy = all[name].Healthy && answers
	}
	for _, one := range members {
		if slices.Contains(one.Alarms, "NOSPACE") {
			return fmt.Errorf("the database of etcd at %s has reached its quota, so nothing can be written: see kaz cluster doctor",
				one.Name)
		}
		if one.Problem != "" {
			e.say("  %s", one.Problem)
		}
		if m := member(one.Name); m != nil {
			m.Voter, m.Learner, m.Leader = !one.Learner, one.Learner, one.Leader
		}
	}
	return nil
}

// nic is a network interface as far as the load balancers are concerned.
type nic struct {
	document map[string]any
	id       azure.ID
}

// network reads the network interface of a member.
func (e observer) network(ctx context.Context, n naming.Names, machine string) (nic, error) {
	one := nic{id: n.Group().Resource(nicType, machine+"-nic")}
	doc, err := e.Azure.Get(ctx, one.id)
	if azure.IsNotFound(err) {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	return one, json.Unmarshal(doc, &one.document)
}

const backendPools = "loadBalancerBackendAddressPools"

// addresses are the properties of the IP configurations.
func (n nic) addresses() []map[string]any {
	properties, _ := n.document["properties"].(map[string]any)
	configurations, _ := properties["ipConfigurations"].([]any)
	var all []map[string]any
	for _, one := range configurations {
		configuration, _ := one.(map[string]any)
		if p, ok := configuration["properties"].(map[string]any); ok {
			all = append(all, p)
		}
	}
	return all
}

func (n nic) balanced() bool {
	return slices.ContainsFunc(n.addresses(), func(p map[string]any) bool {
		pools, _ := p[backendPools].([]any)
		return len(pools) > 0
	})
}

// observePools joins what Azure and the API server know of the pools.
func (e observer) observePools(ctx context.Context, n naming.Names, in *observation, nodes map[string]workload.Node) error {
	in.instances = map[string]instance{}
	machines, err := e.machines(ctx, n)
	if err != nil {
		return err
	}
	pools := map[string]*change.Pool{}
	for _, p := range in.state.Definition.Pools {
		if _, deployed := in.state.units[naming.PoolUnit(p.Metadata.Name)]; deployed && p.Spec.Backend == "StandaloneVM" {
			pools[p.Metadata.Name] = &change.Pool{Name: p.Metadata.Name, Standalone: true}
		}
	}
	for _, r := range in.state.resources {
		name := r.Tags[naming.PoolTag]
		if !strings.EqualFold(r.Type, scaleSetType) || name == "" || r.Tags[naming.ClusterTag] != n.Cluster {
			continue
		}
		pools[name] = scaledPool(name, r, *in.state.Definition)
		members, err := e.instances(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, one := range members {
			in.addNode(pools[name], one, nodes)
		}
	}
	in.addMachines(n, machines, pools, nodes)
	for _, p := range pools {
		slices.SortFunc(p.Nodes, func(a, b change.Node) int { return strings.Compare(a.Name, b.Name) })
		in.Pools = append(in.Pools, *p)
	}
	slices.SortFunc(in.Pools, func(a, b change.Pool) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// scaledPool is the pool of a scale set.
func scaledPool(name string, set resource, d definition.Definition) *change.Pool {
	p := &change.Pool{Name: name, Model: set.Tags[naming.VersionTag], Revision: set.Tags[naming.RevisionTag]}
	for _, pool := range d.Pools {
		if pool.Metadata.Name == name {
			for _, zone := range pool.Spec.Zones {
				p.Zones = append(p.Zones, strconv.Itoa(zone))
			}
		}
	}
	p.Limits = limitsOf(set.Tags)
	version, count, _ := strings.Cut(set.Tags[rolloutTag], "=")
	if desired, err := strconv.Atoi(count); err == nil && version == p.Model {
		p.Desired = desired
	}
	return p
}

// addMachines adds machines that stand alone and those of scale sets in Flexible mode to their pools.
func (in *observation) addMachines(n naming.Names, machines []instance, pools map[string]*change.Pool, nodes map[string]workload.Node) {
	for _, one := range machines {
		name := one.Tags[naming.PoolTag]
		if set := one.Properties.ScaleSet.ID; set != "" {
			name = in.state.resources[set.Key()].Tags[naming.PoolTag]
		} else if name != "" && pools[name] == nil && one.Tags[naming.ClusterTag] == n.Cluster {
			pools[name] = &change.Pool{Name: name, Standalone: true} // the definition no longer has it
		}
		if pools[name] != nil && (one.Tags[naming.ClusterTag] == n.Cluster || one.Properties.ScaleSet.ID != "") {
			in.addNode(pools[name], one, nodes)
		}
	}
}

// machines are the machines of the resource group.
func (e observer) machines(ctx context.Context, n naming.Names) ([]instance, error) {
	return azure.ListAs[instance](ctx, e.Azure, azure.Query{Scope: n.Group(), Type: machineType})
}

// instances are the machines of a scale set in Uniform mode.
func (e observer) instances(ctx context.Context, set azure.ID) ([]instance, error) {
	all, err := azure.ListAs[instance](ctx, e.Azure, azure.Query{Scope: set, Type: scaleSetType + "/virtualMachines"})
	return slices.DeleteFunc(all, func(i instance) bool { return !i.ID.Under(set) }), err
}

// addNode adds a machine to a pool.
func (in *observation) addNode(p *change.Pool, one instance, nodes map[string]workload.Node) {
	name := strings.ToLower(one.Properties.OS.Name)
	in.instances[name] = one
	node, joined := nodes[name]
	n := change.Node{Name: name, Zone: strings.Join(one.Zones, ","), Failed: one.Properties.ProvisioningState == "Failed"}
	if joined {
		n.Version, n.Revision, n.Ready, n.Cordoned, n.First = node.Version, node.Revision, node.Ready, node.Cordoned, node.First
		n.Pods, n.Volumes, n.Drained = node.Pods, node.Volumes, node.Excluded && node.Cordoned && node.Pods == 0 && node.Volumes == 0
		n.Age = -node.Created.Unix()
		if n.Zone == "" {
			n.Zone = node.Zone // the fault domain of a machine without a zone
		}
	}
	n.Failed = n.Failed && !joined
	p.Nodes = append(p.Nodes, n)
}
