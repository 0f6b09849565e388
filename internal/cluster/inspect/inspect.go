// Package inspect reads what is there of a cluster, in Azure and inside of the cluster, for the changes that package change
// plans. Layer L3.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
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

// Observation is what was found of a cluster: what [change] plans with, and the ids of the machines of pools by the names of nodes.
type Observation struct {
	change.Cluster

	State     record.State
	Instances map[string]record.Instance
}

// Inspector reads what is there of a cluster, for changes.
type Inspector struct {
	record.Store
	Workload *workload.Cluster
	// Etcd is the etcd of the cluster, nil if it is not used.
	Etcd Etcd
	// Say gets a line for each problem of etcd, for people.
	Say func(format string, args ...any)
}

// Inspect reads what is there of a cluster, in Azure and inside of the cluster. Without etcd the nodes of the control plane count
// as its members.
func (i Inspector) Inspect(ctx context.Context, n naming.Names, etcd bool) (Observation, error) {
	var in Observation
	var err error
	if in.State, err = i.Read(ctx, n); err != nil {
		return in, err
	}
	if in.State.Definition == nil {
		return in, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	nodes, err := i.Workload.Nodes(ctx)
	if err != nil {
		return in, err
	}
	if in.Version, err = i.Workload.Version(ctx); err != nil {
		return in, err
	}
	if err := i.observeMembers(ctx, n, &in, nodes, etcd && i.Etcd != nil); err != nil {
		return in, err
	}
	return in, i.observePools(ctx, n, &in, nodes)
}

// observeMembers joins what Azure, the API server and etcd know of the control plane.
func (i Inspector) observeMembers(ctx context.Context, n naming.Names, in *Observation, nodes map[string]workload.Node,
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
	for unit := range in.State.Units {
		member(n.With(unit))
	}
	for _, r := range in.State.Resources {
		if r.Tags[naming.ClusterTag] != n.Cluster {
			continue
		}
		// What is left of a member after its machine is gone counts as a member without a machine.
		if m := member(n.With(r.Tags[naming.UnitTag])); m != nil && strings.EqualFold(r.Type, record.MachineType) {
			m.Machine, m.Version, m.Revision = true, r.Tags[naming.VersionTag], r.Tags[naming.RevisionTag]
			nic, err := i.NIC(ctx, n, r.ID.Name())
			if err != nil {
				return err
			}
			m.Balanced = nic.Balanced()
		}
	}
	addMemberNodes(nodes, member, etcd)
	if etcd {
		if err := i.observeEtcd(ctx, all, member); err != nil {
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

// ErrSilentEtcd is in the chain of an error about an etcd of which no member answers.
var ErrSilentEtcd = errors.New("members of etcd")

// ErrEtcdAccess is in the chain of an error of an [Etcd] that cannot get the certificate of its client. To look again does not help.
var ErrEtcdAccess = errors.New("no certificate for etcd")

// observeEtcd adds what etcd knows of its members.
func (i Inspector) observeEtcd(ctx context.Context, all map[string]*change.Member, member func(string) *change.Member) error {
	members, err := i.Etcd.Members(ctx)
	switch {
	case errors.Is(err, ErrEtcdAccess):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w: see kaz cluster doctor", ErrSilentEtcd, err)
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
			i.Say("  %s", one.Problem)
		}
		if m := member(one.Name); m != nil {
			m.Voter, m.Learner, m.Leader = !one.Learner, one.Learner, one.Leader
		}
	}
	return nil
}

// observePools joins what Azure and the API server know of the pools.
func (i Inspector) observePools(ctx context.Context, n naming.Names, in *Observation, nodes map[string]workload.Node) error {
	in.Instances = map[string]record.Instance{}
	machines, err := i.Machines(ctx, n)
	if err != nil {
		return err
	}
	pools := map[string]*change.Pool{}
	for _, p := range in.State.Definition.Pools {
		if _, deployed := in.State.Units[naming.PoolUnit(p.Metadata.Name)]; deployed && p.Spec.Backend == "StandaloneVM" {
			pools[p.Metadata.Name] = &change.Pool{Name: p.Metadata.Name, Standalone: true}
		}
	}
	for _, r := range in.State.Resources {
		name := r.Tags[naming.PoolTag]
		if !strings.EqualFold(r.Type, record.ScaleSetType) || name == "" || r.Tags[naming.ClusterTag] != n.Cluster {
			continue
		}
		pools[name] = scaledPool(name, r, *in.State.Definition)
		members, err := i.Instances(ctx, r.ID)
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
func scaledPool(name string, set record.Resource, d definition.Definition) *change.Pool {
	p := &change.Pool{Name: name, Model: set.Tags[naming.VersionTag], Revision: set.Tags[naming.RevisionTag]}
	for _, pool := range d.Pools {
		if pool.Metadata.Name == name {
			for _, zone := range pool.Spec.Zones {
				p.Zones = append(p.Zones, strconv.Itoa(zone))
			}
		}
	}
	p.Limits = record.LimitsOf(set.Tags)
	version, count, _ := strings.Cut(set.Tags[record.RolloutTag], "=")
	if desired, err := strconv.Atoi(count); err == nil && version == p.Model {
		p.Desired = desired
	}
	return p
}

// addMachines adds machines that stand alone and those of scale sets in Flexible mode to their pools.
func (in *Observation) addMachines(n naming.Names, machines []record.Instance, pools map[string]*change.Pool,
	nodes map[string]workload.Node) {
	for _, one := range machines {
		name := one.Tags[naming.PoolTag]
		if set := one.Properties.ScaleSet.ID; set != "" {
			name = in.State.Resources[set.Key()].Tags[naming.PoolTag]
		} else if name != "" && pools[name] == nil && one.Tags[naming.ClusterTag] == n.Cluster {
			pools[name] = &change.Pool{Name: name, Standalone: true} // the definition no longer has it
		}
		if pools[name] != nil && (one.Tags[naming.ClusterTag] == n.Cluster || one.Properties.ScaleSet.ID != "") {
			in.addNode(pools[name], one, nodes)
		}
	}
}

// addNode adds a machine to a pool.
func (in *Observation) addNode(p *change.Pool, one record.Instance, nodes map[string]workload.Node) {
	name := strings.ToLower(one.Properties.OS.Name)
	in.Instances[name] = one
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

// Voter reports whether etcd counted a member before the step.
func (in Observation) Voter(id string) bool {
	return slices.ContainsFunc(in.Members, func(m change.Member) bool { return m.ID() == id && m.Voter })
}

// QuorumWithout reports whether etcd has a majority while a member that it still counts is down.
func (in Observation) QuorumWithout(id string) bool {
	voters, healthy := 0, 0
	for _, m := range in.Members {
		if !m.Voter {
			continue
		}
		voters++
		if m.Healthy && m.ID() != id {
			healthy++
		}
	}
	return healthy > voters/2
}

// LowestVersion is the version of new standalone machines: that of the change, once all members have it.
func (in Observation) LowestVersion(d definition.Definition) string {
	for _, m := range in.Members {
		if m.Machine && m.Version != d.Cluster.Spec.Kubernetes.Version {
			return in.Version
		}
	}
	return d.Cluster.Spec.Kubernetes.Version
}
