package key

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Note is what kaz writes into a Service for itself, in an annotation: that something of
// the Service's may be in a resource group that nothing else will name some day.
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

// kinds is how the annotations of each kind begin, and which group a Service asks for.
var kinds = [...]struct {
	notes string
	asked Annotation[string]
}{
	PublicIPs:    {"kaz/public-ips-in-", PublicIPGroup},
	PrivateLinks: {"kaz/private-links-in-", LinkGroup},
}

// Name is the name of the annotation. Group names may have what names of annotations may not,
// and several processes may note side by side; so each group has a name of its own.
func (n Note) Name() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(n.Group))) // it knows no error
	return fmt.Sprintf("%s%08x", kinds[n.Of].notes, h.Sum32())
}

// Same reports whether two notes say the same.
func (n Note) Same(other Note) bool {
	return n.Of == other.Of && strings.EqualFold(n.Group, other.Group)
}

// IsNote reports whether an annotation is one that kaz writes for itself.
func IsNote(name string) bool {
	for _, k := range kinds {
		if strings.HasPrefix(name, k.notes) {
			return true
		}
	}
	return false
}

// Notes are the names of a Service's notes, sorted.
func Notes(annotations map[string]string) []string {
	var names []string
	for name := range annotations {
		if IsNote(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Noted is what a Service's notes say. What is no name of a resource group is left out:
// somebody else wrote it, and nothing can have been made there.
func Noted(annotations map[string]string) []Note {
	var noted []Note
	for _, name := range Notes(annotations) {
		for of, k := range kinds {
			if strings.HasPrefix(name, k.notes) && IsGroup(annotations[name]) {
				noted = append(noted, Note{Kind(of), annotations[name]})
			}
		}
	}
	return noted
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
