package access_test

import (
	"strings"
	"testing"
)

// TestUserAgent checks that requests carry program and version, or the configured user agent.
func TestUserAgent(t *testing.T) {
	for said, want := range map[string]string{"": "kubernetes-cloudprovider/", "harbour/3": "harbour/3"} {
		w := newWorld(t)
		w.Grant(t, objectID, group, "*/read")
		k := keys{"aadClientId": clientID, "aadClientSecret": secret}
		if said != "" {
			k["userAgent"] = said
		}
		d, err := open(t, w, settings(t, k))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(t.Context(), group.Resource("Microsoft.Network/routeTables", "t")); err == nil {
			t.Error("there is a route table")
		}
		for _, r := range w.Seen("/routeTables/") {
			if got := r.UserAgent(); !strings.Contains(got, want) || strings.HasSuffix(got, "/") || strings.Contains(got, "$") {
				t.Errorf("the user agent is %q, want %q in it, with a version", got, want)
			}
		}
		if len(w.Seen("/routeTables/")) == 0 {
			t.Error("nothing was asked")
		}
	}
}
