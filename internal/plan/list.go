package plan

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// List returns the documents of the full type fullType that lie in scope, in the
// order of their ids. A snapshot holds only what was read into it, so what is
// listed must have been asked for.
func (s Snapshot) List(scope azure.ID, fullType string) []azure.Document {
	within := scope.Key() + "/"
	keys := slices.Collect(maps.Keys(s.docs))
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return !strings.HasPrefix(key, within) || !azure.ID(key).Is(fullType)
	})
	slices.Sort(keys)
	docs := make([]azure.Document, len(keys))
	for i, key := range keys {
		docs[i] = s.docs[key]
	}
	return docs
}
