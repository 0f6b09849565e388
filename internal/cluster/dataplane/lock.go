package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// lockBlob is the blob of the lock. The process that changes the cluster has its lease, and its text names that process.
const lockBlob = "lock"

// LockTime is how long a lock holds without a renewal.
const LockTime = time.Minute

// ErrLost is in the chain of an error about a lock that another process has.
var ErrLost = errors.New("the lock of the cluster is another process's")

// ErrNoRight is in the chain of an error about a lock that the caller has no right to.
var ErrNoRight = errors.New("the caller has no right to lock the cluster")

// Lock is the lock of a cluster's changes: the lease of a blob in its container.
type Lock struct {
	Container

	id string
}

// Acquire takes the lock for a holder. If another process has the lock, Acquire returns that process.
func (l *Lock) Acquire(ctx context.Context, holder string) (other string, err error) {
	id := uuid.NewString()
	acquire := func() error {
		return l.lease(ctx, "acquire", "x-ms-proposed-lease-id", id, "x-ms-lease-duration", strconv.Itoa(int(LockTime.Seconds())))
	}
	err = acquire()
	if errors.Is(err, errAbsent) {
		if err = l.create(ctx); err == nil {
			err = acquire()
		}
	}
	if errors.Is(err, ErrLost) {
		other, err = l.text(ctx, lockBlob)
		if err != nil || other == "" { // whoever it is, the lock is taken
			other = "another process"
		}
		return other, nil
	}
	if err != nil {
		return "", judged(err)
	}
	l.id = id
	if _, err = l.send(ctx, http.MethodPut, l.URL+"/"+lockBlob, holder, "x-ms-lease-id", id); err != nil {
		return "", errors.Join(judged(err), l.Release(ctx))
	}
	return "", nil
}

// judged adds [ErrNoRight] to the error of a caller without the right. Storage answers with the same status if it does not know the caller.
func judged(err error) error {
	status, ok := errors.AsType[*StatusError](err)
	if ok && status.Status == http.StatusForbidden && slices.Contains(noRight, status.Code) {
		return fmt.Errorf("%w: %w", ErrNoRight, err)
	}
	return err
}

// noRight are storage's codes for a caller with roles or an address that do not allow a request.
var noRight = []string{"AuthorizationPermissionMismatch", "AuthorizationFailure"}

// create makes the blob of the lock, unless another process does at the same time.
func (l *Lock) create(ctx context.Context) error {
	_, err := l.send(ctx, http.MethodPut, l.URL+"/"+lockBlob, "", "If-None-Match", "*")
	if refused(err) {
		return nil
	}
	return err
}

// Renew keeps the lock.
func (l *Lock) Renew(ctx context.Context) error { return l.lease(ctx, "renew", "x-ms-lease-id", l.id) }

// Release gives the lock back.
func (l *Lock) Release(ctx context.Context) error {
	return l.lease(ctx, "release", "x-ms-lease-id", l.id)
}

// lease acts on the lease of the blob.
func (l *Lock) lease(ctx context.Context, action string, headers ...string) error {
	_, err := l.send(ctx, http.MethodPut, l.URL+"/"+lockBlob+"?comp=lease", "", append(headers, "x-ms-lease-action", action)...)
	if refused(err) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// refused reports whether the state of a blob is not the one that a request needs.
func refused(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && (status.Status == http.StatusConflict || status.Status == http.StatusPreconditionFailed)
}
