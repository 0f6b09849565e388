package arm

import (
	"bytes"
	"encoding/json"
)

// isObject reports whether text is one JSON object with something in it.
func isObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 2 && text[0] == '{' && json.Valid(text)
}

// isArray reports whether text is a JSON array.
func isArray(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 1 && text[0] == '[' && json.Valid(text)
}
