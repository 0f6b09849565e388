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
		annotations[key.GroupNote(g)] = g
	}
	if errs := validation.ValidateAnnotations(annotations, field.NewPath("annotations")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	got := map[string]bool{}
	for _, g := range key.NotedGroups(annotations) {
		got[g] = true
	}
	if d := cmp.Diff(map[string]bool{"far": true, "rg_(old).1": true, "straße-ost": true}, got); d != "" {
		t.Errorf("noted (-want +got):\n%s", d)
	}
	if key.GroupNote("FAR") != key.GroupNote("far") {
		t.Error("case counts in the name of a resource group")
	}
}

// What somebody else wrote in place of a note may be anything.
func TestNotesThatNameNoGroup(t *testing.T) {
	good, bad := key.GroupNote("far"), key.GroupNote("no/group")
	annotations := map[string]string{good: "far", bad: "no/group", "kaz/public-ips-in-": "", "kaz/other": "rg"}
	if got := key.NotedGroups(annotations); len(got) != 1 || got[0] != "far" {
		t.Errorf("noted %q", got)
	}
	if got := key.Notes(annotations); len(got) != 3 {
		t.Errorf("notes %q, want all that are in the place of one", got)
	}
}
