package key

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// notes is how the annotations begin that kaz writes into a Service for itself: one for
// each resource group in which a public IP of the Service is being made, until a load
// balancer tells of it. Group names may have what names of annotations may not, and
// several processes may note side by side; so each group has a name of its own.
const notes = "kaz/public-ips-in-"

// GroupNote is the name of the annotation that names a resource group.
func GroupNote(group string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(group))) // it knows no error
	return fmt.Sprintf("%s%08x", notes, h.Sum32())
}

// IsNote reports whether an annotation is one that kaz writes for itself.
func IsNote(name string) bool { return strings.HasPrefix(name, notes) }

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

// NotedGroups are the resource groups that a Service's notes name. What is no name of one
// is left out: somebody else wrote it, and nothing can have been made there.
func NotedGroups(annotations map[string]string) []string {
	var groups []string
	for _, name := range Notes(annotations) {
		if IsGroup(annotations[name]) {
			groups = append(groups, annotations[name])
		}
	}
	return groups
}

// IsGroup reports whether a text can be the name of a resource group.
func IsGroup(text string) bool { return groupForm.is.MatchString(text) }
