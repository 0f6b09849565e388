// Package lock lets one process at a time change a cluster. Layer L3.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/pause"
)

// Lease is what a process holds. It holds for a minute after it was acquired or renewed.
type Lease interface {
	// Acquire takes the lease. If another process has the lease, Acquire returns that process.
	Acquire(ctx context.Context, holder string) (other string, err error)
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
}

// ErrHeld is in the chain of an error about another process that changes the cluster.
var ErrHeld = errors.New("another process changes the cluster: wait until it has ended")

// ErrUnlocked is in the chain of an error about a lock that could not be taken.
var ErrUnlocked = errors.New("the cluster could not be locked, so nothing was begun")

// renewal is the time between two renewals.
const renewal = dataplane.LockTime / 3

// Guard keeps other processes from changing a cluster.
type Guard struct {
	// Lease is nil for no guard.
	Lease Lease
	// Holder is the name of this process for other processes.
	Holder string
	// Say gets a line for each event, for people.
	Say func(format string, args ...any)
	// Every is the time between two looks at a lease of another process.
	Every time.Duration
	// WithoutRight lets a process change the cluster without a lease if it has no right to one.
	WithoutRight bool
}

// Do changes a cluster while no other process does. If the lease cannot be acquired, it changes nothing. Only a process without the right
// to a lease may change the cluster, if WithoutRight says so.
func (g Guard) Do(ctx context.Context, change func(context.Context) error) error {
	if g.Lease == nil {
		return change(ctx)
	}
	since, err := g.acquire(ctx)
	if err != nil {
		if errors.Is(err, ErrHeld) || ctx.Err() != nil {
			return err
		}
		if !g.WithoutRight || !errors.Is(err, dataplane.ErrNoRight) {
			return unlocked(err)
		}
		g.Say("others are not kept from changing the cluster at the same time: %v", err)
		return change(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.renew(ctx, since, cancel)
	}()
	err = change(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrHeld) {
		err = cause
	}
	cancel(nil)
	<-ended
	if errors.Is(err, ErrHeld) {
		return err
	}
	releasing, stop := context.WithTimeout(context.WithoutCancel(ctx), renewal)
	defer stop()
	if failed := g.Lease.Release(releasing); failed != nil {
		g.Say("the lock of the cluster stays for a minute: %v", failed)
	}
	return err
}

// unlocked is the error about a lock that could not be taken, with what to do next.
func unlocked(err error) error {
	next := "run the command again as soon as the storage account of the cluster answers"
	if errors.Is(err, dataplane.ErrNoRight) {
		next = "get the role Storage Blob Data Contributor for the container, or take --allow-unlocked while no other process changes " +
			"the cluster"
	}
	return fmt.Errorf("%w: %w: %s", ErrUnlocked, err, next)
}

// acquire takes the lease, and returns since when the process has it. A holder that has died keeps it for a minute at most.
func (g Guard) acquire(ctx context.Context) (since time.Time, err error) {
	said := false
	for deadline := time.Now().Add(dataplane.LockTime + renewal); ; {
		since = time.Now()
		other, err := g.Lease.Acquire(ctx, g.Holder)
		if err != nil || other == "" {
			return since, err
		}
		if time.Now().After(deadline) {
			return since, fmt.Errorf("%w: %s", ErrHeld, other)
		}
		if !said {
			g.Say("%s changes the cluster: waiting for a minute, in case it has died", other)
			said = true
		}
		if err := pause.For(ctx, g.Every); err != nil {
			return since, err
		}
	}
}

// renew keeps a lease, which began at a time, until ctx ends. It cancels the change if the lease is lost.
func (g Guard) renew(ctx context.Context, since time.Time, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for until := since.Add(dataplane.LockTime); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := g.renewOnce(ctx)
		switch {
		case err == nil:
			until = began.Add(dataplane.LockTime)
		case errors.Is(err, dataplane.ErrLost), time.Now().Add(renewal).After(until):
			cancel(fmt.Errorf("%w: the lock was lost: %w", ErrHeld, err))
			return
		}
	}
}

// renewOnce renews the lease. A request without an answer must not outlive the lease.
func (g Guard) renewOnce(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, renewal/2)
	defer stop()
	return g.Lease.Renew(ctx)
}
