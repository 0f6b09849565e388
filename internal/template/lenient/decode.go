package lenient

import (
	"encoding/json"
	"fmt"

	"kaz/internal/azure/short"
)

// Decode reads an object as the resource manager reads templates: JSON with comments, keys without quotes, strings in
// single quotes and of several lines, and commas behind the last element.
func Decode(text []byte) (map[string]any, error) {
	strict, err := Strict(text)
	if err != nil {
		return nil, err
	}
	if Depth(strict) > MostDepth {
		return nil, ErrTooDeep
	}
	var o map[string]any
	if err := json.Unmarshal(strict, &o); err != nil {
		return nil, short.Errorf("decode JSON: %w", err)
	}
	return o, nil
}

// MostDepth is how deep the objects and arrays of a template or a request may be nested.
const MostDepth = 128

// ErrTooDeep is the error of JSON that is nested deeper than MostDepth.
var ErrTooDeep = fmt.Errorf("the reader's MaxDepth of %d has been exceeded", MostDepth)

// Depth returns how deep the objects and arrays of a JSON text are nested. It does not recurse, whatever the depth is.
func Depth(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
