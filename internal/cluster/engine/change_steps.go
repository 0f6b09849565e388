package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
	"kaz/internal/cluster/workload"
	"kaz/internal/pause"
)

var errNoEtcd = errors.New("the control plane changes, which needs etcd: want a kubeconfig with the right to forward ports to pods of " +
	"kube-system, and the right to read secrets of the key vault")

func (w worker) save(ctx context.Context, _ change.Step) error {
	if w.Etcd == nil {
		return errNoEtcd
	}
	at, err := w.Etcd.Save(ctx)
	if err != nil {
		return err
	}
	w.say("  saved as %s", at)
	w.record.Saved = at
	return w.writeRecord(ctx, w.names, *w.record)
}

func (w worker) setVersion(ctx context.Context, s change.Step) error {
	return w.Workload.SetVersion(ctx, s.Version, boot.Programs(w.record.Definition.Cluster))
}

// addMember deploys the unit of a member. It waits until the member is in etcd and its API server answers. If the member does
// not join, addMember removes it again, so that the cluster is as before.
func (w worker) addMember(ctx context.Context, s change.Step) error {
	generations := w.in.state.Generations()
	index, generation := s.Slot()
	generations[index] = generation
	p, err := w.at(s.Version, generations)
	if err == nil {
		err = w.deployUnit(ctx, p, naming.MemberUnit(index, generation))
	}
	if err == nil {
		err = w.awaitMember(ctx, w.names.With(s.Member))
	}
	if !refused(err) || w.in.voter(s.Member) { // one that was upgraded in place stays
		return err
	}
	w.say("  %s did not join, and is taken away again", s.Member)
	return errors.Join(err, w.abandon(ctx, s))
}

