package verbs

import (
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/operation"
)

// overlap decides what happens to operations that run on the document already.
func (s starter) overlap(r *message.Request, o *operation.Operation) error {
	for _, other := range s.runner.Queue.On(o.Held()) {
		if err := s.beside(r, o, other); err != nil {
			return err
		}
	}
	return nil
}

// beside decides about a running operation when another is to start.
func (s starter) beside(r *message.Request, o, other *operation.Operation) error {
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
		return checks.Conflict()
	case behaviour.Queue:
		if last := other.Due.Add(o.Due.Sub(o.Start)); other.Due.After(o.Start) && last.After(o.Due) {
			o.Due = last
		}
	case behaviour.Parallel:
	}
	return nil
}

// duringDelete refuses a write to what is being deleted, but no second deletion.
func (s starter) duringDelete(r *message.Request, o, other *operation.Operation) error {
	if o.Verb == behaviour.Delete && other.Resource.Equal(o.Resource) || other.Kind == s.groups {
		return nil
	}
	if o.Resource.Under(other.Resource) || other.Resource.Under(o.Resource) {
		return s.inProgress(r, other)
	}
	return nil
}

// inProgress refuses a request because of a running operation, in the provider's way.
func (s starter) inProgress(r *message.Request, other *operation.Operation) error {
	if r.Kind.Style.Overlap != behaviour.Supersede {
		return checks.Conflict()
	}
	const wait = 10
	return checks.InProgress(r, other, s.docs.At, http.StatusTooManyRequests, wait)
}
