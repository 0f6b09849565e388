package reconcile_test

import (
	"context"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

// hidden is a reader that fails, or finds nothing.
type hidden struct {
	azure.Reader
	err error
}

func (h hidden) List(context.Context, azure.Query) ([]azure.Document, error) { return nil, h.err }

func (h hidden) Get(_ context.Context, id azure.ID) (azure.Document, error) {
	return azure.Document(`{"id":"` + string(id) + `"}`), h.err
}

// TestOptionalNeeds checks that the snapshot marks an optional resource that Azure does not show. One that does not
// exist is just absent. Any other failed read fails the whole snapshot.
func TestOptionalNeeds(t *testing.T) {
	const fullType = "N/ips"
	for name, c := range map[string]struct {
		err    error
		unread bool
		fails  bool
	}{
		"read":                      {},
		"may not be read":           {err: &azure.Error{Kind: azure.Denied, Status: 403, Code: "AuthorizationFailed"}, unread: true},
		"is not there":              {err: &azure.Error{Kind: azure.NotFound, Status: 404, Code: "ResourceGroupNotFound"}, unread: true},
		"not authenticated":         {err: &azure.Error{Kind: azure.Denied, Status: 401, Code: "ExpiredAuthenticationToken"}, fails: true},
		"there is no credential":    {err: &azure.Error{Kind: azure.Denied}, fails: true},
		"Azure cannot answer":       {err: &azure.Error{Kind: azure.Unavailable, Status: 503}, fails: true},
		"too much was asked before": {err: &azure.Error{Kind: azure.Throttled, Status: 429}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			q, id := azure.Query{Scope: group, Type: fullType}, group.Resource(fullType, "one")
			absent := azure.IsNotFound(c.err)
			check := func(what string, optional reconcile.Optional, needed reconcile.Needs, scope azure.ID, wantUnread bool) {
				have, err := reconcile.Take(t.Context(), hidden{err: c.err}, reconcile.Needs{Optional: optional})
				if (err != nil) != c.fails {
					t.Fatalf("%s: %v", what, err)
				}
				why, unread := have.Unread(scope, fullType)
				if unread != wantUnread || unread && why != azure.KindOf(c.err) {
					t.Errorf("%s: unread: %v, %v", what, unread, why)
				}
				if _, there := have.Get(id); there != (c.err == nil && scope == id) {
					t.Errorf("%s: there: %v", what, there)
				}
				if _, err := reconcile.Take(t.Context(), hidden{err: c.err}, needed); (err != nil) != (c.err != nil && !absent) {
					t.Errorf("%s that is needed: %v", what, err)
				}
			}
			check("a list", reconcile.Optional{Lists: []azure.Query{q}}, reconcile.Needs{Lists: []azure.Query{q}}, group, c.unread)
			check("a resource", reconcile.Optional{Resources: []azure.ID{id}}, reconcile.Needs{Resources: []azure.ID{id}}, id,
				c.unread && !absent)
		})
	}
}

// The snapshot has Azure's message about a resource that does not exist, until the resource exists.
func TestWhatIsAbsent(t *testing.T) {
	gone, there := group.Resource("N/ips", "gone"), group.Resource("N/ips", "there")
	have, err := reconcile.Take(t.Context(), hidden{err: &azure.Error{Kind: azure.NotFound, Message: "no such group"}}, reconcile.Needs{
		Resources: []azure.ID{gone}, Optional: reconcile.Optional{Resources: []azure.ID{there}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []azure.ID{gone, there} {
		if said, absent := have.Absent(id); !absent || said != "no such group" {
			t.Errorf("%s: %q, %v", id, said, absent)
		}
	}
	have = have.Without(gone).With(azure.Document(`{"id":"` + there + `"}`))
	if said, absent := have.Absent(there); absent {
		t.Errorf("it is there, and absent: %q", said)
	}
	if _, absent := have.Absent(gone); !absent {
		t.Error("what was read is forgotten")
	}
	if _, absent := have.Absent(group); absent {
		t.Error("it was not requested")
	}
}
