package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster/definition/fields"
)

// Explain describes a field, given as kubectl explain takes it: Cluster.spec.controlPlane.zones. The kind may be in any
// letter case.
func Explain(path string) (string, error) {
	parts := strings.Split(path, ".")
	i := slices.IndexFunc(kinds(), func(kind string) bool { return strings.EqualFold(kind, parts[0]) })
	if i < 0 {
		return "", fmt.Errorf("%q: want a path that begins with %s, such as Cluster.spec.controlPlane.zones%s", path, alternatives(kinds()),
			hint(parts[0], kinds()))
	}
	s := shapes()[kinds()[i]]
	for _, part := range parts[1:] {
		part = strings.TrimSuffix(part, "[]")
		next := s.names[part]
		if next == nil && s.item != nil {
			next = s.item.names[part]
		}
		if next == nil {
			names := s.names
			if s.item != nil {
				names = s.item.names
			}
			if len(names) == 0 {
				return "", fmt.Errorf("%q: %s has no fields", path, s.path)
			}
			return "", fmt.Errorf("%q: %s has no field %s: want one of %s%s", path, s.path, part, strings.Join(sortedNames(names), ", "),
				hint(part, sortedNames(names)))
		}
		s = next
	}
	return s.explained(), nil
}

func (s *shape) explained() string {
	var b strings.Builder
	fmt.Fprintf(&b, "FIELD:   %s\nTYPE:    %s\n", s.path, s.typeName())
	if s.Doc != "" {
		fmt.Fprintf(&b, "MEANING: %s\n", s.Doc)
	}
	if allowed := s.allowed(); allowed != "" {
		fmt.Fprintf(&b, "ALLOWED: %s\n", allowed)
	}
	if d := s.defaultText(); d != "" {
		fmt.Fprintf(&b, "DEFAULT: %s\n", d)
	}
	if s.Change != "" {
		fmt.Fprintf(&b, "CHANGE:  %s\n", s.Change)
	}
	if used := fields.Consumers()[s.path]; used != "" {
		fmt.Fprintf(&b, "USED BY: %s\n", used)
	}
	if s.Union {
		b.WriteString("LAYERS:  each layer may add elements\n")
	}
	inside := s.fields
	if s.item != nil {
		inside = s.item.fields
	}
	if len(inside) > 0 {
		b.WriteString("FIELDS:\n")
	}
	for _, field := range inside {
		doc := field.Doc
		if doc == "" {
			var below []string
			for _, f := range field.fields {
				below = append(below, f.name())
			}
			doc = strings.Join(below, ", ")
		}
		fmt.Fprintf(&b, "  %-18s %-21s %s\n", field.name(), field.typeName(), doc)
	}
	return b.String()
}

func (s *shape) typeName() string {
	switch {
	case s.kind == isList && s.item.kind == isMap:
		return "list of maps"
	case s.kind == isList:
		return "list of " + string(s.item.kind) + "s"
	default:
		return string(s.kind)
	}
}

// allowed says what the field may contain.
func (s *shape) allowed() string {
	var all []string
	switch {
	case len(s.OneOf) > 0:
		all = append(all, alternatives(s.OneOf))
	case s.Rule != nil:
		all = append(all, s.Rule.Says)
	case s.Key != nil:
		all = append(all, "names: "+s.Key.Says)
	}
	if s.Value != nil {
		all = append(all, "values: "+s.Value.Says)
	}
	if s.kind == isNumber {
		all = append(all, fmt.Sprintf("%d to %d", s.Min, s.Max))
	} else if s.Max > 0 {
		all = append(all, fmt.Sprintf("%d to %d elements", s.Min, s.Max))
	}
	return strings.Join(all, "; ")
}

func (s *shape) defaultText() string {
	switch {
	case s.Required:
		return "(required)"
	case s.Default == `""`:
		return "(empty)"
	default:
		return strings.Trim(s.Default, `"`)
	}
}

