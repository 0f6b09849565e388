package document

import (
	"strings"

	"kaz/internal/localazure/behaviour"
)

// Replace puts an element into an array of named objects.
func Replace(doc behaviour.Object, path, name string, element behaviour.Object) {
	array := behaviour.Array(doc, path)
	for i, x := range array {
		if o, ok := x.(behaviour.Object); ok && strings.EqualFold(behaviour.Text(o, "name"), name) {
			array[i] = element
			return
		}
	}
	element["name"] = name
	behaviour.Set(doc, path, append(array, element))
}

// Remove takes an element out of an array of named objects.
func Remove(doc behaviour.Object, path, name string) {
	kept := []any{}
	for _, x := range behaviour.Array(doc, path) {
		if o, ok := x.(behaviour.Object); !ok || !strings.EqualFold(behaviour.Text(o, "name"), name) {
			kept = append(kept, x)
		}
	}
	behaviour.Set(doc, path, kept)
}
