// Package difference compares resources as what-if shows them: what a deployment would change, without what changes by itself. Layer L2.
package difference

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/model"
)

// Settled is a resource without what changes by itself, and without what no request can set.
func Settled(view behaviour.Object) behaviour.Object {
	o := behaviour.Clone(view)
	model.Official().RemoveReadOnly(behaviour.Text(o, "type"), o)
	unsettle(o)
	return o
}

// unsettled are the fields that change by themselves: states, times and versions that a write makes. No request can set them.
var unsettled = []string{"etag", "provisioningState", "resourceGuid", "systemData", "timeCreated", "createdBy", "createdOn",
	"updatedBy", "updatedOn", "lastEnabledTime", "lastModifiedTime", "lastUpdatedTime", "secretUriWithVersion"}

func unsettle(value any) {
	switch v := value.(type) {
	case behaviour.Object:
		for _, field := range unsettled {
			delete(v, field)
		}
		for name, x := range v {
			if attributes, _ := x.(behaviour.Object); name == "attributes" {
				delete(attributes, "created")
				delete(attributes, "updated")
			}
			if name != "tags" { // a tag may have any name
				unsettle(x)
			}
		}
	case []any:
		for _, x := range v {
			unsettle(x)
		}
	}
}

// Merged is a resource after a request without a known answer.
func Merged(before, sent behaviour.Object) behaviour.Object {
	after := behaviour.Clone(before)
	for key, value := range sent {
		inner, isObject := value.(behaviour.Object)
		if old, also := after[key].(behaviour.Object); isObject && also {
			after[key] = Merged(old, inner)
		} else {
			after[key] = value
		}
	}
	return after
}

// Between returns the properties that differ, each with its path, as what-if shows them.
func Between(before, after behaviour.Object) []any { return differences("", before, after) }

// differences are those of the properties at a path.
func differences(path string, before, after behaviour.Object) []any {
	all := []any{}
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		all = append(all, difference(strings.TrimPrefix(path+"."+name, "."), before[name], after[name])...)
	}
	return all
}

// difference is how one property differs, in objects the properties in it.
func difference(path string, before, after any) []any {
	if behaviour.Equal(before, after) {
		return nil
	}
	a, objects := before.(behaviour.Object)
	b, also := after.(behaviour.Object)
	if objects && also {
		return differences(path, a, b)
	}
	change := behaviour.Object{"path": path, "propertyChangeType": "Modify", "before": before, "after": after}
	x, arrays := before.([]any)
	y, also := after.([]any)
	switch {
	case before == nil:
		change["propertyChangeType"] = "Create"
		delete(change, "before")
	case after == nil:
		change["propertyChangeType"] = "Delete"
		delete(change, "after")
	case arrays && also:
		return []any{behaviour.Object{"path": path, "propertyChangeType": "Array", "children": elements(x, y)}}
	}
	return []any{change}
}

// elements are the elements that differ of two arrays, each with its index.
func elements(before, after []any) []any {
	all := []any{}
	for i := range max(len(before), len(after)) {
		var a, b any
		if i < len(before) {
			a = before[i]
		}
		if i < len(after) {
			b = after[i]
		}
		x, objects := a.(behaviour.Object)
		y, also := b.(behaviour.Object)
		if objects && also && !behaviour.Equal(a, b) {
			all = append(all, behaviour.Object{"path": strconv.Itoa(i), "propertyChangeType": "Modify", "children": differences("", x, y)})
			continue
		}
		all = append(all, difference(strconv.Itoa(i), a, b)...)
	}
	return all
}
