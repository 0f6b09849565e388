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
