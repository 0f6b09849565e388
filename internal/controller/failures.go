package controller

import (
	"errors"
	"slices"
	"time"

	"kaz/internal/azure"
)

// Lasting is implemented by errors of Kubernetes objects that a user has to change.
type Lasting interface {
	error
	Lasting() bool
}

// IsLasting reports whether a user has to change something before an error goes away.
func IsLasting(err error) bool {
	l, ok := errors.AsType[Lasting](err)
	lasting := []azure.Kind{azure.Invalid, azure.Denied, azure.Quota, azure.InUse, azure.NotFound, azure.Exists}
	return ok && l.Lasting() || slices.Contains(lasting, azure.KindOf(err))
}

// Delay is how long to wait after a number of failures in a row: doubled with each further one up
// to a limit. Nothing is tried before the time that Azure asked for.
func Delay(err error, failures int) time.Duration {
	wait, most := 5*time.Second, 5*time.Minute // for what passes by itself
	switch {
	case IsLasting(err):
		wait, most = 30*time.Second, 15*time.Minute
	case azure.KindOf(err) == azure.Busy: // another operation, maybe of kaz itself, will have ended
		most = time.Minute
	}
	for ; failures > 1 && wait < most; failures-- {
		wait = min(2*wait, most)
	}
	return max(wait, retryAfter(err))
}

// Beat is how long it is, so long after a beginning that many keys share, until a multiple of a
// wait, and not before the time that Azure asked for: keys that wait for the same thing are tried
// together, and one write serves them all.
func Beat(since, wait time.Duration, err error) time.Duration {
	asked := retryAfter(err)
	return asked + wait - (since+asked)%wait
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*azure.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Deduplicator keeps the same from being reported again while it lasts, for one object or for all.
// Its zero value has reported nothing. It is for one goroutine at a time.
type Deduplicator[T comparable] struct{ standing map[T]bool }

// New are those of what is wrong now that were not reported yet, each once. What goes away and comes
// back is new again.
func (d *Deduplicator[T]) New(now []T) []T {
	var fresh []T
	standing := make(map[T]bool, len(now))
	for _, one := range now {
		if !d.standing[one] && !standing[one] {
			fresh = append(fresh, one)
		}
		standing[one] = true
	}
	d.standing = standing
	return fresh
}

// quietFor is for how long Azure may be busy before that is reported: most of what it is busy with
// is over by then, and no user has to do anything.
const quietFor = time.Minute

// BusyFilter holds back that Azure is busy, unless it is so for long: then it is reported once. It is
// for one thing that is tried again and again.
type BusyFilter struct {
	since    time.Time // the first time in a row that Azure was busy, zero for never
	reported bool
}

// Passes reports whether a failure is to be reported.
func (f *BusyFilter) Passes(err error) bool {
	if azure.KindOf(err) != azure.Busy {
		*f = BusyFilter{}
		return true
	}
	if f.since.IsZero() {
		f.since = time.Now()
	}
	passes := !f.reported && time.Since(f.since) >= quietFor
	f.reported = f.reported || passes
	return passes
}

// Holds reports whether none of the failures so far was reported.
func (f *BusyFilter) Holds() bool { return !f.since.IsZero() && !f.reported }
