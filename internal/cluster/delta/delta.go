// Package delta finds what a deployment must change in a resource that exists. A PUT replaces the whole document, and other programs write
// into it, too. So a deployment keeps what they wrote, and leaves a resource out that has already what the plan says. Layer L1: pure.
package delta

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

type object = map[string]any

// Change is what must change in a resource. The zero value says that it is as planned.
type Change struct {
	// Body is the resource as it is to be written, nil if at most its tags change. It has the tags, too.
	Body map[string]any
	// Set and Drop are tags to write and to remove.
	Set, Drop map[string]string
}

// IsZero reports whether nothing must change.
func (c Change) IsZero() bool { return c.Body == nil && len(c.Set) == 0 && len(c.Drop) == 0 }

// Of compares a planned body with the live resource. former are bodies of the same resource that earlier plans wrote: what one of them has
// and the plan no longer has is removed. Everything else that only the live resource has belongs to others and stays. Values of planned
// that are not those of JSON are known to Azure only, so they always differ.
func Of(fullType string, planned object, former []object, live object) Change {
	live = writable(fullType, live)
	p, l, before := maps.Clone(planned), maps.Clone(live), []any{}
	for _, one := range former {
		one = maps.Clone(one)
		delete(one, "tags")
		before = append(before, one)
	}
	delete(p, "tags")
	delete(l, "tags")
	change := tags(planned, former, live)
	merged, _ := merge("", p, before, l).(object)
	if agree(merged, l) {
		return change
	}
	if now := changed(texts(live["tags"]), change); len(now) > 0 {
		merged["tags"] = now
	}
	change.Body = merged
	return change
}

// tags finds the tags to change.
func tags(planned object, former []object, live object) Change {
	c := Change{Set: map[string]string{}, Drop: map[string]string{}}
	want, have := texts(planned["tags"]), texts(live["tags"])
	for name, value := range want {
		if now, has := find(have, name); !has || now != value {
			c.Set[name] = value
		}
	}
	for _, one := range former {
		for name := range texts(one["tags"]) {
			_, wanted := find(want, name)
			if now, has := find(have, name); has && !wanted {
				c.Drop[name] = now
			}
		}
	}
	return c
}

// changed are tags after a change.
func changed(tags map[string]string, c Change) object {
	all := object{}
	for name, value := range tags {
		_, drop := find(c.Drop, name)
		if _, set := find(c.Set, name); !drop && !set {
			all[name] = value
		}
	}
	for name, value := range c.Set {
		all[name] = value
	}
	return all
}

// find finds a tag. Names of tags have no case.
func find(tags map[string]string, name string) (string, bool) {
	for key, value := range tags {
		if strings.EqualFold(key, name) {
			return value, true
		}
	}
	return "", false
}

func texts(tags any) map[string]string {
	all := map[string]string{}
	given, _ := tags.(object)
	for key, value := range given {
		all[key] = fmt.Sprint(value)
	}
	return all
}

// whole are lists in which elements belong to their writer: an element of the plan replaces one of the same name.
var whole = []string{"securityRules"}

// merge returns the live value with the changes of the plan.
func merge(key string, planned any, former []any, live any) any {
	switch planned := planned.(type) {
	case object:
		if live, ok := live.(object); ok {
			return mergeObjects(planned, only[object](former), live)
		}
	case []any:
		if live, ok := live.([]any); ok {
			return mergeLists(key, planned, only[[]any](former), live)
		}
	}
	if same(planned, live) {
		return live
	}
	return planned
}

// only are the values of a type.
func only[T any](values []any) []T {
	var all []T
	for _, value := range values {
		if one, ok := value.(T); ok {
			all = append(all, one)
		}
	}
	return all
}

func mergeObjects(planned object, former []object, live object) object {
	all := object{}
	for key, value := range live {
		if _, has := planned[key]; !has && slices.ContainsFunc(former, func(o object) bool { _, had := o[key]; return had }) {
			continue
		}
		all[key] = value
	}
	for key, value := range planned {
		now, has := live[key]
		if !has {
			all[key] = value
			continue
		}
		var before []any
		for _, o := range former {
			before = append(before, o[key])
		}
		all[key] = merge(key, value, before, now)
	}
	return all
}

// mergeLists merges lists by the identities of their elements, in the order of the live list.
func mergeLists(key string, planned []any, former [][]any, live []any) []any {
	want, ok := identities(planned)
	have, also := identities(live)
	if !ok || !also {
		return mergeInOrder(planned, live)
	}
	all := []any{}
	for i, now := range live {
		at := slices.Index(want, have[i])
		before := elements(former, have[i])
		switch {
		case at >= 0 && slices.Contains(whole, key):
			all = append(all, replaced(planned[at], now))
		case at >= 0:
			all = append(all, merge("", planned[at], before, now))
		case len(before) == 0:
			all = append(all, now)
		}
	}
	for i, value := range planned {
		if !slices.Contains(have, want[i]) {
			all = append(all, value)
		}
	}
	return all
}

// replaced returns the live element if it has what the plan says, otherwise the planned one.
func replaced(planned, live any) any {
	if agree(merge("", planned, nil, live), live) {
		return live
	}
	return planned
}

// mergeInOrder merges lists of elements without an identity. Lists of different lengths are not merged.
func mergeInOrder(planned, live []any) []any {
	if len(planned) != len(live) {
		return planned
	}
	all := []any{}
	for i, value := range planned {
		all = append(all, merge("", value, nil, live[i]))
	}
	return all
}

// elements are the elements of lists with an identity.
func elements(lists [][]any, identity string) []any {
	var all []any
	for _, list := range lists {
		ids, _ := identities(list)
		if at := slices.Index(ids, identity); at >= 0 {
			all = append(all, list[at])
		}
	}
	return all
}

// identities tell the elements of a list apart: the name or the id of objects, or the value itself. They are false for other lists.
func identities(list []any) ([]string, bool) {
	var all []string
	for _, value := range list {
		if o, ok := value.(object); ok {
			if name, named := o["name"].(string); named {
				value = name
			} else {
				value = o["id"]
			}
		}
		switch value.(type) {
		case string, bool, float64:
			all = append(all, strings.ToLower(fmt.Sprint(value)))
		default:
			return nil, false
		}
	}
	return all, true
}

// agree reports whether two values are the same, whatever the order of lists of elements with identities.
func agree(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for key := range a {
			if _, has := b[key]; !has || !agree(a[key], b[key]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, agree)
	}
	return same(a, b)
}

// same compares values that are no objects and no lists. Azure changes the case of ids and of words such as Tcp.
func same(a, b any) bool {
	x, ok := a.(string)
	y, also := b.(string)
	if ok && also {
		return x == y || strings.EqualFold(x, y) && !strings.ContainsAny(x, " \n")
	}
	switch a.(type) {
	case nil, bool, float64:
		return a == b
	}
	return false
}
