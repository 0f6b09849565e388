package behaviour

import (
	"maps"
	"strings"
)

// Private marks top-level fields of a document that clients never see, such as
// the value of a secret: their names begin with it.
const Private = "$"

// Hide takes the private fields out of a view.
func Hide(view Object) {
	maps.DeleteFunc(view, func(key string, _ any) bool { return strings.HasPrefix(key, Private) })
}

// KeepOnly reduces the object at a path of a view to the fields that the request
// named, for providers that echo what they were sent.
func KeepOnly(view, body Object, path string) {
	sent := Sub(body, path)
	shown := Object{}
	for key, value := range Sub(view, path) {
		if sent[key] != nil {
			shown[key] = value
		}
	}
	Set(view, path, shown)
}
