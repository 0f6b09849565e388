package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kaz/internal/cluster"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
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
			return fmt.Errorf("%w (since %s)", record.ErrOpen, open.Began)
		}
		return e.carryOn(ctx, naming.Of(open.Definition.Cluster), *open)
	}
	r, err := e.newRestore(ctx, n, from)
	if err != nil {
		return err
	}
	if e.Unsigned { // machines take a signed one only
		if err := e.Backups.Adopt(ctx, r.Restore.From); err != nil {
			return err
		}
	}
	r.Began = e.Clock().UTC().Format(time.RFC3339)
	if err := e.WriteChange(ctx, n, r); err != nil {
		return err
	}
	return e.carryOn(ctx, naming.Of(r.Definition.Cluster), r)
}

// verify refuses a backup that may have been planted in the container, unless an unsigned one is asked for.
func (e *Engine) verify(ctx context.Context, from string) error {
	err := e.Backups.Verify(ctx, from)
	if !errors.Is(err, dataplane.ErrUnsigned) {
		return err
	}
	if !e.Unsigned {
		return fmt.Errorf("%w: take another one, or --allow-unsigned if you know where it comes from, as from an earlier kaz", err)
	}
	e.Sayf("%v: it is taken nevertheless", err)
	return nil
}

// RestoreSteps are the steps that a restore would take until the other members join.
func (e *Engine) RestoreSteps(ctx context.Context, n naming.Names, from string) ([]change.Step, error) {
	r, err := e.newRestore(ctx, n, from)
	if err != nil {
		return nil, err
	}
	state, err := e.Read(ctx, n)
	if err != nil {
		return nil, err
	}
	return r.Restore.Plan(change.Loss{Left: state.Members(n)})
}

// newRestore checks that a restore is possible, and that the control plane is lost.
func (e *Engine) newRestore(ctx context.Context, n naming.Names, from string) (record.Change, error) {
	if e.Workload == nil {
		return record.Change{}, errInside
	}
	if e.Backups == nil {
		return record.Change{}, errNoBackups
	}
	state, err := e.Read(ctx, n)
	if err != nil {
		return record.Change{}, err
	}
	if state.Definition == nil {
		return record.Change{}, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	asked, cancel := context.WithTimeout(ctx, mostSilent)
	defer cancel()
	if _, err := e.Workload.Nodes(asked); err == nil {
		return record.Change{}, errAnswers
	}
	if from == "" {
		if from, err = e.Backups.Latest(ctx); err != nil {
			return record.Change{}, err
		}
	}
	if from == "" {
		return record.Change{}, fmt.Errorf("cluster %s has no backup of etcd: want --from with the name of one", n.Cluster)
	}
	has, err := e.Backups.Has(ctx, from)
	if err != nil {
		return record.Change{}, err
	}
	if !has {
		return record.Change{}, fmt.Errorf("--from %q: there is no such backup in the container of cluster %s: want a name such as "+
			"etcd/20260102T030405Z-1234.db", from, n.Cluster)
	}
	if err := e.verify(ctx, from); err != nil {
		return record.Change{}, err
	}
	if state.Definition.Encrypts() {
		rotation := e.rotation(naming.Of(state.Definition.Cluster))
		rotation.Encrypted = true
		if err := rotation.Readable(ctx, from); err != nil {
			return record.Change{}, err
		}
	}
	restore := change.NewRestore(from, state.Members(n))
	return record.Change{Definition: *state.Definition, Restore: &restore}, nil
}

// restore carries out the steps of a restore, and then ends it. From then on the record is an ordinary change, with which the
// other members join.
func (e *Engine) restore(ctx context.Context, n naming.Names, r *record.Change) error {
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
			return e.WriteChange(ctx, n, *r)
		}
		e.Sayf("%s", step)
		if err := e.restoreStep(ctx, n, r, state, *step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
}

// loss is what there is of a control plane that is restored.
func (e *Engine) loss(ctx context.Context, n naming.Names, r change.Restore) (change.Loss, record.State, error) {
	state, err := e.Read(ctx, n)
	for err == nil && state.Main.Running() { // of a process that died
		if err = pause.For(ctx, e.Every()); err == nil {
			state, err = e.Read(ctx, n)
		}
	}
	if err != nil {
		return change.Loss{}, state, err
	}
	marked, err := e.Backups.Marked(ctx)
	l := change.Loss{Left: state.Members(n), Marked: marked == r.From}
	unit, has := state.Units[r.Founder()]
	machine, there := state.Resources[n.Group().Resource(record.MachineType, n.With(r.Founder())).Key()]
	l.Founded = has && there && machine.Tags[naming.ClusterTag] == n.Cluster && unit.Properties.ProvisioningState == "Succeeded"
	return l, state, err
}

func (e *Engine) restoreStep(ctx context.Context, n naming.Names, r *record.Change, state record.State, s change.Step) error {
	w := e.worker(n, r, inspect.Observation{State: state})
	switch s.Action {
	case change.DeleteMember:
		return w.DeleteMember(ctx, s)
	case change.MarkBackup:
		return e.Backups.Mark(ctx, s.Backup)
	case change.Found:
		p, err := cluster.WithMembers(r.Definition, map[int]int{0: r.Restore.Generation})
		if err != nil {
			return err
		}
		return w.DeployUnit(ctx, p, s.Member)
	case change.ReleaseBackup:
		if err := w.AwaitFounder(ctx, n.With(r.Restore.Founder())); err != nil {
			return err
		}
		return e.Backups.Release(ctx)
	}
	return fmt.Errorf("no action %q", s.Action)
}