// voter reports whether etcd counted a member before the step.
func (in observation) voter(id string) bool {
	return slices.ContainsFunc(in.Members, func(m change.Member) bool { return m.ID() == id && m.Voter })
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

func (w worker) awaitMember(ctx context.Context, name string) error {
	err := w.Workload.Await(ctx, w.waits.Join, func(nodes map[string]workload.Node) []string {
		if n := nodes[name]; n.Ready && n.APIServer {
			return nil
		}
		return []string{name}
	})
	if err != nil || w.Etcd == nil {
		return err
	}
	return w.awaitVoter(ctx, name)
}

// awaitVoter waits until a member of etcd is no learner and answers. It may take a moment longer than the API server beside it.
func (w worker) awaitVoter(ctx context.Context, name string) error {
	deadline := w.now().Add(w.waits.Voter)
	for {
		members, err := w.Etcd.Members(ctx)
		if err == nil && !slices.ContainsFunc(members, func(m EtcdMember) bool { return m.Name == name && !m.Learner && m.Healthy }) {
			err = fmt.Errorf("%s: %w", name, errNoMember)
		}
		if err == nil || ctx.Err() != nil || w.now().After(deadline) {
			return err
		}
		if err := pause.For(ctx, w.every()); err != nil {
			return err
		}
	}
}

// abandon removes a member that did not join.
func (w worker) abandon(ctx context.Context, s change.Step) error {
	for _, do := range []func(context.Context, change.Step) error{w.removeVoter, w.forgetMember, w.deleteMember} {
		if err := do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// deployUnit deploys one unit of a plan. The deployment records the previous definition, because the change has not ended.
func (w worker) deployUnit(ctx context.Context, p cluster.Plan, unit string) error {
	state, err := w.Read(ctx, w.names)
	if err != nil {
		return err
	}
	leave := map[string]bool{}
	for _, u := range p.Graph.Units {
		leave[u.Name] = u.Name != unit
	}
	x, err := deployer{w.Engine}.compare(ctx, p, state, leave)
	if err != nil {
		return err
	}
	if err := (deployer{w.Engine}).change(ctx, x); err != nil {
		return err
	}
	o := x.written(leave)
	o.Definition = state.Definition
	return deployer{w.Engine}.run(ctx, work{plan: p, state: state, template: p.Template(o), left: len(p.Graph.Units) - 1}, nil,
		func() error { return nil })
}

func (w worker) unbalance(ctx context.Context, s change.Step) error {
	n, err := observer{w.Engine}.network(ctx, w.names, w.names.With(s.Member))
	if err != nil || n.document == nil {
		return err
	}
	err = w.rewrite(ctx, n.id, n.document, func(live object) (object, error) {
		for _, p := range (nic{document: live}).addresses() {
			delete(p, backendPools)
		}
		return live, nil
	})
	if err != nil {
		return err
	}
	if err := pause.For(ctx, w.waits.Settle); err != nil {
		return err
	}
	w.Workload.Renew() // its connections may lead to this member
	return nil
}

func (w worker) drainMember(ctx context.Context, s change.Step) error {
	return w.Workload.Drain(ctx, w.names.With(s.Member), w.waits.Drain)
}

// upgradeMember brings the machine of a member to a version with a run command, and lets its node take pods again. The machine has the
// version when all of that is done.
func (w worker) upgradeMember(ctx context.Context, s change.Step) error {
	name := w.names.With(s.Member)
	id := w.names.Group().Resource(machineType, name)
	script := boot.UpgradeScript(w.record.Definition, s.Version)
	body, err := json.Marshal(object{"commandId": "RunShellScript", "script": strings.Split(script, "\n")})
	if err != nil {
		return err
	}
	answer, err := azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "runCommand", Body: body})
	if err != nil {
		return err
	}
	w.Workload.Renew() // its API server has started anew
	if err := upgraded(answer); err != nil {
		return err
	}
	if err := w.awaitMember(ctx, name); err != nil {
		return err
	}
	if err := w.Workload.GiveBack(ctx, name); err != nil {
		return err
	}
	tags := maps.Clone(w.in.state.resources[id.Key()].Tags)
	tags[naming.VersionTag] = s.Version
	return deployer{w.Engine}.setTags(ctx, id, tags)
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

func (w worker) removeVoter(ctx context.Context, s change.Step) error {
	if w.Etcd == nil {
		return errNoEtcd
	}
	remove := func() error { return w.Etcd.Remove(ctx, w.names.With(s.Member)) }
	stop := func() error { return w.stopMember(ctx, s) }
	order := []func() error{stop, remove}
	if !w.in.quorumWithout(s.Member) {
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
func (w worker) stopMember(ctx context.Context, s change.Step) error {
	id := w.names.Group().Resource(machineType, w.names.With(s.Member))
	_, err := azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "powerOff"})
	w.Workload.Renew()
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}

// quorumWithout reports whether etcd has a majority while a member that it still counts is down.
func (in observation) quorumWithout(id string) bool {
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

func (w worker) forgetMember(ctx context.Context, s change.Step) error {
	return w.Workload.Forget(ctx, w.names.With(s.Member))
}

// deleteMember deletes the machine of a member, what belongs to it, and its deployment. What is gone is no error.
func (w worker) deleteMember(ctx context.Context, s change.Step) error {
	name, group := w.names.With(s.Member), w.names.Group()
	return w.deleteAll(ctx, group.Resource(machineType, name), group.Resource(nicType, name+"-nic"),
		group.Resource("Microsoft.Compute/disks", name+"-etcd"), deploymentID(group, w.names.UnitDeployment(s.Member)))
}

func (w worker) deleteAll(ctx context.Context, ids ...azure.ID) error {
	for _, id := range ids {
		_, err := azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Delete, ID: id})
		if err != nil && !azure.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// scaleSet is the resource of a pool's scale set in a plan, nil for a pool of standalone machines.
func (w worker) scaleSet(p cluster.Plan, pool string) (azure.ID, *graph.Resource) {
	u := p.Graph.Unit(naming.PoolUnit(pool))
	if u == nil {
		return "", nil
	}
	for _, r := range u.Resources {
		if r.Type == scaleSetType {
			return emit.ID(p.Names, r.Resource, u.Unit), r.Resource
		}
	}
	return "", nil
}

// setModel gives new machines of a scale set another version. Those that run stay as they are.
func (w worker) setModel(ctx context.Context, s change.Step) error {
	p, err := w.at(s.Version, w.in.state.Generations())
	if err != nil {
		return err
	}
	return w.writeModel(ctx, p, s.Pool, func(tags, now map[string]string) {
		if now[naming.VersionTag] != s.Version || now[naming.RevisionTag] != s.Revision {
			tags[previousTag] = now[naming.VersionTag]
		}
		tags[rolloutTag] = fmt.Sprintf("%s=%d", s.Version, s.Count)
		setLimits(tags, s.Limits)
	})
}

// writeModel writes the model of a pool's scale set, from which Azure makes new machines, as a plan has it. It also writes
// the tags of the plan. The function mark edits these tags, and gets the tags that the scale set has now. Nothing else is
// written, because other programs write into the scale set, too.
func (w worker) writeModel(ctx context.Context, p cluster.Plan, pool string, mark func(tags, now map[string]string)) error {
	id, r := w.scaleSet(p, pool)
	if r == nil {
		return fmt.Errorf("pool %s has no scale set in the definition", pool)
	}
	now := w.in.state.resources[id.Key()].Tags
	tags := planned(now, r.Body, func(string) bool { return true })
	mark(tags, now)
	body := object{"tags": tags, "properties": object{"virtualMachineProfile": machineModel(r.Body)}}
	sku, err := w.skuOf(ctx, id)
	if err != nil {
		return err
	}
	if size := at(r.Body, "sku", "name"); sku["name"] != size {
		sku["name"] = size
		body["sku"] = sku
	}
	return deployer{w.Engine}.patch(ctx, id, body)
}

// planned returns the tags of a scale set, with those tags of its plan for which ours is true. It removes tags for the
// autoscaler that the plan does not have.
func planned(now map[string]string, body object, ours func(tag string) bool) map[string]string {
	tags := map[string]string{}
	for key, value := range now {
		if !units.ForAutoscaler(key) {
			tags[key] = value
		}
	}
	all, _ := body["tags"].(object)
	for key, value := range all {
		if ours(key) {
			tags[key] = fmt.Sprint(value)
		}
	}
	return tags
}

// machineModel is what a scale set may change of its machines.
func machineModel(set object) object {
	machine := func(path ...string) any {
		return at(set, append([]string{"properties", "virtualMachineProfile"}, path...)...)
	}
	return object{
		"osProfile": object{"customData": machine("osProfile", "customData"),
			"linuxConfiguration": machine("osProfile", "linuxConfiguration")},
		"storageProfile": object{"imageReference": machine("storageProfile", "imageReference"),
			"osDisk":    object{"diskSizeGB": machine("storageProfile", "osDisk", "diskSizeGB")},
			"dataDisks": machine("storageProfile", "dataDisks")},
	}
}

// skuOf reads the size and the number of a scale set's machines, which are written together.
func (w worker) skuOf(ctx context.Context, id azure.ID) (object, error) {
	doc, err := w.Azure.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var set struct {
		SKU object `json:"sku"`
	}
	return set.SKU, json.Unmarshal(doc, &set)
}

type object = map[string]any

// at is a value in a tree, nil if it is not there.
func at(tree any, path ...string) any {
	for _, key := range path {
		branch, _ := tree.(object)
		tree = branch[key]
	}
	return tree
}

func (e deployer) patch(ctx context.Context, id azure.ID, body object) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Patch, ID: id, Body: text, Unseen: true})
	return err
}

