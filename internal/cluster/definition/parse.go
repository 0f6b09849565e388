package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Layer is one file of a definition.
type Layer struct {
	Name string
	Text []byte
}

// parse reads the documents of a layer.
func parse(l Layer) ([]*value, Problems) {
	var docs []*value
	var problems Problems
	decoder := yaml.NewDecoder(bytes.NewReader(l.Text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return docs, problems
		}
		if err != nil {
			return docs, append(problems, Problem{At: Position{l.Name, 1}, Message: "cannot be read as YAML: " + err.Error()})
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue // an empty document
		}
		r := reader{file: l.Name}
		doc := r.read(node.Content[0])
		problems = append(problems, r.problems...)
		if doc.kind != isMap {
			problems = append(problems, Problem{At: doc.at, Value: doc.shown(),
				Message: "want a document with apiVersion, kind, metadata and spec"})
			continue
		}
		docs = append(docs, doc)
	}
}

type reader struct {
	file     string
	problems Problems
}

func (r *reader) problem(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, Problem{At: Position{r.file, n.Line}, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) read(n *yaml.Node) *value {
	v := &value{at: Position{r.file, n.Line}}
	switch n.Kind {
	case yaml.MappingNode:
		return r.readMap(n)
	case yaml.SequenceNode:
		v.kind = isList
		for _, item := range n.Content {
			v.items = append(v.items, r.read(item))
		}
	case yaml.ScalarNode:
		readScalar(n, v)
	default:
		r.problem(n, "*%s is an alias: want the value itself, because each field must have one place where it is set", n.Value)
		v.kind = isNull
	}
	return v
}

func (r *reader) readMap(n *yaml.Node) *value {
	v := newMap(Position{r.file, n.Line})
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, field := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			r.problem(key, "%s is not a name of a field", key.Value)
			continue
		}
		if had := v.fields[key.Value]; had != nil {
			r.problem(key, "%s is set twice: it is also in line %d", key.Value, v.keysAt[key.Value].Line)
			continue
		}
		child := r.read(field)
		if child.kind == isMap {
			child.at.Line = key.Line // and not the line of its first field
		}
		v.set(key.Value, child)
		v.keysAt[key.Value] = Position{r.file, key.Line}
	}
	return v
}

func readScalar(n *yaml.Node, v *value) {
	v.text, v.kind = n.Value, isOther
	switch n.Tag {
	case "!!str":
		v.kind = isText
	case "!!int":
		number, err := strconv.Atoi(n.Value)
		if err == nil {
			v.kind, v.number = isNumber, number
		}
	case "!!float":
		number, err := strconv.ParseFloat(n.Value, 64)
		if text, encoded := json.Marshal(number); err == nil && encoded == nil { // and neither infinite nor no number
			v.decimal = json.Number(text)
		}
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			v.kind, v.truth = isBool, n.Value == "true"
		}
	case "!!null":
		v.kind = isNull
	}
}
