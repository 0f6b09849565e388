package service

import (
	"errors"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// patience is how long to wait after the first failure, doubled with each further
// one, and at most.
type patience struct{ least, most time.Duration }

var (
	// often is for what somebody else, or kaz itself, does to Azure and will have done.
	often = patience{5 * time.Second, time.Minute}
	// soon is for what passes by itself.
	soon = patience{5 * time.Second, 5 * time.Minute}
	// late is for what somebody has to change in Azure first.
	late = patience{30 * time.Second, 15 * time.Minute}
)

func patienceFor(err error) patience {
	if _, ok := errors.AsType[*misnamed](err); ok {
		return late
	}
	switch azure.KindOf(err) {
	case azure.Invalid, azure.Denied, azure.Quota, azure.InUse, azure.NotFound, azure.Exists:
		return late
	case azure.Busy:
		return often
	}
	return soon
}

// again is the error of a Service that is refused for what can be put right where nobody
// tells kaz of it: for what cannot be read.
func (a answer) again() error {
	i := slices.IndexFunc(a.problems, func(p plan.Problem) bool { return p.Reason == loadbalancer.ReasonUnread })
	if i < 0 {
		return nil
	}
	return &azure.Error{Kind: azure.Denied, Message: a.problems[i].Message}
}

// delay is how long a Service waits before it is tried again, after so many
// failures in a row. Nothing is tried before the time that Azure asked for.
func delay(err error, failures int) time.Duration {
	p := patienceFor(err)
	wait := p.least
	for range failures - 1 {
		if wait = min(2*wait, p.most); wait == p.most {
			break
		}
	}
	if e, ok := errors.AsType[*azure.Error](err); ok {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}
