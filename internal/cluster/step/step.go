// Package step carries out the steps that package change plans: it makes, drains and removes machines. Layer L3.
package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/workload"
	"kaz/internal/pause"
)

var errNoEtcd = errors.New("the control plane changes, which needs etcd: want a kubeconfig with the right to forward ports to pods of " +
	"kube-system, and the right to read secrets of the key vault")

func (w Worker) save(ctx context.Context, _ change.Step) error {
	if w.inspector.Etcd == nil {
		return errNoEtcd
	}
	at, err := w.inspector.Etcd.Save(ctx)
	if err != nil {
		return err
	}
	w.Sayf("  saved as %s", at)
	w.record.Saved = at
	return w.WriteChange(ctx, w.names, *w.record)
}

func (w Worker) setVersion(ctx context.Context, s change.Step) error {
	return w.inspector.Workload.SetVersion(ctx, s.Version, boot.Programs(w.record.Definition.Cluster))
}

// addMember deploys the unit of a member. It waits until the member is in etcd and its API server answers. If the member does
// not join, addMember removes it again, so that the cluster is as before.
func (w Worker) addMember(ctx context.Context, s change.Step) error {
	generations := w.in.State.Generations()
	index, generation := s.Slot()
	generations[index] = generation
	p, err := w.at(s.Version, generations)
	if err == nil {
		err = w.DeployUnit(ctx, p, naming.MemberUnit(index, generation))
	}
	if err == nil {
		err = w.awaitMember(ctx, w.names.With(s.Member))
	}
	if !refused(err) || w.in.Voter(s.Member) { // one that was upgraded in place stays
		return err
	}
	w.Sayf("  %s did not join, and is taken away again", s.Member)
	return errors.Join(err, w.abandon(ctx, s))
}

var errNoMember = errors.New("no healthy member of etcd")

// refused reports whether a machine was not made or did not join. After another error, such as one of the network, the state
// of the machine is unknown.
func refused(err error) bool {
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		return len(failed.Failures) > 0
	}
	_, late := errors.AsType[*workload.NotReadyError](err)
	return late || errors.Is(err, errNoMember)
}

func (w Worker) awaitMember(ctx context.Context, name string) error {
	err := w.inspector.Workload.Await(ctx, w.Waits.Join, func(nodes map[string]workload.Node) []string {
		if n := nodes[name]; n.Ready && n.APIServer {
			return nil
		}
		return []string{name}
	})
	if err != nil || w.inspector.Etcd == nil {
		return err
	}
	return w.awaitVoter(ctx, name)
}

// awaitVoter waits until a member of etcd is no learner and answers. It may take a moment longer than the API server beside it.
func (w Worker) awaitVoter(ctx context.Context, name string) error {
	deadline := w.Clock().Add(w.Waits.Voter)
	for {
		members, err := w.inspector.Etcd.Members(ctx)
		joined := func(m inspect.EtcdMember) bool { return m.Name == name && !m.Learner && m.Healthy }
		if err == nil && !slices.ContainsFunc(members, joined) {
			err = fmt.Errorf("%s: %w", name, errNoMember)
		}
		if err == nil || ctx.Err() != nil || w.Clock().After(deadline) {
			return err
		}
		if err := pause.For(ctx, w.Every()); err != nil {
			return err
		}
	}
}

