package core

import (
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/operation"
)

// overlap decides what happens to operations that run on the document already.
func (s starter) overlap(r *request, o *operation.Operation) error {
	for _, other := range s.runner.Queue.On(o.Held()) {
		if err := s.beside(r, o, other); err != nil {
			return err
		}
	}
	return nil
}

// checkBlockers refuses to write a document while an operation runs on a resource that its
// type names in BlockedBy.
func (s starter) checkBlockers(r *request, c *behaviour.Call) error {
	if c.Type.BlockedBy == nil {
		return nil
	}
	for _, id := range c.Type.BlockedBy(c) {
		if running := s.runner.Queue.On(id); len(running) > 0 {
			return s.operationInProgress(r, running[0], http.StatusConflict, 0)
		}
	}
	return nil
}

// notBeingDeleted refuses to write in a group that is being deleted.
func (s starter) notBeingDeleted(r *request) error {
	for id := r.ID; id != ""; id = id.Parent() {
		for _, o := range s.runner.Queue.On(id) {
			if o.Verb == behaviour.Delete && o.Resource.Equal(id) && o.Kind == s.groups {
				return behaviour.Gateway(409, "ResourceGroupBeingDeleted",
					"The resource group '%s' is in deprovisioning state and cannot perform this operation.", id.Group())
			}
		}
	}
	return nil
}

// beside decides about a running operation when another is to start.
func (s starter) beside(r *request, o, other *operation.Operation) error {
	same := other.Resource.Equal(o.Resource)
	if other.Verb == behaviour.Delete {
		return s.duringDelete(r, o, other)
	}
	switch r.Kind.Style.Overlap {
	case behaviour.Supersede:
		if !same && r.Kind.Style.Alone {
			return s.inProgress(r, other)
		}
		if same {
			s.runner.Supersede(other, o)
		}
	case behaviour.Busy:
		return conflict()
	case behaviour.Queue:
		if last := other.Due.Add(o.Due.Sub(o.Start)); other.Due.After(o.Start) && last.After(o.Due) {
			o.Due = last
		}
	case behaviour.Parallel:
	}
	return nil
}

// duringDelete refuses a write to what is being deleted, but no second deletion.
func (s starter) duringDelete(r *request, o, other *operation.Operation) error {
	if o.Verb == behaviour.Delete && other.Resource.Equal(o.Resource) || other.Kind == s.groups {
		return nil
	}
	if o.Resource.Under(other.Resource) || other.Resource.Under(o.Resource) {
		return s.inProgress(r, other)
	}
	return nil
}

func conflict() error {
	return behaviour.Conflict("Conflict",
		"The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to "+
			"get more details on the conflicting requests.")
}

// inProgress refuses a request because of a running operation, in the provider's way.
func (s starter) inProgress(r *request, other *operation.Operation) error {
	if r.Kind.Style.Overlap != behaviour.Supersede {
		return conflict()
	}
	const wait = 10
	return s.operationInProgress(r, other, http.StatusTooManyRequests, wait)
}

// operationInProgress names the running operation, where its provider has a URL for its
// status.
func (s starter) operationInProgress(r *request, other *operation.Operation, status, retryAfter int) error {
	p := other.Kind.Style.Protocol
	if p.Status == nil {
		return conflict()
	}
	err := behaviour.Refusal(status, "AnotherOperationInProgress",
		"Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: %s.",
		s.pollURL(r, p, p.Status(other.Operation)))
	err.RetryAfter = retryAfter
	return err
}
