package checks

import (
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/operation"
)

// blockers refuses to write a document while an operation runs on a resource that its
// type names in BlockedBy.
func (t Checks) blockers(r *message.Request, c *behaviour.Call) error {
	if c.Type.BlockedBy == nil {
		return nil
	}
	for _, id := range c.Type.BlockedBy(c) {
		if running := t.queue.On(id); len(running) > 0 {
			return InProgress(r, running[0], t.docs.At, http.StatusConflict, 0)
		}
	}
	return nil
}

// kept refuses to write in a group that is being deleted.
func (t Checks) kept(r *message.Request, _ *behaviour.Call) error {
	for id := r.ID; id != ""; id = id.Parent() {
		for _, o := range t.queue.On(id) {
			if o.Verb == behaviour.Delete && o.Resource.Equal(id) && o.Kind == t.groups {
				return behaviour.Gateway(409, "ResourceGroupBeingDeleted",
					"The resource group '%s' is in deprovisioning state and cannot perform this operation.", id.Group())
			}
		}
	}
	return nil
}

// InProgress names the running operation, where its provider has a URL for its
// status.
func InProgress(r *message.Request, other *operation.Operation, at time.Time, status, retryAfter int) error {
	p := other.Kind.Style.Protocol
	if p.Status == nil {
		return Conflict()
	}
	err := behaviour.Refusal(status, "AnotherOperationInProgress",
		"Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: %s.",
		r.PollURL(p, p.Status(other.Operation), at))
	err.RetryAfter = retryAfter
	return err
}

// Conflict is the refusal of a request because of another one.
func Conflict() error {
	return behaviour.Conflict("Conflict",
		"The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to "+
			"get more details on the conflicting requests.")
}
