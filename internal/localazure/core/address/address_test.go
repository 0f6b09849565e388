package address_test

import (
	"errors"
	"fmt"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/kind"
)

// Every path means a resource, a list, an action or a view, or is refused with a code.
func TestResolve(t *testing.T) {
	kinds, err := kind.NewTable([]behaviour.Type{
		{Name: "Microsoft.Resources/resourceGroups"},
		{Name: "A.B/c",
			Views: map[string]func(*behaviour.Call) (any, error){"instanceView": nil,
				"status": func(*behaviour.Call) (any, error) { return nil, nil }}},
		{Name: "A.B/c/d"},
		{Name: "E.F/lock"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := address.Resolver{
		Kinds: kinds,
		TenantOf: func(subscription string) string {
			return map[string]string{"s": "tenant"}[subscription]
		},
		Stored: func(id azure.ID) azure.ID {
			if id.Equal("/subscriptions/s/resourceGroups/Group") {
				return "/subscriptions/s/resourceGroups/Group"
			}
			return ""
		},
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/subscriptions/s/resourceGroups", "list of Microsoft.Resources/resourceGroups in /subscriptions/s"},
		{"GET", "/Subscriptions/s/RESOURCEGROUPS/group/", "Microsoft.Resources/resourceGroups /subscriptions/s/resourceGroups/Group"},
		{"PUT", "/subscriptions/s/resourcegroups/GROUP/providers/a.b/C/x", "A.B/c /subscriptions/s/resourceGroups/Group/providers/A.B/c/x"},
		{"GET", "/subscriptions/s/providers/A.B/c", "list of A.B/c in /subscriptions/s"},
		{"GET", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x/d",
			"list of A.B/c/d in /subscriptions/s/resourceGroups/g/providers/A.B/c/x"},
		{"POST", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x/start",
			"start of A.B/c /subscriptions/s/resourceGroups/g/providers/A.B/c/x"},
		{"GET", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x/STATUS",
			"STATUS of A.B/c /subscriptions/s/resourceGroups/g/providers/A.B/c/x"},
		{"PUT", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x/providers/E.F/lock/y",
			"E.F/lock /subscriptions/s/resourceGroups/g/providers/A.B/c/x/providers/E.F/lock/y"},
		{"GET", "/providers/E.F/lock/y", "E.F/lock /providers/E.F/lock/y"},
		{"GET", "/subscriptions/other/resourceGroups", "SubscriptionNotFound"},
		{"GET", "/subscriptions/s/resourceGroups/g/providers/X.Y/z/x", "InvalidResourceNamespace"},
		{"GET", "/subscriptions/s/resourceGroups/g/providers/A.B/z/x", "InvalidResourceType"},
		{"GET", "/subscriptions/s/resourceGroups/g/providers/A.B/c/x?", "InvalidResourceName"},
		{"GET", "/somewhere", "NotFound"},
	} {
		if got := shown(r.Resolve(address.Request{Method: c.method, Path: c.path, Version: "1"})); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

func shown(at address.Target, err error) string {
	if refusal, ok := errors.AsType[*behaviour.Error](err); ok {
		return refusal.Code
	}
	switch {
	case at.List:
		return fmt.Sprintf("list of %s in %s", at.Kind.Name, at.ID)
	case at.Action != "":
		return fmt.Sprintf("%s of %s %s", at.Action, at.Kind.Name, at.ID)
	}
	return fmt.Sprintf("%s %s", at.Kind.Name, at.ID)
}
