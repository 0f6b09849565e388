package key

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Note is what kaz writes into a Service for itself: that something of the Service's may be
// in a resource group that nothing else will name some day. It is a condition in the status,
// with the group as its message: who edits or replaces a Service can take off all annotations,
// and cannot write the status with that.
type Note struct {
	Of    Kind
	Group string
}

// Kind is what may be there.
type Kind int

const (
	// PublicIPs are noted from before one is made until a load balancer tells of it.
	PublicIPs Kind = iota
	// PrivateLinks are noted as long as one is there: no load balancer tells of them.
	PrivateLinks
)

// kinds is how the notes of each kind begin, and which group a Service asks for.
var kinds = [...]kindOfNote{
	PublicIPs:    {"kaz/public-ips-in-", PublicIPGroup},
	PrivateLinks: {"kaz/private-links-in-", LinkGroup},
}

type kindOfNote struct {
	notes string
	asked Annotation[string]
}

// Name is the type of the condition. Group names may have what types may not, and several
// processes may note side by side; so each group has a condition of its own.
func (n Note) Name() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(n.Group))) // it knows no error
	return fmt.Sprintf("%s%08x", kinds[n.Of].notes, h.Sum32())
}

// Condition is the note as it stands in the status, without a time.
func (n Note) Condition() metav1.Condition {
	return metav1.Condition{Type: n.Name(), Status: metav1.ConditionTrue, Reason: "RememberedForCleanup", Message: n.Group}
}

// Same reports whether two notes say the same.
func (n Note) Same(other Note) bool {
	return n.Of == other.Of && strings.EqualFold(n.Group, other.Group)
}

// Notes are the names of a Service's notes, sorted.
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

// Noted is what a Service's notes say. What is no name of a resource group is left out:
// somebody else wrote it, and nothing can have been made there.
func Noted(conditions []metav1.Condition) []Note {
	var noted []Note
	for _, c := range conditions {
		if of, is := kindOf(c); is && IsGroup(c.Message) {
			noted = append(noted, Note{of, c.Message})
		}
	}
	return noted
}

// kindOf is of what a condition tells, if it is a note.
func kindOf(c metav1.Condition) (of Kind, is bool) {
	i := slices.IndexFunc(kinds[:], func(k kindOfNote) bool { return strings.HasPrefix(c.Type, k.notes) })
	return Kind(i), i >= 0
}

// AskedGroups are the resource groups that a Service asks for, those that can be ones.
func AskedGroups(annotations map[string]string) []Note {
	var asked []Note
	for of, k := range kinds {
		if group, _ := k.asked.Read(annotations); group != "" {
			asked = append(asked, Note{Kind(of), group})
		}
	}
	return asked
}

// IsGroup reports whether a text can be the name of a resource group.
func IsGroup(text string) bool { return groupForm.is.MatchString(text) }
