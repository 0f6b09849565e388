package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
	"kaz/internal/cluster/step"
	"kaz/internal/pause"
)

// errInside says why a change needs the API server.
var errInside = errors.New("the change drains nodes, so it needs the cluster's API server: want --kubeconfig")

// Steps are the steps that a change would take.
func (e *Engine) Steps(ctx context.Context, r record.Change) ([]change.Step, error) {
	n := naming.Of(r.Definition.Cluster)
	in, err := e.look(ctx, n, r)
	if err != nil {
		return nil, err
	}
	r = r.WithSecrets(in.State.Definition)
	if err := e.used(ctx, in, r); err != nil {
		return nil, err
	}
	steps, err := change.Plan(in.Cluster, r.Target())
	if err != nil {
		return nil, err
	}
	more, err := e.manifests(ctx, *in.State.Definition, r)
	return append(steps, more...), err
}

// manifests are the steps about the objects of add-ons and extensions, none if the cluster has them.
func (e *Engine) manifests(ctx context.Context, old definition.Definition, r record.Change) ([]change.Step, error) {
	before, now := boot.Manifests(old), boot.Manifests(r.Definition)
	same := slices.Equal(before, now)
	if same && !r.Manifests {
		return nil, nil
	}
	applied, err := e.Workload.Applied(ctx)
	if err != nil || same && applied.Has(now) {
		return nil, err
	}
	steps := []change.Step{{Action: change.ApplyManifests}}
	gone, err := applied.Gone(before, now)
	if len(gone) > 0 {
		steps = append(steps, change.Step{Action: change.PruneObjects, Names: gone})
	}
	return steps, err
}

// used refuses an upgrade that removes APIs that clients use.
func (e *Engine) used(ctx context.Context, in inspect.Observation, r record.Change) error {
	version := r.Definition.Cluster.Spec.Kubernetes.Version
	if r.AllowRemoved || in.Version == version {
		return nil
	}
	all, err := e.Workload.Removed(ctx, version)
	if err != nil {
		return fmt.Errorf("whether clients use what version %s removes: %w: --allow-removed-apis goes on without this check", version, err)
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("version %s has no longer what clients have used since the API server started: change those clients, or allow it "+
		"with --allow-removed-apis:\n%s", version, strings.Join(all, "\n"))
}

// Rotation is the change that replaces every member, so that all certificates of the control plane are new.
func (e *Engine) Rotation(ctx context.Context, n naming.Names) (record.Change, error) {
	r, state, err := e.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	for index, generation := range state.Generations() {
		r.Replace = append(r.Replace, naming.MemberUnit(index, generation))
	}
	slices.Sort(r.Replace)
	return r, nil
}

// look observes a cluster for a change. It asks etcd only if the control plane is to change.
func (e *Engine) look(ctx context.Context, n naming.Names, r record.Change) (inspect.Observation, error) {
	if e.Workload == nil {
		return inspect.Observation{}, errInside
	}
	in, err := e.observeFor(ctx, n, r, false)
	for err == nil && in.State.Main.Running() { // of a process that died
		if err = pause.For(ctx, e.Every()); err == nil {
			in, err = e.observeFor(ctx, n, r, false)
		}
	}
	if err != nil {
		return in, rotate.Untrusted(r.Definition, fromOutside(r.Definition, err))
	}
	r = r.WithSecrets(in.State.Definition)
	if step, stuck := change.Next(in.Cluster, r.Target()); e.Etcd != nil && (stuck != nil || step.OfControlPlane()) {
		in, err = e.lookAtEtcd(ctx, n, r)
	}
	if err != nil {
		return in, err
	}
	in.Saved = r.Saved != ""
	in.Stale, err = e.Workload.Stale(ctx, boot.Programs(r.Definition.Cluster))
	return in, err
}

// lookAtEtcd observes a cluster with its etcd. If no member answers, or too few do, it looks again for a while.
func (e *Engine) lookAtEtcd(ctx context.Context, n naming.Names, r record.Change) (inspect.Observation, error) {
	for deadline := e.Clock().Add(cmp.Or(e.Patience.Etcd, time.Minute)); ; {
		in, err := e.observeFor(ctx, n, r, true)
		fault := err
		if err == nil {
			_, fault = change.Next(in.Cluster, r.Target())
		}
		passes := errors.Is(fault, inspect.ErrSilentEtcd) || errors.Is(fault, change.ErrNoMajority)
		if !passes || e.Clock().After(deadline) {
			return in, err
		}
		e.Sayf("  %v: looking again", fault)
		if err := pause.For(ctx, e.Every()); err != nil {
			return in, err
		}
	}
}

// fromOutside adds a hint to an error if the API server does not answer and can only be reached from its own network.
func fromOutside(d definition.Definition, err error) error {
	unreached, ok := errors.AsType[*url.Error](err)
	if !ok || d.Cluster.Spec.Network.APIServer.Access != "Internal" {
		return err
	}
	return fmt.Errorf("%w: the API server %s is reached from its network only (spec.network.apiServer.access: Internal): use a machine "+
		"there, or --kubeconfig with a server that leads there", err, unreached.URL)
}

// Change brings the machines of a cluster to a record's definition. It records the change first, and reads the state of the
// cluster before each step. So [Engine.Resume] can go on after a stop at any moment.
func (e *Engine) Change(ctx context.Context, r record.Change) error {
	return e.guard().Do(ctx, func(ctx context.Context) error { return e.change(ctx, r) })
}

func (e *Engine) change(ctx context.Context, r record.Change) error {
	n := naming.Of(r.Definition.Cluster)
	open, err := e.Open(ctx, n)
	if err != nil {
		return err
	}
	if open != nil && !open.Same(r.WithSecrets(&open.Definition)) {
		return fmt.Errorf("%w (since %s)", record.ErrOpen, open.Began)
	}
	if open != nil {
		return e.carryOn(ctx, n, *open)
	}
	in, err := e.look(ctx, n, r)
	if err != nil {
		return err
	}
	r = r.WithSecrets(in.State.Definition)
	if err := deploy.Fixed(*in.State.Definition, r.Definition); err != nil {
		return err
	}
	if err := e.used(ctx, in, r); err != nil {
		return err
	}
	steps, err := change.Plan(in.Cluster, r.Target())
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return e.settle(ctx, n, r)
	}
	r.Began = e.Clock().UTC().Format(time.RFC3339)
	if err := e.WriteChange(ctx, n, r); err != nil {
		return err
	}
	return e.carryOn(ctx, n, r)
}

