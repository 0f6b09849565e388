package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kaz/internal/engine/dataplane"
)

// Lock keeps two processes from changing a cluster at the same time. It holds for a minute after it was acquired or renewed.
type Lock interface {
	// Acquire takes the lock. If another process has it, it returns that one.
	Acquire(ctx context.Context, holder string) (other string, err error)
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
}

// ErrHeld is in the chain of an error about another process that changes the cluster.
var ErrHeld = errors.New("another process changes the cluster: wait until it has ended")

// renewal is the time between two renewals of a lock.
const renewal = dataplane.LockTime / 3

// locked changes a cluster while no other process does. Without the right to read and write blobs it says so, and changes the cluster
// without a lock.
func (e *Engine) locked(ctx context.Context, change func(context.Context) error) error {
	if e.Lock == nil {
		return change(ctx)
	}
	if err := e.acquire(ctx); err != nil {
		if errors.Is(err, ErrHeld) || ctx.Err() != nil {
			return err
		}
		e.say("others are not kept from changing the cluster at the same time: %v", err)
		return change(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.renew(ctx, cancel)
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
	if failed := e.Lock.Release(releasing); failed != nil {
		e.say("the lock of the cluster stays for a minute: %v", failed)
	}
	return err
}

// acquire takes the lock. A holder that has died keeps it for a minute at most.
func (e *Engine) acquire(ctx context.Context) error {
	said := false
	for deadline := e.now().Add(dataplane.LockTime + renewal); ; {
		other, err := e.Lock.Acquire(ctx, e.Holder)
		if err != nil || other == "" {
			return err
		}
		if e.now().After(deadline) {
			return fmt.Errorf("%w: %s", ErrHeld, other)
		}
		if !said {
			e.say("%s changes the cluster: waiting for a minute, in case it has died", other)
			said = true
		}
		if err := wait(ctx, e.every()); err != nil {
			return err
		}
	}
}

// renew keeps the lock until ctx ends, and ends it if the lock is lost.
func (e *Engine) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for until := e.now().Add(dataplane.LockTime); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := e.now()
		err := e.Lock.Renew(ctx)
		switch {
		case err == nil:
			until = began.Add(dataplane.LockTime)
		case errors.Is(err, dataplane.ErrLost), e.now().Add(renewal).After(until):
			cancel(fmt.Errorf("%w: the lock was lost: %w", ErrHeld, err))
			return
		}
	}
}
