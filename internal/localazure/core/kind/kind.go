// Package kind is the table of the resource types that the local Azure knows, each
// with its place among the others. Layer L2: azure and behaviour.
package kind

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Kind is a registered type with its place among the others.
type Kind struct {
	*behaviour.Type
	Parent   *Kind   // nil for a top-level type, and when the parent is not registered
	Children []*Kind // the inline types, which live in documents of this type
}

// Holder returns the kind that has documents of its own: the kind itself, or the
// ancestor that holds an inline child in its document.
func (k *Kind) Holder() *Kind {
	for k.Inline != "" {
		k = k.Parent
	}
	return k
}

// HolderOf returns the id of the stored document that holds the resource.
func (k *Kind) HolderOf(id azure.ID) azure.ID {
	for k.Inline != "" {
		k, id = k.Parent, id.Parent()
	}
	return id
}

// Shows reports whether a read has to compute anything.
func (k *Kind) Shows() bool {
	return k.Show != nil || slices.ContainsFunc(k.Children, (*Kind).Shows)
}

// WatchesRemoval reports whether the type, or an inline child, has a Removed.
func (k *Kind) WatchesRemoval() bool {
	return k.Removed != nil || slices.ContainsFunc(k.Children, (*Kind).WatchesRemoval)
}

// Segment is the last part of the kind's type.
func (k *Kind) Segment() string { return k.Name[strings.LastIndexByte(k.Name, '/')+1:] }

// Spelled returns the id in the spelling in which the provider shows it.
func (k *Kind) Spelled(id azure.ID) string {
	s := string(id)
	group := id.Group()
	if group == "" || !k.Style.LowerGroup && !k.Style.UpperGroup {
		return s
	}
	before := len(azure.GroupID(id.Subscription(), ""))
	other := strings.ToLower(group)
	if k.Style.UpperGroup {
		other = strings.ToUpper(group)
	}
	return s[:before] + other + s[before+len(group):]
}

// Action finds an action by its name in any case, and returns its own spelling too:
// the given spelling where there is no such action.
func (k *Kind) Action(name string) (action behaviour.Action, spelled string, ok bool) {
	for n, a := range k.Actions {
		if strings.EqualFold(n, name) {
			return a, n, true
		}
	}
	return behaviour.Action{}, name, false
}

// View finds a view by its name in any case, nil for none.
func (k *Kind) View(name string) func(*behaviour.Call) (any, error) {
	for n, v := range k.Views {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return nil
}

// ParentIn returns the object inside of a stored document that is the parent of an
// inline child, nil when it is not there.
func (k *Kind) ParentIn(id azure.ID, doc behaviour.Object) behaviour.Object {
	if k.Parent.Inline == "" {
		return doc
	}
	outer := k.Parent.ParentIn(id.Parent(), doc)
	if outer == nil {
		return nil
	}
	return behaviour.Named(outer, k.Parent.Inline, id.Parent().Name())
}

// Child returns the id of an element of an inline type in the document of id.
func (k *Kind) Child(id azure.ID, element behaviour.Object) azure.ID {
	return id.Child(k.Segment(), behaviour.Text(element, "name"))
}

// Wait has the Retry-After values of an operation.
func (k *Kind) Wait(v behaviour.Verb) behaviour.Wait {
	if w, ok := k.Style.Wait[v]; ok {
		return w
	}
	return k.Style.Otherwise
}

// Running is the provisioningState of a resource while a write runs.
func (k *Kind) Running(v behaviour.Verb) string {
	if v == behaviour.Create && k.Style.Creating != "" {
		return k.Style.Creating
	}
	if k.Style.Updating != "" {
		return k.Style.Updating
	}
	return "Updating"
}

// Table has the registered types by lower-cased name.
type Table map[string]*Kind

// NewTable registers types.
func NewTable(types []behaviour.Type) (Table, error) {
	all := Table{}
	for i := range types {
		t := &types[i]
		key := strings.ToLower(t.Name)
		if strings.Count(t.Name, "/") == 0 {
			return nil, fmt.Errorf("resource type %q: want Namespace/type", t.Name)
		}
		if all[key] != nil {
			return nil, fmt.Errorf("resource type %s is registered twice", t.Name)
		}
		all[key] = &Kind{Type: t}
	}
	for i := range types {
		key := strings.ToLower(types[i].Name)
		k := all[key]
		if strings.Count(key, "/") > 1 {
			k.Parent = all[key[:strings.LastIndexByte(key, '/')]]
		}
		if k.Inline == "" {
			continue
		}
		if k.Parent == nil {
			return nil, fmt.Errorf("resource type %s lives in a parent that is not registered", k.Name)
		}
		k.Parent.Children = append(k.Parent.Children, k)
	}
	return all, nil
}

// Of returns the kind of a full type, nil for a type that is not registered.
func (ks Table) Of(fullType string) *Kind { return ks[strings.ToLower(fullType)] }

// Namespace reports whether any type of the provider is registered.
func (ks Table) Namespace(name string) bool {
	prefix := strings.ToLower(name) + "/"
	for key := range ks {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
