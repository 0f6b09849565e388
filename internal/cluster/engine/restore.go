package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kaz/internal/cluster"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/workload"
	"kaz/internal/pause"
)

// Backups are the backups of etcd in the container of a cluster.
type Backups interface {
	// Latest is the name of the newest backup, "" for none.
	Latest(ctx context.Context) (string, error)
	// Has reports whether there is a backup of this name.
	Has(ctx context.Context, name string) (bool, error)
	// Verify checks that the cluster made a backup. Without a valid signature its error is [dataplane.ErrUnsigned].
	Verify(ctx context.Context, name string) error
	// Adopt signs a backup as it is, although the cluster may not have made it.
	Adopt(ctx context.Context, name string) error
	// Marked is the name of the backup with which the next first member begins, "" for none.
	Marked(ctx context.Context) (string, error)
	// Mark marks a backup, after the election of the first member is open again.
	Mark(ctx context.Context, name string) error
	// Release takes the mark away.
	Release(ctx context.Context) error
}

var (
	errNoBackups = errors.New("the restore needs the backups in the cluster's storage account: want the right to read and write its blobs")
	errAnswers   = errors.New("the API server answers, so the control plane is not lost: replace members with kaz cluster repair")
)

// mostSilent is how long an API server may take to answer before it counts as lost.
const mostSilent = 20 * time.Second

// Restore brings the control plane of a cluster back after the loss of every member, from a backup. With from "" it takes the
// newest backup. It deletes what is left of the members, makes a new first member from the backup, and then the other
// members. Like [Engine.Change] it records itself first, so that it goes on after a stop at any moment.
func (e *Engine) Restore(ctx context.Context, n naming.Names, from string) error {
	return e.guard().Do(ctx, func(ctx context.Context) error { return e.restoreFrom(ctx, n, from) })
}

func (e *Engine) restoreFrom(ctx context.Context, n naming.Names, from string) error {
	open, err := e.Open(ctx, n)
	if err != nil {
		return err
	}
	if open != nil {
		if open.Restore == nil || from != "" && from != open.Restore.From {
			return fmt.Errorf("%w (since %s)", ErrOpen, open.Began)
		}
		return changer{e}.carryOn(ctx, naming.Of(open.Definition.Cluster), *open)
	}
	r, err := restorer{e}.newRestore(ctx, n, from)
	if err != nil {
		return err
	}
	if e.Unsigned { // machines take a signed one only
		if err := e.Backups.Adopt(ctx, r.Restore.From); err != nil {
			return err
		}
	}
	r.Began = e.now().UTC().Format(time.RFC3339)
	if err := e.writeRecord(ctx, n, r); err != nil {
		return err
	}
	return changer{e}.carryOn(ctx, naming.Of(r.Definition.Cluster), r)
}

// verify refuses a backup that may have been planted in the container, unless an unsigned one is asked for.
func (e restorer) verify(ctx context.Context, from string) error {
	err := e.Backups.Verify(ctx, from)
	if !errors.Is(err, dataplane.ErrUnsigned) {
		return err
	}
	if !e.Unsigned {
		return fmt.Errorf("%w: take another one, or --allow-unsigned if you know where it comes from, as from an earlier kaz", err)
	}
	e.say("%v: it is taken nevertheless", err)
	return nil
}

// RestoreSteps are the steps that a restore would take until the other members join.
func (e *Engine) RestoreSteps(ctx context.Context, n naming.Names, from string) ([]change.Step, error) {
	r, err := restorer{e}.newRestore(ctx, n, from)
	if err != nil {
		return nil, err
	}
	state, err := e.Read(ctx, n)
	if err != nil {
		return nil, err
	}
	return r.Restore.Plan(change.Loss{Left: state.members(n)})
}

// restorer carries out restores.
type restorer struct{ *Engine }

