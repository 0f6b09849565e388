package azure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what a failure means to a caller, whatever its source and words. Callers ask [KindOf] and
// never read an error's text.
type Kind int

// The kinds. What a caller may do about each is part of its meaning.
const (
	Internal    Kind = iota // nothing else fits; not worth a retry without a look
	NotFound                // the resource, or a parent of it, does not exist
	Exists                  // it exists already and must not
	Changed                 // precondition failed or superseded: read again, plan again
	Invalid                 // Azure refuses the request as written; retrying is futile
	Denied                  // no rights, or no valid credential
	Throttled               // too many requests: wait RetryAfter
	Quota                   // a limit of the subscription is reached
	Capacity                // Azure has no room for it here and now
	InUse                   // something else refers to it
	Busy                    // another operation on it is running: wait and try again
	Unavailable             // Azure could not answer: 5xx, time-out, network
	Canceled                // the caller gave up
)

var kindNames = [...]string{
	"internal", "not found", "exists", "changed", "invalid", "denied", "throttled",
	"quota", "capacity", "in use", "busy", "unavailable", "canceled",
}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Retryable reports whether the same request may succeed later without any other change.
func (k Kind) Retryable() bool {
	switch k {
	case Throttled, Busy, Unavailable, Capacity:
		return true
	default:
		return false
	}
}

// Error is a failure that Azure, or the way to it, reported.
type Error struct {
	Kind       Kind
	Op         string // what was asked: "PUT", "DELETE", "POST start", ...
	ID         ID     // of the resource that was asked for
	Status     int    // HTTP status, 0 when there was none
	Code       string // Azure's error code, innermost that classified
	Message    string // Azure's message
	Target     string // what Azure says is at fault, often a property path or an id
	RetryAfter time.Duration
	Cause      error // below Azure: a network error, a cancelled context
	// Unsure is true if the request was sent before and that got no clear answer: it may have been carried out, whatever Azure says of
	// the last attempt.
	Unsure bool
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + " ")
	}
	if e.ID != "" {
		b.WriteString(string(e.ID) + ": ")
	}
	b.WriteString(e.Kind.String())
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of the first [Error] in err's chain; context errors are
// Canceled or, for deadlines, Unavailable; anything else is Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	}
	return Internal
}

// IsNotFound is the question asked most often, KindOf(err) == NotFound for an
// err that is not nil.
func IsNotFound(err error) bool { return err != nil && KindOf(err) == NotFound }
