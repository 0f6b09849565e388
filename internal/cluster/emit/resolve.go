package emit

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
)

// Resolve returns a body with ids in place of references, and numbers as encoding/json reads them. Values that only Azure knows are those
// of ask. They stay as they are without ask, or if it returns nil.
func Resolve(l graph.Linked, n naming.Names, body map[string]any, ask func(graph.Runtime) any) map[string]any {
	all, _ := resolver{l, n, ask}.value(body).(object)
	return all
}

// Find returns the id of a resource, or of a part of one.
func Find(l graph.Linked, n naming.Names, ref graph.Ref) azure.ID {
	return resolver{l: l, names: n}.id(ref)
}

type resolver struct {
	l     graph.Linked
	names naming.Names
	ask   func(graph.Runtime) any
}

func (r resolver) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := object{}
		for key, item := range v {
			all[key] = r.value(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = r.value(item)
		}
		return all
	case graph.Keyed:
		return object{string(r.id(v.Key)): r.value(v.Value)}
	case graph.Port:
		return string(r.id(graph.Of(v)))
	case graph.Runtime:
		if r.ask == nil {
			return v
		}
		if value := r.ask(v); value != nil {
			return value
		}
		return v
	case graph.Number:
		number, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return v
		}
		return number
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return v
}

// id is the id of a resource, or of a part of one.
func (r resolver) id(ref graph.Ref) azure.ID {
	if id, exists := ref.Exists(); exists {
		return id
	}
	unit, _ := ref.Target()
	whole := ID(r.names, r.l.Resource(ref), r.l.Unit(unit).Unit)
	return azure.ID(strings.Join(append([]string{string(whole)}, ref.Parts()...), "/"))
}
