package emulator

import (
	"net/http"
	"slices"

	"kaz/internal/emulator/behaviour"
)

// overlap decides what happens to operations that run on the document already.
func (t *transaction) overlap(r *request, o *operation) error {
	for _, other := range slices.Clone(t.operations.byKey[o.held().Key()]) {
		if err := t.beside(r, o, other); err != nil {
			return err
		}
	}
	return nil
}

// notBeside refuses to write a document while an operation runs on a resource beside
// which it cannot be written.
func (t *transaction) notBeside(r *request, c *behaviour.Call) error {
	if c.Type.Beside == nil {
		return nil
	}
	for _, id := range c.Type.Beside(c) {
		if running := t.operations.byKey[id.Key()]; len(running) > 0 {
			return t.operationInProgress(r, running[0], http.StatusConflict, 0)
		}
	}
	return nil
}

// beside decides about one operation that runs when another is to start.
func (t *transaction) beside(r *request, o, other *operation) error {
	same := other.Resource.Equal(o.Resource)
	if other.Verb == behaviour.Delete {
		return t.besideDelete(r, o, other)
	}
	switch r.kind.Style.Overlap {
	case behaviour.Supersede:
		if !same && r.kind.Style.Alone {
			return t.inProgress(r, other)
		}
		if same {
			t.supersede(other, o)
		}
	case behaviour.Busy:
		return conflict()
	case behaviour.Queue:
		if last := other.due.Add(o.due.Sub(o.Start)); other.due.After(o.Start) && last.After(o.due) {
			o.due = last
		}
	case behaviour.Parallel:
	}
	return nil
}

// besideDelete refuses a write to what is being deleted, but no second deletion.
func (t *transaction) besideDelete(r *request, o, other *operation) error {
	if o.Verb == behaviour.Delete && other.Resource.Equal(o.Resource) || other.kind == t.groups {
		return nil
	}
	if o.Resource.Under(other.Resource) || other.Resource.Under(o.Resource) {
		return t.inProgress(r, other)
	}
	return nil
}

func conflict() error {
	return behaviour.Conflict("Conflict", "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to get more details on the conflicting requests.")
}

// inProgress refuses a request because of a running operation, in the provider's way.
func (t *transaction) inProgress(r *request, other *operation) error {
	if r.kind.Style.Overlap != behaviour.Supersede {
		return conflict()
	}
	const wait = 10
	return t.operationInProgress(r, other, http.StatusTooManyRequests, wait)
}

// operationInProgress names the operation that is in the way, where its provider has a URL
// that tells of it.
func (t *transaction) operationInProgress(r *request, other *operation, status, retryAfter int) error {
	p := other.kind.Style.Protocol
	if p.Status == nil {
		return conflict()
	}
	err := behaviour.Refusal(status, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: %s.",
		t.pollURL(r, p, p.Status(other.Operation)))
	err.RetryAfter = retryAfter
	return err
}