// Resume goes on with the change that has begun. It returns false if there is none.
func (e *Engine) Resume(ctx context.Context, n naming.Names) (found bool, err error) {
	if r, err := e.Open(ctx, n); err != nil || r == nil {
		return false, err
	}
	return true, e.guard().Do(ctx, func(ctx context.Context) error {
		r, err := e.Open(ctx, n)
		if err != nil || r == nil { // another process has ended it
			return err
		}
		return e.carryOn(ctx, naming.Of(r.Definition.Cluster), *r)
	})
}

// mostRepeats is how often a step that changes nothing is tried.
const mostRepeats = 3

func (e *Engine) carryOn(ctx context.Context, n naming.Names, r record.Change) error {
	if r.Restore != nil {
		if err := e.restore(ctx, n, &r); err != nil {
			return err
		}
	}
	progress := e.newProgress(r)
	for last, repeats := "", 0; ; {
		in, err := e.look(ctx, n, r)
		if err != nil {
			return err
		}
		step, err := change.Next(in.Cluster, r.Target())
		if err != nil {
			return err
		}
		if step == nil {
			return e.settle(ctx, n, r)
		}
		if repeats++; step.String() != last {
			last, repeats = step.String(), 0
		}
		if repeats == mostRepeats {
			return fmt.Errorf("%s: it was done %d times and changed nothing", step, repeats)
		}
		begins := e.Clock()
		e.Sayf("%s", progress.next(in.Cluster, r.Target(), *step, begins))
		if err := e.perform(ctx, n, &r, in, *step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		progress.done(*step, e.Clock().Sub(begins))
	}
}

// deployDefinition deploys and records a definition without the machines.
func (e *Engine) deployDefinition(ctx context.Context, state record.State, d definition.Definition) error {
	p, err := cluster.WithMembers(d, state.Generations())
	if err == nil {
		err = e.Redeploy(ctx, p)
	}
	return err
}

// settle ends a change. It applies the manifests of add-ons and extensions, and deploys and records the definition without
// the machines. Then it gives kube-proxy and CoreDNS the images of the version, and deletes the record of the change.
func (e *Engine) settle(ctx context.Context, n naming.Names, r record.Change) error {
	state, err := e.Read(ctx, n)
	if err != nil {
		return err
	}
	steps, err := e.manifests(ctx, *state.Definition, r)
	if err != nil {
		return err
	}
	if len(steps) > 0 {
		if err := e.Workload.Apply(ctx, boot.Manifests(*state.Definition), boot.Manifests(r.Definition)); err != nil {
			return err
		}
	}
	if err := e.deployDefinition(ctx, state, r.Definition); err != nil {
		return err
	}
	version := r.Definition.Cluster.Spec.Kubernetes.Version
	if err := e.Workload.SetProxy(ctx, version); err != nil {
		return err
	}
	if dns := change.DNS(version); dns != "" {
		newer := func(tag string) bool { return change.Older(dns, tag) }
		if err := e.Workload.SetDNS(ctx, dns, newer); err != nil {
			return err
		}
	} else {
		e.Sayf("CoreDNS keeps its image: that of version %s is not known", version)
	}
	if err := e.rotation(n).Settle(ctx, r.Definition); err != nil {
		return err
	}
	if err := e.Close(ctx, n); err != nil {
		return err
	}
	e.rotation(n).SayNext(r.Authorities)
	return nil
}

// perform carries out one step.
func (e *Engine) perform(ctx context.Context, n naming.Names, r *record.Change, in inspect.Observation, s change.Step) error {
	w := e.worker(n, r, in)
	actions := w.Steps()
	rotation := e.rotation(n)
	rotation.Join, rotation.Drain = w.Waits.Join, w.Waits.Drain.Timeout
	rotation.Encrypted = in.State.Definition.Encrypted
	rotation.Record = func(ctx context.Context) error { return e.deployDefinition(ctx, in.State, r.Definition) }
	maps.Copy(actions, rotation.Steps())
	do, known := actions[s.Action]
	if !known {
		return fmt.Errorf("no action %q", s.Action)
	}
	return do(ctx, s)
}

func (e *Engine) inspector() inspect.Inspector {
	return inspect.Inspector{Store: e.Store, Workload: e.Workload, Etcd: e.Etcd, Say: e.Sayf}
}

func (e *Engine) worker(n naming.Names, r *record.Change, in inspect.Observation) step.Worker {
	return step.New(e.Deployer, e.inspector(), n, r, in, e.Patience)
}
