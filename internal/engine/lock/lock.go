// Package lock lets one process at a time change a cluster. Layer L3.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kaz/internal/engine/dataplane"
	"kaz/internal/engine/workload"
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
}

// Do changes a cluster while no other process does. Without the right to read and write blobs it warns, and changes the
// cluster without a lease.
func (g Guard) Do(ctx context.Context, change func(context.Context) error) error {
	if g.Lease == nil {
		return change(ctx)
	}
	if err := g.acquire(ctx); err != nil {
		if errors.Is(err, ErrHeld) || ctx.Err() != nil {
			return err
		}
		g.Say("others are not kept from changing the cluster at the same time: %v", err)
		return change(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.renew(ctx, cancel)
	}()
	err := change(ctx)
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

// acquire takes the lease. A holder that has died keeps it for a minute at most.
func (g Guard) acquire(ctx context.Context) error {
	said := false
	for deadline := time.Now().Add(dataplane.LockTime + renewal); ; {
		other, err := g.Lease.Acquire(ctx, g.Holder)
		if err != nil || other == "" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s", ErrHeld, other)
		}
		if !said {
			g.Say("%s changes the cluster: waiting for a minute, in case it has died", other)
			said = true
		}
		if err := workload.Pause(ctx, g.Every); err != nil {
			return err
		}
	}
}

// renew keeps the lease until ctx ends. It cancels the change if the lease is lost.
func (g Guard) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for until := time.Now().Add(dataplane.LockTime); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := g.Lease.Renew(ctx)
		switch {
		case err == nil:
			until = began.Add(dataplane.LockTime)
		case errors.Is(err, dataplane.ErrLost), time.Now().Add(renewal).After(until):
			cancel(fmt.Errorf("%w: the lock was lost: %w", ErrHeld, err))
			return
		}
	}
}