// Reference is the table of all fields in Markdown.
func Reference() string {
	var b strings.Builder
	used := fields.Consumers()
	for _, kind := range kinds() {
		fmt.Fprintf(&b, "\n## %s\n\n| field | type | default | allowed | a change | used by | meaning |\n|---|---|---|---|---|---|---|\n",
			kind)
		shapes()[kind].each(func(s *shape) {
			if s.Doc == "" {
				return
			}
			_, path, _ := strings.Cut(s.path, ".")
			cells := []string{"`" + path + "`", s.typeName(), s.defaultText(), s.allowed(), string(s.Change), used[s.path], s.Doc}
			for i, cell := range cells {
				cells[i] = strings.ReplaceAll(cell, "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		})
	}
	return b.String()
}

// JSONSchema is a JSON Schema (draft 2020-12) of one document, for editors.
func JSONSchema() ([]byte, error) {
	var all []any
	for _, kind := range kinds() {
		s := shapes()[kind].schema()
		properties := s["properties"].(map[string]any)
		properties["apiVersion"] = map[string]any{"const": APIVersion}
		properties["kind"] = map[string]any{"const": kind}
		s["required"] = append([]string{"apiVersion", "kind"}, s["required"].([]string)...)
		s["title"] = kind
		all = append(all, s)
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "cluster definition of kaz", "oneOf": all,
	}, "", "  ")
	return append(text, '\n'), err
}

// schema is the JSON Schema of a field. It requires what the definition requires, except the fields of a Cluster below spec.
// A layer with a part of a Cluster is complete only together with its base.
func (s *shape) schema() map[string]any {
	out := map[string]any{}
	if s.Doc != "" {
		out["description"] = s.Doc
	}
	if s.Default != "" {
		out["default"] = json.RawMessage(s.Default)
	}
	switch s.kind {
	case isMap:
		s.mapSchema(out)
	case isList:
		out["type"], out["items"] = "array", s.item.schema()
		if s.item.kind == isText {
			s.textSchema(out["items"].(map[string]any))
		}
		if s.Min > 0 {
			out["minItems"] = s.Min
		}
		if s.Max > 0 {
			out["maxItems"] = s.Max
		}
	case isNumber:
		out["type"] = "integer"
		if s.Max > 0 {
			out["minimum"], out["maximum"] = s.Min, s.Max
		}
	case isBool:
		out["type"] = "boolean"
	default:
		out["type"] = "string"
		if s.Number {
			out["type"] = []string{"string", "integer"}
		}
		s.textSchema(out)
	}
	return out
}

func (s *shape) textSchema(out map[string]any) {
	switch {
	case len(s.OneOf) > 0:
		out["enum"] = s.OneOf
	case s.Rule != nil && s.Default == `""`:
		out["anyOf"] = []any{map[string]any{"const": ""}, map[string]any{"pattern": portable(s.Rule)}}
	case s.Rule != nil:
		out["pattern"] = portable(s.Rule)
	}
}

// portable is a pattern without the flags that JSON Schema's regular expressions do not have.
func portable(r *fields.Rule) string {
	text := r.Pattern.String()
	for {
		i := strings.Index(text, "(?i:")
		if i < 0 {
			return text
		}
		end := i + strings.IndexByte(text[i:], ')')
		text = text[:i] + anyCase(text[i+len("(?i:"):end]) + text[end+1:]
	}
}

// anyCase is a pattern for a text in any letter case.
func anyCase(pattern string) string {
	var b strings.Builder
	for _, r := range pattern {
		low, up := strings.ToLower(string(r)), strings.ToUpper(string(r))
		if low == up {
			b.WriteRune(r)
			continue
		}
		b.WriteString("[" + up + low + "]")
	}
	return b.String()
}

func (s *shape) mapSchema(out map[string]any) {
	out["type"] = "object"
	switch {
	case s.free:
	case s.item != nil:
		out["additionalProperties"] = s.item.schema()
		if s.Key != nil {
			out["propertyNames"] = map[string]any{"pattern": portable(s.Key)}
		}
	default:
		properties, required := map[string]any{}, []string{}
		for _, field := range s.fields {
			properties[field.name()] = field.schema()
			whole := !strings.HasPrefix(s.path, "Cluster.") || s.path == "Cluster.metadata"
			if (field.Required && whole) || field.name() == "metadata" {
				required = append(required, field.name())
			}
		}
		out["properties"], out["additionalProperties"], out["required"] = properties, false, required
	}
}
