package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// At returns the value at a path of a document, such as "properties.frontends.0.name"; nil if there is none.
func At(d azure.Document, path string) any {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(d))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		switch x := tree.(type) {
		case map[string]any:
			tree = x[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			tree = x[i]
		default:
			return nil
		}
	}
	return tree
}

// Text returns the value at a path as a text, "" if there is none.
func Text(d azure.Document, path string) string {
	if x := At(d, path); x != nil {
		return fmt.Sprint(x)
	}
	return ""
}

// Count returns the number of elements of the list at a path.
func Count(d azure.Document, path string) int {
	list, _ := At(d, path).([]any)
	return len(list)
}

// Has reports whether a document has a member at a path, also if that is null.
func Has(d azure.Document, path string) bool {
	at, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		at, name = path[:i], path[i+1:]
	}
	var holder any
	if at == "" {
		if json.Unmarshal(d, &holder) != nil {
			return false
		}
	} else {
		holder = At(d, at)
	}
	object, _ := holder.(map[string]any)
	_, ok := object[name]
	return ok
}

// Tree returns a document as an object that may be changed.
func Tree(d azure.Document) Object {
	tree := Object{}
	if json.Unmarshal(d, &tree) != nil {
		return Object{}
	}
	return tree
}
