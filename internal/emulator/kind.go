package emulator

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/emulator/behaviour"
)

// kind is a registered type with its place among the others.
type kind struct {
	*behaviour.Type
	parent *kind
	inline []*kind // children that live in this type's documents
}

// holder is the kind whose documents are stored: itself, or the ancestor in whose
// document an inline child lives.
func (k *kind) holder() *kind {
	for k.Inline != "" {
		k = k.parent
	}
	return k
}

// shows reports whether a read has to compute anything.
func (k *kind) shows() bool {
	return k.Show != nil || slices.ContainsFunc(k.inline, (*kind).shows)
}

// kinds are the registered types by lower-cased name.
type kinds map[string]*kind

func newKinds(types []behaviour.Type) (kinds, error) {
	all := kinds{}
	for i := range types {
		t := &types[i]
		key := strings.ToLower(t.Name)
		if strings.Count(t.Name, "/") == 0 {
			return nil, fmt.Errorf("resource type %q: want Namespace/type", t.Name)
		}
		if all[key] != nil {
			return nil, fmt.Errorf("resource type %s is registered twice", t.Name)
		}
		all[key] = &kind{Type: t}
	}
	for i := range types {
		key := strings.ToLower(types[i].Name)
		k := all[key]
		if strings.Count(key, "/") > 1 {
			k.parent = all[key[:strings.LastIndexByte(key, '/')]]
		}
		if k.Inline == "" {
			continue
		}
		if k.parent == nil {
			return nil, fmt.Errorf("resource type %s lives in a parent that is not registered", k.Name)
		}
		k.parent.inline = append(k.parent.inline, k)
	}
	return all, nil
}

func (ks kinds) of(fullType string) *kind { return ks[strings.ToLower(fullType)] }

// namespace reports whether any type of the provider is registered.
func (ks kinds) namespace(name string) bool {
	prefix := strings.ToLower(name) + "/"
	for key := range ks {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