// abandon removes a member that did not join.
func (w Worker) abandon(ctx context.Context, s change.Step) error {
	for _, do := range []func(context.Context, change.Step) error{w.removeVoter, w.forgetMember, w.DeleteMember} {
		if err := do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (w Worker) unbalance(ctx context.Context, s change.Step) error {
	found, err := w.Unbalance(ctx, w.names, w.names.With(s.Member))
	if err != nil || !found {
		return err
	}
	if err := pause.For(ctx, w.Waits.Settle); err != nil {
		return err
	}
	w.inspector.Workload.Renew() // its connections may lead to this member
	return nil
}

func (w Worker) drainMember(ctx context.Context, s change.Step) error {
	return w.inspector.Workload.Drain(ctx, w.names.With(s.Member), w.Waits.Drain)
}

// upgradeMember brings the machine of a member to a version with a run command, and lets its node take pods again. The machine has the
// version when all of that is done.
func (w Worker) upgradeMember(ctx context.Context, s change.Step) error {
	name := w.names.With(s.Member)
	id := w.names.Group().Resource(record.MachineType, name)
	script := boot.UpgradeScript(w.record.Definition, s.Version)
	body, err := json.Marshal(map[string]any{"commandId": "RunShellScript", "script": strings.Split(script, "\n")})
	if err != nil {
		return err
	}
	answer, err := azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "runCommand", Body: body})
	if err != nil {
		return err
	}
	w.inspector.Workload.Renew() // its API server has started anew
	if err := upgraded(answer); err != nil {
		return err
	}
	if err := w.awaitMember(ctx, name); err != nil {
		return err
	}
	if err := w.inspector.Workload.GiveBack(ctx, name); err != nil {
		return err
	}
	tags := maps.Clone(w.in.State.Resources[id.Key()].Tags)
	tags[naming.VersionTag] = s.Version
	return w.SetTags(ctx, id, tags)
}

// upgraded reads the report of an upgrade in the output of its run command.
func upgraded(answer azure.Document) error {
	var output struct {
		Value []struct {
			Message string `json:"message"`
		} `json:"value"`
	}
	if err := json.Unmarshal(answer, &output); err != nil {
		return fmt.Errorf("output of the run command: %w", err)
	}
	var all strings.Builder
	for _, v := range output.Value {
		all.WriteString(v.Message)
	}
	text := all.String()
	switch r, said := boot.LastReport(text); {
	case !said:
		return fmt.Errorf("the run command ended without a report: %.500s", strings.TrimSpace(text))
	case r.Failed:
		return fmt.Errorf("phase %s: %s", r.Phase, r.Message)
	}
	return nil
}

func (w Worker) removeVoter(ctx context.Context, s change.Step) error {
	if w.inspector.Etcd == nil {
		return errNoEtcd
	}
	remove := func() error { return w.inspector.Etcd.Remove(ctx, w.names.With(s.Member)) }
	stop := func() error { return w.stopMember(ctx, s) }
	order := []func() error{stop, remove}
	if !w.in.QuorumWithout(s.Member) {
		order = []func() error{remove, stop}
	}
	for _, do := range order {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// stopMember shuts a machine down. Its API server, which does not work without its etcd, ends its connections, so that kubelets and
// controllers look for another one at once.
func (w Worker) stopMember(ctx context.Context, s change.Step) error {
	id := w.names.Group().Resource(record.MachineType, w.names.With(s.Member))
	_, err := azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "powerOff"})
	w.inspector.Workload.Renew()
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}

func (w Worker) forgetMember(ctx context.Context, s change.Step) error {
	return w.inspector.Workload.Forget(ctx, w.names.With(s.Member))
}

// DeleteMember deletes the machine of a member, what belongs to it, and its deployment. What is gone is no error.
func (w Worker) DeleteMember(ctx context.Context, s change.Step) error {
	name, group := w.names.With(s.Member), w.names.Group()
	return w.Delete(ctx, group.Resource(record.MachineType, name), group.Resource(record.NICType, name+"-nic"),
		group.Resource("Microsoft.Compute/disks", name+"-etcd"), record.DeploymentID(group, w.names.UnitDeployment(s.Member)))
}

// ScaleSet is the resource of a pool's scale set in a plan, nil for a pool of standalone machines.
func ScaleSet(p cluster.Plan, pool string) (azure.ID, *graph.Resource) {
	u := p.Graph.Unit(naming.PoolUnit(pool))
	if u == nil {
		return "", nil
	}
	for _, r := range u.Resources {
		if r.Type == record.ScaleSetType {
			return emit.ID(p.Names, r.Resource, u.Unit), r.Resource
		}
	}
	return "", nil
}

