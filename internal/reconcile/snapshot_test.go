package reconcile_test

import (
	"context"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

// hidden is a reader whose lists fail.
type hidden struct {
	azure.Reader
	err error
}

func (h hidden) List(context.Context, azure.Query) ([]azure.Document, error) { return nil, h.err }

// An optional list that Azure does not show is told of in the snapshot. That it could not be
// read for another reason fails the whole.
func TestOptionalLists(t *testing.T) {
	const fullType = "N/ips"
	for name, c := range map[string]struct {
		err    error
		unread bool
		fails  bool
	}{
		"read":                      {},
		"may not be read":           {err: &azure.Error{Kind: azure.Denied, Status: 403, Code: "AuthorizationFailed"}, unread: true},
		"is not there":              {err: &azure.Error{Kind: azure.NotFound, Status: 404, Code: "ResourceGroupNotFound"}, unread: true},
		"nobody knows who asks":     {err: &azure.Error{Kind: azure.Denied, Status: 401, Code: "ExpiredAuthenticationToken"}, fails: true},
		"there is no credential":    {err: &azure.Error{Kind: azure.Denied}, fails: true},
		"Azure cannot answer":       {err: &azure.Error{Kind: azure.Unavailable, Status: 503}, fails: true},
		"too much was asked before": {err: &azure.Error{Kind: azure.Throttled, Status: 429}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := azure.Query{Scope: group, Type: fullType}
			have, err := reconcile.Take(t.Context(), hidden{err: c.err}, reconcile.Needs{Optional: []azure.Query{q}})
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			why, unread := have.Unread(group, fullType)
			if unread != c.unread || unread && why != azure.KindOf(c.err) {
				t.Errorf("unread: %v, %v", unread, why)
			}
			if _, err := reconcile.Take(t.Context(), hidden{err: c.err}, reconcile.Needs{Lists: []azure.Query{q}}); (err != nil) != (c.err != nil && !azure.IsNotFound(c.err)) {
				t.Errorf("a list that is needed: %v", err)
			}
		})
	}
}
