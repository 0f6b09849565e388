package azure

import "reflect"

// OwnerOf is [Ours] for an element type that is known at run time only.
func OwnerOf(elem reflect.Type, ours func(text []byte) bool) Owner {
	return Owner{elem: elem, ours: func(x raw) bool { return ours(x) }}
}
