package plan

import (
	"iter"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Shared is a list of sub-resources in a document that others write too. A planner names the sub-resources that it
// writes or removes. All others stay as they are.
type Shared[P any] struct {
	had     []azure.Child[P]
	written []azure.Child[P]
	decided map[string]bool // what is written or removed, by name in lower case
}

// SharedList is a list as Azure has it.
func SharedList[P any](had []azure.Child[P]) Shared[P] {
	return Shared[P]{had: had, decided: map[string]bool{}}
}

// Write adds an element, or replaces the element with the same name.
func (s *Shared[P]) Write(c azure.Child[P]) {
	if i := s.index(c.Name); i >= 0 {
		s.written[i] = c
		return
	}
	s.decided[strings.ToLower(c.Name)] = true
	s.written = append(s.written, c)
}

// Remove takes an element out.
func (s *Shared[P]) Remove(name string) {
	if i := s.index(name); i >= 0 {
		s.written = slices.Delete(s.written, i, i+1)
	}
	s.decided[strings.ToLower(name)] = true
}

// index is the index of an element among the written ones, -1 if it is not there.
func (s *Shared[P]) index(name string) int {
	if !s.Decides(name) {
		return -1
	}
	return slices.IndexFunc(s.written, func(c azure.Child[P]) bool { return strings.EqualFold(c.Name, name) })
}

// Decides reports whether an element is written or removed.
func (s Shared[P]) Decides(name string) bool { return s.decided[strings.ToLower(name)] }

// All is the list as it will be.
func (s Shared[P]) All() iter.Seq[azure.Child[P]] {
	return func(yield func(azure.Child[P]) bool) {
		for _, c := range s.had {
			if !s.Decides(c.Name) && !yield(c) {
				return
			}
		}
		for _, c := range s.written {
			if !yield(c) {
				return
			}
		}
	}
}

// Has reports whether an element of the list, as it will be, has a property.
func (s Shared[P]) Has(property func(azure.Child[P]) bool) bool {
	for c := range s.All() {
		if property(c) {
			return true
		}
	}
	return false
}

// Written are the elements for the view of the document, nil if nothing is decided.
func (s Shared[P]) Written() []azure.Child[P] {
	if len(s.decided) > 0 && s.written == nil {
		return []azure.Child[P]{}
	}
	return s.written
}

// Owner tells [Node.Owning] which elements are decided.
func (s Shared[P]) Owner() azure.Owner { return azure.Named[azure.Child[P]](s.Decides) }