// setModel gives new machines of a scale set another version. Those that run stay as they are.
func (w Worker) setModel(ctx context.Context, s change.Step) error {
	p, err := w.at(s.Version, w.in.State.Generations())
	if err != nil {
		return err
	}
	return w.writeModel(ctx, p, s.Pool, func(tags, now map[string]string) {
		if now[naming.VersionTag] != s.Version || now[naming.RevisionTag] != s.Revision {
			tags[record.PreviousTag] = now[naming.VersionTag]
		}
		tags[record.RolloutTag] = fmt.Sprintf("%s=%d", s.Version, s.Count)
		record.SetLimits(tags, s.Limits)
	})
}

// writeModel writes the model of a pool's scale set, from which Azure makes new machines, as a plan has it. It also writes
// the tags of the plan. The function mark edits these tags, and gets the tags that the scale set has now. Nothing else is
// written, because other programs write into the scale set, too.
func (w Worker) writeModel(ctx context.Context, p cluster.Plan, pool string, mark func(tags, now map[string]string)) error {
	id, r := ScaleSet(p, pool)
	if r == nil {
		return fmt.Errorf("pool %s has no scale set in the definition", pool)
	}
	now := w.in.State.Resources[id.Key()].Tags
	tags := deploy.Planned(now, r.Body, func(string) bool { return true })
	mark(tags, now)
	body := map[string]any{"tags": tags, "properties": map[string]any{"virtualMachineProfile": machineModel(r.Body)}}
	sku, err := w.skuOf(ctx, id)
	if err != nil {
		return err
	}
	if size := at(r.Body, "sku", "name"); sku["name"] != size {
		sku["name"] = size
		body["sku"] = sku
	}
	return w.Patch(ctx, id, body)
}

// machineModel is what a scale set may change of its machines.
func machineModel(set map[string]any) map[string]any {
	machine := func(path ...string) any {
		return at(set, append([]string{"properties", "virtualMachineProfile"}, path...)...)
	}
	return map[string]any{
		"osProfile": map[string]any{"customData": machine("osProfile", "customData"),
			"linuxConfiguration": machine("osProfile", "linuxConfiguration")},
		"storageProfile": map[string]any{"imageReference": machine("storageProfile", "imageReference"),
			"osDisk":    map[string]any{"diskSizeGB": machine("storageProfile", "osDisk", "diskSizeGB")},
			"dataDisks": machine("storageProfile", "dataDisks")},
	}
}

// skuOf reads the size and the number of a scale set's machines, which are written together.
func (w Worker) skuOf(ctx context.Context, id azure.ID) (map[string]any, error) {
	doc, err := w.Azure.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var set struct {
		SKU map[string]any `json:"sku"`
	}
	return set.SKU, json.Unmarshal(doc, &set)
}

// at is a value in a tree, nil if it is not there.
func at(tree any, path ...string) any {
	for _, key := range path {
		branch, _ := tree.(map[string]any)
		tree = branch[key]
	}
	return tree
}

// grow makes machines and waits until their nodes are ready. If Azure has no room, the capacity becomes the number of machines
// that are there, so that Azure does not go on trying.
func (w Worker) grow(ctx context.Context, s change.Step) error {
	p, err := w.at(w.in.LowestVersion(w.record.Definition), w.in.State.Generations())
	if err != nil {
		return err
	}
	id, r := ScaleSet(p, s.Pool)
	if r == nil {
		if err := w.DeployUnit(ctx, p, naming.PoolUnit(s.Pool)); err != nil {
			return err
		}
		return w.awaitPool(ctx, s)
	}
	if have := w.nodesOf(s.Pool); s.Count > have {
		if err := w.Patch(ctx, id, map[string]any{"sku": map[string]any{"capacity": s.Count}}); err != nil {
			restored := w.restore(ctx, id, s.Pool)
			return w.retreat(ctx, s, errors.Join(fmt.Errorf("%d further machines: %w", s.Count-have, err), restored))
		}
	}
	return w.retreat(ctx, s, w.awaitPool(ctx, s))
}

