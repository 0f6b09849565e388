package key_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kaz/internal/key"
)

// TestNotesOfGroups checks that every valid resource group name fits into a note.
func TestNotesOfGroups(t *testing.T) {
	groups := []string{"far", "rg_(old).1", "straße-ost"}
	conditions := []metav1.Condition{{Type: "foreign.example/else", Status: metav1.ConditionTrue, Reason: "Other", Message: "far"}}
	for _, g := range groups {
		for _, of := range []key.Kind{key.PublicIPs, key.PrivateLinks} {
			conditions = append(conditions, key.Note{Of: of, Group: g}.Condition())
		}
	}
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Now()
	}
	if errs := validation.ValidateConditions(conditions, field.NewPath("conditions")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	got := map[key.Kind]map[string]bool{key.PublicIPs: {}, key.PrivateLinks: {}}
	for _, n := range key.Noted(conditions) {
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

// TestNotesThatNameNoGroup checks that conditions written by others in place of a note are ignored.
func TestNotesThatNameNoGroup(t *testing.T) {
	conditions := []metav1.Condition{key.Note{Group: "far"}.Condition(), key.Note{Group: "no/group"}.Condition(),
		{Type: "kaz/public-ips-in-"}, {Type: "kaz/other", Message: "rg"}}
	if got := key.Noted(conditions); len(got) != 1 || got[0] != (key.Note{Group: "far"}) {
		t.Errorf("noted %v", got)
	}
	if got := key.Notes(conditions); len(got) != 3 {
		t.Errorf("notes %q, want all that are in the place of one", got)
	}
}