// newRestore checks that a restore is possible, and that the control plane is lost.
func (e restorer) newRestore(ctx context.Context, n naming.Names, from string) (Record, error) {
	if e.Workload == nil {
		return Record{}, errInside
	}
	if e.Backups == nil {
		return Record{}, errNoBackups
	}
	state, err := e.Read(ctx, n)
	if err != nil {
		return Record{}, err
	}
	if state.Definition == nil {
		return Record{}, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	asked, cancel := context.WithTimeout(ctx, mostSilent)
	defer cancel()
	if _, err := e.Workload.Nodes(asked); err == nil {
		return Record{}, errAnswers
	}
	if from == "" {
		if from, err = e.Backups.Latest(ctx); err != nil {
			return Record{}, err
		}
	}
	if from == "" {
		return Record{}, fmt.Errorf("cluster %s has no backup of etcd: want --from with the name of one", n.Cluster)
	}
	has, err := e.Backups.Has(ctx, from)
	if err != nil {
		return Record{}, err
	}
	if !has {
		return Record{}, fmt.Errorf("--from %q: there is no such backup in the container of cluster %s: want a name such as "+
			"etcd/20260102T030405Z-1234.db", from, n.Cluster)
	}
	if err := e.verify(ctx, from); err != nil {
		return Record{}, err
	}
	if state.Definition.Encrypts() {
		rotation := e.rotation(naming.Of(state.Definition.Cluster))
		rotation.Encrypted = true
		if err := rotation.Readable(ctx, from); err != nil {
			return Record{}, err
		}
	}
	restore := change.NewRestore(from, state.members(n))
	return Record{Definition: *state.Definition, Restore: &restore}, nil
}

// members are the members of the control plane of which something is left.
func (s State) members(n naming.Names) []string {
	all := map[string]bool{}
	add := func(unit string) {
		if _, _, ok := naming.MemberSlot(unit); ok {
			all[unit] = true
		}
	}
	for unit := range s.units {
		add(unit)
	}
	for _, r := range s.resources {
		if r.Tags[naming.ClusterTag] == n.Cluster {
			add(r.Tags[naming.UnitTag])
		}
	}
	var names []string
	for unit := range all {
		names = append(names, unit)
	}
	slices.Sort(names)
	return names
}

// restore carries out the steps of a restore, and then ends it. From then on the record is an ordinary change, with which the
// other members join.
func (e restorer) restore(ctx context.Context, n naming.Names, r *Record) error {
	if e.Backups == nil {
		return errNoBackups
	}
	for {
		l, state, err := e.loss(ctx, n, *r.Restore)
		if err != nil {
			return err
		}
		step := r.Restore.Next(l)
		if step == nil {
			r.Restore = nil
			return e.writeRecord(ctx, n, *r)
		}
		e.say("%s", step)
		if err := e.restoreStep(ctx, n, r, state, *step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
}

// loss is what there is of a control plane that is restored.
func (e restorer) loss(ctx context.Context, n naming.Names, r change.Restore) (change.Loss, State, error) {
	state, err := e.Read(ctx, n)
	for err == nil && state.Main.running() { // of a process that died
		if err = pause.For(ctx, e.every()); err == nil {
			state, err = e.Read(ctx, n)
		}
	}
	if err != nil {
		return change.Loss{}, state, err
	}
	marked, err := e.Backups.Marked(ctx)
	l := change.Loss{Left: state.members(n), Marked: marked == r.From}
	unit, has := state.units[r.Founder()]
	machine, there := state.resources[n.Group().Resource(machineType, n.With(r.Founder())).Key()]
	l.Founded = has && there && machine.Tags[naming.ClusterTag] == n.Cluster && unit.Properties.ProvisioningState == "Succeeded"
	return l, state, err
}

func (e restorer) restoreStep(ctx context.Context, n naming.Names, r *Record, state State, s change.Step) error {
	w := changer(e).worker(n, r, observation{state: state})
	switch s.Action {
	case change.DeleteMember:
		return w.deleteMember(ctx, s)
	case change.MarkBackup:
		return e.Backups.Mark(ctx, s.Backup)
	case change.Found:
		p, err := cluster.WithMembers(r.Definition, map[int]int{0: r.Restore.Generation})
		if err != nil {
			return err
		}
		return w.deployUnit(ctx, p, s.Member)
	case change.ReleaseBackup:
		if err := w.awaitFounder(ctx, n.With(r.Restore.Founder())); err != nil {
			return err
		}
		return e.Backups.Release(ctx)
	}
	return fmt.Errorf("no action %q", s.Action)
}

// awaitFounder waits until the API server of the new first member answers. Before that, nothing can be asked.
func (w worker) awaitFounder(ctx context.Context, name string) error {
	late, cancel := context.WithTimeout(ctx, w.waits.Join)
	defer cancel()
	for {
		err := w.Workload.Await(late, w.waits.Join, func(nodes map[string]workload.Node) []string {
			if n := nodes[name]; n.Ready && n.APIServer {
				return nil
			}
			return []string{name}
		})
		if _, notReady := errors.AsType[*workload.NotReadyError](err); err == nil || notReady {
			return err
		}
		if stopped := pause.For(late, w.every()); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}