func (w Worker) nodesOf(pool string) int {
	i := slices.IndexFunc(w.in.Pools, func(p change.Pool) bool { return p.Name == pool })
	if i < 0 {
		return 0
	}
	return len(w.in.Pools[i].Nodes)
}

// restore sets the capacity of a scale set to the number of its machines. A list may lack machines that were there before.
func (w Worker) restore(ctx context.Context, id azure.ID, pool string) error {
	in, err := w.inspector.Inspect(ctx, w.names, false)
	if err != nil {
		return err
	}
	count := max(Worker{in: in}.nodesOf(pool), w.nodesOf(pool))
	w.Sayf("  pool %s stays at %d machines", pool, count)
	return w.Patch(ctx, id, map[string]any{"sku": map[string]any{"capacity": count}})
}

// awaitPool waits until the machines of a pool are ready nodes.
func (w Worker) awaitPool(ctx context.Context, s change.Step) error {
	in, err := w.inspector.Inspect(ctx, w.names, false)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range in.Pools {
		for _, n := range p.Nodes {
			if p.Name == s.Pool && !n.Failed && !n.Cordoned {
				names = append(names, n.Name)
			}
		}
	}
	return w.inspector.Workload.Await(ctx, w.Waits.Join, func(nodes map[string]workload.Node) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return nodes[name].Ready })
	})
}

func (w Worker) cordon(ctx context.Context, s change.Step) error {
	return w.inspector.Workload.Leave(ctx, w.Waits.Drain.Settle, s.Names...)
}

// drain drains a node. If it fails, all nodes of the pool that were cordoned to go take pods again.
func (w Worker) drain(ctx context.Context, s change.Step) error {
	err := w.inspector.Workload.Drain(ctx, s.Node, w.Waits.Drain)
	if err == nil {
		return nil
	}
	var cordoned []string
	for _, p := range w.in.Pools {
		for _, n := range p.Nodes {
			if p.Name == s.Pool && n.Cordoned && !n.Drained {
				cordoned = append(cordoned, n.Name)
			}
		}
	}
	return errors.Join(err, w.inspector.Workload.GiveBack(context.WithoutCancel(ctx), cordoned...))
}

// deleteNode deletes a machine by its id, and its node.
func (w Worker) deleteNode(ctx context.Context, s change.Step) error {
	one, has := w.in.Instances[s.Node]
	if !has {
		return fmt.Errorf("no machine has the name %s", s.Node)
	}
	if set := one.ID.Parent(); strings.EqualFold(set.Type(), record.ScaleSetType) {
		body, err := json.Marshal(map[string]any{"instanceIds": []string{one.InstanceID}})
		if err != nil {
			return err
		}
		_, err = azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: set, Action: "delete", Body: body})
		if err != nil && !azure.IsNotFound(err) { // a process that died may have deleted it after the list was read
			return err
		}
	} else if err := w.Delete(ctx, one.ID, w.names.Group().Resource(record.NICType, one.ID.Name()+"-nic")); err != nil {
		return err
	}
	return w.inspector.Workload.Forget(ctx, s.Node)
}

// deletePool deletes what is left of a pool without machines.
func (w Worker) deletePool(ctx context.Context, s change.Step) error {
	group := w.names.Group()
	return w.Delete(ctx, group.Resource(record.ScaleSetType, w.names.With(s.Pool)),
		record.DeploymentID(group, w.names.UnitDeployment(naming.PoolUnit(s.Pool))))
}

