package checks

import (
	"net/http"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/message"
)

// authorized refuses a caller without the right to a request. Of a list it may leave what the caller may read.
func (t Checks) authorized(r *message.Request, _ *behaviour.Call) error {
	err := t.access.Authorize(r.Caller.Principal, r.Right(), r.ID)
	filtered := r.Reads() && r.List && r.Kind.Parent == nil && r.Kind.Where != behaviour.Nowhere
	if err != nil && filtered && t.access.AllowedBelow(r.Caller.Principal, r.Right(), r.ID) {
		r.OnlyAllowed, err = true, nil
	}
	return err
}

// links refuses a caller without the rights to the resources that a document, or the body of an action, names.
func (t Checks) links(r *message.Request, c *behaviour.Call) error {
	l := access.Request{Kind: r.Kind, ID: r.ID, Body: r.Body, Action: r.Right(), Caller: r.Caller}
	if r.Method == http.MethodPost {
		l.Post = r.Action
		return t.access.AuthorizeLinks(l, r.Body)
	}
	return t.access.AuthorizeLinks(l, c.Doc)
}

// Permit refuses what a behaviour does for a caller without the right to it, and what a lock forbids.
func (t Checks) Permit(by behaviour.Caller, action string, scope azure.ID) error {
	if by.Principal != nil && by.Principal.Azure {
		return nil
	}
	if err := t.access.Authorize(by.Principal, action, scope); err != nil {
		return err
	}
	return t.Unlocked(scope, changeOf(action))
}
