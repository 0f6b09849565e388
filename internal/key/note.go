package key

import (
	"fmt"
	"hash/fnv"
	"maps"
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

// NotedGroups are the resource groups that a Service's notes name.
func NotedGroups(annotations map[string]string) []string {
	var groups []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if IsNote(name) && annotations[name] != "" {
			groups = append(groups, annotations[name])
		}
	}
	return groups
}
