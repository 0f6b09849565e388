// Package lease has the leases of blobs, containers and shares: their states, the actions that change them, and which requests
// they refuse. It is pure. Layer L2.
//
// The rules are from the pages "Lease Blob" and "Lease Container" of Azure's REST reference, from version 2012-02-12 on.
package lease

import (
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
)

// State is the state of a lease, as headers spell it.
type State string

// States of a lease. Leased and Breaking refuse requests without the ID of the lease.
const (
	Available State = "available"
	Leased    State = "leased"
	Expired   State = "expired"
	Breaking  State = "breaking"
	Broken    State = "broken"
)

// Infinite is the duration of a lease that never expires.
const Infinite = -1

// Lease is the lease of a resource. The zero value is the lease of a resource that was never leased. A lease that expired or was
// broken keeps its ID, so that its holder can renew or release it.
type Lease struct {
	ID string
	// Seconds is the duration, or Infinite.
	Seconds int
	// Ends is when the lease expires, or when its break period ends. Zero for never.
	Ends time.Time
	// Breaks says that the lease has been broken.
	Breaks bool
}

// State returns the state at a time.
func (l Lease) State(now time.Time) State {
	switch over := !now.Before(l.Ends); {
	case l.ID == "":
		return Available
	case l.Breaks && over:
		return Broken
	case l.Breaks:
		return Breaking
	case l.Seconds != Infinite && over:
		return Expired
	}
	return Leased
}

// Locks reports whether the lease refuses writes without its ID.
func (l Lease) Locks(now time.Time) bool {
	state := l.State(now)
	return state == Leased || state == Breaking
}

// Status returns "locked" or "unlocked".
func (l Lease) Status(now time.Time) string {
	if l.Locks(now) {
		return "locked"
	}
	return "unlocked"
}

// Duration returns "infinite" or "fixed" for a lease that is held, else "".
func (l Lease) Duration(now time.Time) string {
	switch {
	case l.State(now) != Leased:
		return ""
	case l.Seconds == Infinite:
		return "infinite"
	}
	return "fixed"
}

// Written returns the lease after a write of the resource. A write ends the memory of a lease that expired or was broken.
func (l Lease) Written(now time.Time) Lease {
	if l.Locks(now) {
		return l
	}
	return Lease{}
}

// Resource names the leased thing in codes and messages of errors.
type Resource struct {
	// Noun is "blob", "container" or "share".
	Noun string
	// Operation is the end of error codes, such as "BlobOperation".
	Operation string
}

// The resources with leases.
var (
	Blob      = Resource{"blob", "BlobOperation"}
	Container = Resource{"container", "ContainerOperation"}
	Share     = Resource{"share", "ShareOperation"}
)

const preconditionFailed = 412

// Check returns why a request with a lease ID, "" for none, may not use the resource. Reads without an ID are always allowed.
func (l Lease) Check(of Resource, id string, write bool, now time.Time) error {
	locks, same := l.Locks(now), strings.EqualFold(id, l.ID)
	switch {
	case id == "" && locks && write:
		return behaviour.Refusal(preconditionFailed, "LeaseIdMissing",
			"There is currently a lease on the %s and no lease ID was specified in the request.", of.Noun)
	case id == "" || locks && same:
		return nil
	case locks:
		return behaviour.Refusal(preconditionFailed, "LeaseIdMismatchWith"+of.Operation,
			"The lease ID specified did not match the lease ID for the %s.", of.Noun)
	case same:
		return behaviour.Refusal(preconditionFailed, "LeaseLost",
			"A lease ID was specified, but the lease for the %s has expired.", of.Noun)
	}
	return behaviour.Refusal(preconditionFailed, "LeaseNotPresentWith"+of.Operation, "There is currently no lease on the %s.", of.Noun)
}
