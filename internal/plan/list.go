package plan

import (
	"slices"
	"strings"

	"kaz/internal/azure"
)

// List returns the documents of the full type fullType that lie in scope, in the
// order of their ids. A snapshot holds only what was read into it, so what is
// listed must have been asked for.
func (s Snapshot) List(scope azure.ID, fullType string) []azure.Document {
	within := scope.Key() + "/"
	namespace, types, _ := strings.Cut(strings.ToLower(fullType), "/")
	first, _, _ := strings.Cut(types, "/")
	typed := "/" + namespace + "/" + first + "/" // cheap to look for, unlike the type itself
	var keys []string
	for key := range s.docs {
		if strings.HasPrefix(key, within) && strings.Contains(key, typed) && azure.ID(key).Is(fullType) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	docs := make([]azure.Document, len(keys))
	for i, key := range keys {
		docs[i] = s.docs[key]
	}
	return docs
}
