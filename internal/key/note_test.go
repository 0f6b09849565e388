package key_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kaz/internal/key"
)

// Whatever a resource group is called, a Service can tell of it.
func TestNotesOfGroups(t *testing.T) {
	groups := []string{"far", "rg_(old).1", "straße-ost"}
	annotations := map[string]string{key.PublicIPGroup.Name: "named"}
	for _, g := range groups {
		for _, of := range []key.Kind{key.PublicIPs, key.PrivateLinks} {
			annotations[key.Note{Of: of, Group: g}.Name()] = g
		}
	}
	if errs := validation.ValidateAnnotations(annotations, field.NewPath("annotations")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	got := map[key.Kind]map[string]bool{key.PublicIPs: {}, key.PrivateLinks: {}}
	for _, n := range key.Noted(annotations) {
		got[n.Of][n.Group] = true
	}
	all := map[string]bool{"far": true, "rg_(old).1": true, "straße-ost": true}
	if d := cmp.Diff(map[key.Kind]map[string]bool{key.PublicIPs: all, key.PrivateLinks: all}, got); d != "" {
		t.Errorf("noted (-want +got):\n%s", d)
	}
	if one, other := (key.Note{Group: "FAR"}), (key.Note{Group: "far"}); one.Name() != other.Name() || !one.Same(other) {
		t.Error("case counts in the name of a resource group")
	}
}

// What somebody else wrote in place of a note may be anything.
func TestNotesThatNameNoGroup(t *testing.T) {
	good, bad := key.Note{Group: "far"}.Name(), key.Note{Group: "no/group"}.Name()
	annotations := map[string]string{good: "far", bad: "no/group", "kaz/public-ips-in-": "", "kaz/other": "rg"}
	if got := key.Noted(annotations); len(got) != 1 || got[0] != (key.Note{Group: "far"}) {
		t.Errorf("noted %v", got)
	}
	if got := key.Notes(annotations); len(got) != 3 {
		t.Errorf("notes %q, want all that are in the place of one", got)
	}
}