// grow makes machines and waits until their nodes are ready. If Azure has no room, the capacity becomes the number of machines
// that are there, so that Azure does not go on trying.
func (w worker) grow(ctx context.Context, s change.Step) error {
	p, err := w.at(w.in.lowestVersion(w.record), w.in.state.Generations())
	if err != nil {
		return err
	}
	id, r := w.scaleSet(p, s.Pool)
	if r == nil {
		if err := w.deployUnit(ctx, p, naming.PoolUnit(s.Pool)); err != nil {
			return err
		}
		return w.awaitPool(ctx, s)
	}
	if have := w.nodesOf(s.Pool); s.Count > have {
		if err := (deployer{w.Engine}).patch(ctx, id, object{"sku": object{"capacity": s.Count}}); err != nil {
			restored := w.restore(ctx, id, s.Pool)
			return w.retreat(ctx, s, errors.Join(fmt.Errorf("%d further machines: %w", s.Count-have, err), restored))
		}
	}
	return w.retreat(ctx, s, w.awaitPool(ctx, s))
}

// lowestVersion is the version of new standalone machines: that of the change, once all members have it.
func (in observation) lowestVersion(r *Record) string {
	for _, m := range in.Members {
		if m.Machine && m.Version != r.Definition.Cluster.Spec.Kubernetes.Version {
			return in.Version
		}
	}
	return r.Definition.Cluster.Spec.Kubernetes.Version
}

