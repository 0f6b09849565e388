package controller

import (
	"time"

	"kaz/internal/azure"
)

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

// Reset has everything reported again: the object is another one by now.
func (d *Deduplicator[T]) Reset() { d.standing = nil }

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
	if f.reported || time.Since(f.since) < quietFor {
		return false
	}
	f.reported = true
	return true
}

// Holds reports whether none of the failures so far was reported.
func (f *BusyFilter) Holds() bool { return !f.since.IsZero() && !f.reported }
