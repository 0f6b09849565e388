package key

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Note records that a Service may own resources in a resource group. It is a condition in the
// Service's status with the group as its message. Annotations can be lost when a Service is edited or
// replaced; the status survives both.
type Note struct {
	Of    Kind
	Group string
}

// Kind is the kind of the owned resources.
type Kind int

const (
	// PublicIPs are noted before the first one is created, until a load balancer refers to it.
	PublicIPs Kind = iota
	// PrivateLinks are noted while one exists: no load balancer refers to them.
	PrivateLinks
)

// kinds has the prefix of each kind's condition types and the annotation with the group.
var kinds = [...]kindOfNote{
	PublicIPs:    {"kaz/public-ips-in-", PublicIPGroup},
	PrivateLinks: {"kaz/private-links-in-", LinkGroup},
}

type kindOfNote struct {
	notes string
	asked Annotation[string]
}

// Name returns the type of the condition. It contains a hash, because group names allow characters
// that condition types do not. Each group has its own condition, so several processes can note at the
// same time.
func (n Note) Name() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(n.Group))) // never fails
	return fmt.Sprintf("%s%08x", kinds[n.Of].notes, h.Sum32())
}

// Condition returns the note as a condition, without a time.
func (n Note) Condition() metav1.Condition {
	return metav1.Condition{Type: n.Name(), Status: metav1.ConditionTrue, Reason: "RememberedForCleanup", Message: n.Group}
}

// Same reports whether two notes are equal, ignoring the case of the group.
func (n Note) Same(other Note) bool {
	return n.Of == other.Of && strings.EqualFold(n.Group, other.Group)
}

// Notes returns the condition types of a Service's notes, sorted.
func Notes(conditions []metav1.Condition) []string {
	var names []string
	for _, c := range conditions {
		if _, is := kindOf(c); is {
			names = append(names, c.Type)
		}
	}
	slices.Sort(names)
	return names
}

// Noted returns a Service's notes. It skips invalid resource group names: kaz did not write them, and
// no resource can be there.
func Noted(conditions []metav1.Condition) []Note {
	var noted []Note
	for _, c := range conditions {
		if of, is := kindOf(c); is && IsGroup(c.Message) {
			noted = append(noted, Note{of, c.Message})
		}
	}
	return noted
}

// kindOf returns the kind of a note, and false for other conditions.
func kindOf(c metav1.Condition) (of Kind, is bool) {
	i := slices.IndexFunc(kinds[:], func(k kindOfNote) bool { return strings.HasPrefix(c.Type, k.notes) })
	return Kind(i), i >= 0
}

// AskedGroups returns the valid resource groups that a Service's annotations name.
func AskedGroups(annotations map[string]string) []Note {
	var asked []Note
	for of, k := range kinds {
		if group, _ := k.asked.Read(annotations); group != "" {
			asked = append(asked, Note{Kind(of), group})
		}
	}
	return asked
}

// IsGroup reports whether text is a valid name of a resource group.
func IsGroup(text string) bool { return groupForm.is.MatchString(text) }
