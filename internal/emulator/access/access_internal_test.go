package access

import "testing"

func TestPermissionsMatchActions(t *testing.T) {
	for _, c := range []struct {
		actions, not []string
		action       string
		want         bool
	}{
		{[]string{"*"}, nil, "A.B/c/write", true},
		{[]string{"*/read"}, nil, "A.B/c/d/read", true},
		{[]string{"*/read"}, nil, "A.B/c/write", false},
		{[]string{"a.b/C/*"}, nil, "A.B/c/start/action", true},
		{[]string{"A.B/*/read"}, nil, "A.B/c/read", true},
		{[]string{"A.B/c/read"}, nil, "A.B/c/readmore", false},
		{[]string{"A.B/*a*/read"}, nil, "A.B/xay/read", true},
		{[]string{"*"}, []string{"A.B/*/delete"}, "A.B/c/delete", false},
		{nil, nil, "A.B/c/read", false},
	} {
		if got := (Permission{Actions: c.actions, NotActions: c.not}).allows(c.action); got != c.want {
			t.Errorf("%v without %v allows %s: %v", c.actions, c.not, c.action, got)
		}
	}
}
