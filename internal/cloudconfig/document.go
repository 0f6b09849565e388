package cloudconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// document converts JSON or YAML to a JSON object. It also returns the keys that are set more than
// once. An empty document is an empty object.
func document(data []byte) (map[string]any, []string, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	asJSON, repeated := data, []string(nil)
	if json.Valid(data) {
		repeated = repeatedKeys(data)
	} else {
		var err error
		if asJSON, err = yaml.YAMLToJSON(data); err != nil {
			return nil, nil, syntaxError(data, err)
		}
		repeated = repeatedYAML(data)
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, nil, syntaxError(data, err)
	}
	switch value := value.(type) {
	case nil:
		return nil, nil, nil
	case map[string]any:
		return value, repeated, nil
	default:
		// The error leaves out the value, which may be a secret.
		return nil, nil, errors.New("the document is a single value or a list; want an object of keys and values")
	}
}

// repeatedKeys returns the keys that a JSON object has more than once.
func repeatedKeys(data []byte) []string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	var repeated []string
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return repeated
		}
		name, _ := token.(string)
		if seen[name] {
			repeated = append(repeated, name)
		}
		seen[name] = true
		var skipped json.RawMessage
		if decoder.Decode(&skipped) != nil {
			return repeated
		}
	}
	return repeated
}

// repeatedYAML returns the keys that a YAML document has more than once, from the errors of the
// strict decoder. The document is valid YAML, so that decoder reports nothing else.
func repeatedYAML(data []byte) []string {
	_, err := yaml.YAMLToJSONStrict(data)
	if err == nil {
		return nil
	}
	var repeated []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if _, after, found := strings.Cut(line, "key "); found && strings.Contains(after, "already set") {
			name, _, _ := strings.Cut(after, " already set")
			repeated = append(repeated, strings.Trim(name, `"`))
		}
	}
	return repeated
}

// syntaxError returns an error with the position of a syntax error. A document that starts like JSON
// is treated as JSON. The error quotes nothing of the document, which may contain secrets.
func syntaxError(data []byte, err error) error {
	if len(data) > 0 && data[0] == '{' {
		var ignored any
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &ignored)); ok {
			before := data[:min(int(syntax.Offset), len(data))]
			line := bytes.Count(before, []byte("\n")) + 1
			column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
			return fmt.Errorf("not JSON: line %d, column %d: %s", line, column, syntax.Error())
		}
	}
	return errors.New("neither JSON nor YAML: " + withoutQuotes(err.Error()))
}

func withoutQuotes(text string) string {
	const quotes = "'\"`"
	first, last := strings.IndexAny(text, quotes), strings.LastIndexAny(text, quotes)
	if first < 0 || first == last {
		return text
	}
	return text[:first] + "…" + text[last+1:]
}
