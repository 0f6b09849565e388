package lease

import (
	"math"
	"regexp"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
)

// Request is an action on a lease with valid values. See [ID], [ValidDuration] and [ValidBreak].
type Request struct {
	// Action is acquire, renew, change, release or break.
	Action string
	// ID is the lease that the caller holds, for renew, change and release.
	ID string
	// Proposed is the ID that the lease gets, for acquire and change.
	Proposed string
	// Seconds is the duration, for acquire.
	Seconds int
	// Break is the number of seconds after which a broken lease ends, nil for the rest of the lease.
	Break *int
}

// Valid values of durations and break periods.
const (
	shortest = 15
	longest  = 60
)

// ValidDuration reports whether a lease can have a duration.
func ValidDuration(seconds int) bool {
	return seconds == Infinite || seconds >= shortest && seconds <= longest
}

// ValidBreak reports whether a lease can be broken with a period.
func ValidBreak(seconds int) bool { return seconds >= 0 && seconds <= longest }

var guid = regexp.MustCompile(`^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$`)

// ID returns an ID in the form that replies have, or false if a text is no GUID. GUIDs can have no hyphens, and be in braces or
// parentheses.
func ID(text string) (string, bool) {
	text = strings.ToLower(text)
	for _, around := range []string{"{}", "()"} {
		if len(text) > 1 && text[0] == around[0] && text[len(text)-1] == around[1] {
			text = text[1 : len(text)-1]
			break
		}
	}
	if hyphens := strings.Count(text, "-"); hyphens != 0 && hyphens != 4 || !guid.MatchString(text) {
		return "", false
	}
	return guid.ReplaceAllString(text, "$1-$2-$3-$4-$5"), true
}

// Remaining returns the seconds until a broken lease ends, rounded up.
func (l Lease) Remaining(now time.Time) int {
	return max(0, int(math.Ceil(l.Ends.Sub(now).Seconds())))
}

// Act returns the lease after an action, or why the state of the lease refuses it.
func (l Lease) Act(of Resource, r Request, now time.Time) (Lease, error) {
	switch r.Action {
	case "acquire":
		return l.acquire(r, now)
	case "break":
		return l.breakUp(of, r, now)
	}
	return l.held(of, r, now)
}

func (l Lease) acquire(r Request, now time.Time) (Lease, error) {
	same := strings.EqualFold(r.Proposed, l.ID)
	switch state := l.State(now); {
	case state == Breaking && same:
		return l, behaviour.Conflict("LeaseIsBreakingAndCannotBeAcquired",
			"The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.")
	case state == Breaking, state == Leased && !same:
		return l, behaviour.Conflict("LeaseAlreadyPresent", "There is already a lease present.")
	}
	return begin(r.Proposed, r.Seconds, now), nil
}

// begin returns a lease that begins now.
func begin(id string, seconds int, now time.Time) Lease {
	l := Lease{ID: id, Seconds: seconds}
	if seconds != Infinite {
		l.Ends = now.Add(time.Duration(seconds) * time.Second)
	}
	return l
}

// breakUp breaks a lease. A break period never makes a lease last longer.
func (l Lease) breakUp(of Resource, r Request, now time.Time) (Lease, error) {
	broken := Lease{ID: l.ID, Seconds: l.Seconds, Ends: now, Breaks: true}
	switch l.State(now) {
	case Available:
		return l, notPresent(of)
	case Broken:
		return l, nil
	case Expired:
		return broken, nil
	}
	if r.Break != nil {
		broken.Ends = now.Add(time.Duration(*r.Break) * time.Second)
	}
	if limited := !l.Ends.IsZero(); limited && (r.Break == nil || l.Ends.Before(broken.Ends)) {
		broken.Ends = l.Ends
	}
	return broken, nil
}

// held does what only the holder of a lease can do.
func (l Lease) held(of Resource, r Request, now time.Time) (Lease, error) {
	state := l.State(now)
	same := strings.EqualFold(r.ID, l.ID) || r.Action == "change" && strings.EqualFold(r.Proposed, l.ID)
	switch {
	case r.Action == "change" && state != Leased && state != Breaking:
		return l, notPresent(of)
	case !same:
		return l, behaviour.Conflict("LeaseIdMismatchWithLeaseOperation",
			"The lease ID specified did not match the lease ID for the %s.", of.Noun)
	case r.Action == "release":
		return Lease{}, nil
	case r.Action == "change" && state == Breaking:
		return l, behaviour.Conflict("LeaseIsBreakingAndCannotBeChanged",
			"The lease ID matched, but the lease is currently in breaking state and cannot be changed.")
	case r.Action == "change":
		l.ID = r.Proposed
		return l, nil
	case l.Breaks:
		return l, behaviour.Conflict("LeaseIsBrokenAndCannotBeRenewed",
			"The lease ID matched, but the lease has been broken explicitly and cannot be renewed.")
	}
	return begin(l.ID, l.Seconds, now), nil
}

func notPresent(of Resource) error {
	return behaviour.Conflict("LeaseNotPresentWithLeaseOperation", "There is currently no lease on the %s.", of.Noun)
}