// release gives the autoscaler of a pool the limits of the definition.
func (w Worker) release(ctx context.Context, s change.Step) error {
	p, err := w.at(w.record.Definition.Cluster.Spec.Kubernetes.Version, w.in.State.Generations())
	if err != nil {
		return err
	}
	id, r := ScaleSet(p, s.Pool)
	if r == nil {
		return nil
	}
	_, err = w.Limit(ctx, w.in.State, id, s.Pool, r.Body)
	return err
}

// AwaitFounder waits until the API server of the new first member answers. Before that, nothing can be asked.
func (w Worker) AwaitFounder(ctx context.Context, name string) error {
	late, cancel := context.WithTimeout(ctx, w.Waits.Join)
	defer cancel()
	for {
		err := w.inspector.Workload.Await(late, w.Waits.Join, func(nodes map[string]workload.Node) []string {
			if n := nodes[name]; n.Ready && n.APIServer {
				return nil
			}
			return []string{name}
		})
		if _, notReady := errors.AsType[*workload.NotReadyError](err); err == nil || notReady {
			return err
		}
		if stopped := pause.For(late, w.Every()); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}

// Patience bounds how long the steps of a change may take.
type Patience struct {
	// Join is how long a new machine may take until its node is ready, by default 15 minutes.
	Join time.Duration
	// Voter is how long etcd may take to count a new member after its node is ready, by default 2 minutes.
	Voter time.Duration
	// Etcd is how long the other members of etcd may give no answer after a member has died, by default a minute.
	Etcd time.Duration
	// Drain bounds the drain of a node, by default 30 minutes.
	Drain workload.DrainOptions
	// Settle is the time in which connections to a member may end after its load balancer stops sending new ones, by default a
	// minute.
	Settle time.Duration
}

// Worker carries out the steps of a change.
type Worker struct {
	deploy.Deployer
	// Waits bounds how long steps take.
	Waits Patience

	inspector inspect.Inspector
	names     naming.Names
	record    *record.Change
	in        inspect.Observation
}

// New returns a worker for the cluster as it was observed.
func New(d deploy.Deployer, i inspect.Inspector, n naming.Names, r *record.Change, in inspect.Observation, waits Patience) Worker {
	waits.Join = cmp.Or(waits.Join, 15*time.Minute)
	waits.Voter = cmp.Or(waits.Voter, 2*time.Minute)
	waits.Drain.Timeout = cmp.Or(waits.Drain.Timeout, 30*time.Minute)
	waits.Settle = cmp.Or(waits.Settle, time.Minute)
	waits.Drain.Settle = cmp.Or(waits.Drain.Settle, Balancing)
	return Worker{Deployer: d, Waits: waits, inspector: i, names: n, record: r, in: in}
}

// Steps are the functions that carry out the steps.
func (w Worker) Steps() map[change.Action]func(context.Context, change.Step) error {
	return map[change.Action]func(context.Context, change.Step) error{
		change.Save: w.save, change.SetVersion: w.setVersion,
		change.AddMember: w.addMember, change.Unbalance: w.unbalance, change.DrainMember: w.drainMember,
		change.UpgradeMember: w.upgradeMember,
		change.RemoveVoter:   w.removeVoter, change.ForgetMember: w.forgetMember, change.DeleteMember: w.DeleteMember,
		change.SetModel: w.setModel, change.Grow: w.grow, change.Cordon: w.cordon, change.Drain: w.drain,
		change.DeleteNode: w.deleteNode, change.DeletePool: w.deletePool,
		change.Release: w.release,
	}
}

// Balancing is how long the cloud-controller-manager, which may have just been replaced, and a load balancer may take to leave a node
// out.
const Balancing = 20 * time.Second

// at is the plan of the change's definition for a version on the way, and the generations of the members.
func (w Worker) at(version string, generations map[int]int) (cluster.Plan, error) {
	d := w.record.Definition
	d.Cluster.Spec.Kubernetes.Version = version
	d.Cluster.Spec.ControlPlane.Replicas = max(d.Cluster.Spec.ControlPlane.Replicas, len(generations))
	return cluster.WithMembers(d, generations)
}