func (w worker) nodesOf(pool string) int {
	i := slices.IndexFunc(w.in.Pools, func(p change.Pool) bool { return p.Name == pool })
	if i < 0 {
		return 0
	}
	return len(w.in.Pools[i].Nodes)
}

// restore sets the capacity of a scale set to the number of its machines. A list may lack machines that were there before.
func (w worker) restore(ctx context.Context, id azure.ID, pool string) error {
	in, err := observer{w.Engine}.observe(ctx, w.names, false)
	if err != nil {
		return err
	}
	count := max(worker{in: in}.nodesOf(pool), w.nodesOf(pool))
	w.say("  pool %s stays at %d machines", pool, count)
	return deployer{w.Engine}.patch(ctx, id, object{"sku": object{"capacity": count}})
}

// awaitPool waits until the machines of a pool are ready nodes.
func (w worker) awaitPool(ctx context.Context, s change.Step) error {
	in, err := observer{w.Engine}.observe(ctx, w.names, false)
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
	return w.Workload.Await(ctx, w.waits.Join, func(nodes map[string]workload.Node) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return nodes[name].Ready })
	})
}

func (w worker) cordon(ctx context.Context, s change.Step) error {
	return w.Workload.Leave(ctx, w.waits.Drain.Settle, s.Names...)
}

// drain drains a node. If it fails, all nodes of the pool that were cordoned to go take pods again.
func (w worker) drain(ctx context.Context, s change.Step) error {
	err := w.Workload.Drain(ctx, s.Node, w.waits.Drain)
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
	return errors.Join(err, w.Workload.GiveBack(context.WithoutCancel(ctx), cordoned...))
}

// deleteNode deletes a machine by its id, and its node.
func (w worker) deleteNode(ctx context.Context, s change.Step) error {
	one, has := w.in.instances[s.Node]
	if !has {
		return fmt.Errorf("no machine has the name %s", s.Node)
	}
	if set := one.ID.Parent(); strings.EqualFold(set.Type(), scaleSetType) {
		body, err := json.Marshal(object{"instanceIds": []string{one.InstanceID}})
		if err != nil {
			return err
		}
		_, err = azure.Do(ctx, w.Azure, azure.Request{Verb: azure.Post, ID: set, Action: "delete", Body: body})
		if err != nil && !azure.IsNotFound(err) { // a process that died may have deleted it after the list was read
			return err
		}
	} else if err := w.deleteAll(ctx, one.ID, w.names.Group().Resource(nicType, one.ID.Name()+"-nic")); err != nil {
		return err
	}
	return w.Workload.Forget(ctx, s.Node)
}

// deletePool deletes what is left of a pool without machines.
func (w worker) deletePool(ctx context.Context, s change.Step) error {
	group := w.names.Group()
	return w.deleteAll(ctx, group.Resource(scaleSetType, w.names.With(s.Pool)),
		deploymentID(group, w.names.UnitDeployment(naming.PoolUnit(s.Pool))))
}
