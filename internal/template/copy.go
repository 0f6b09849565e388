package template

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// loop is one round of a copy loop.
type loop struct {
	name  string
	index int
	// resource says that the loop makes resources, and not elements of an array.
	resource bool
}

// mostCopies is how often a loop may go round, as Azure documents it.
const mostCopies = 800

// rounds evaluates the count of a loop.
func (s *evaluator) rounds(count any) (int, error) {
	value, err := s.evaluate(count)
	if err != nil {
		return 0, err
	}
	n, ok := language.Whole(value)
	if !ok || n < 0 || n > mostCopies {
		return 0, short.Errorf("the copy count '%v' is not valid: it must be a whole number from 0 to %d", value, mostCopies)
	}
	return int(n), nil
}

// round calls f in one round of a loop.
func (s *evaluator) round(l loop, f func() error) error {
	if err := s.work(1); err != nil {
		return err
	}
	s.loops = append(s.loops, l)
	defer func() { s.loops = s.loops[:len(s.loops)-1] }()
	return f()
}

// repeat evaluates an input once for each round of a loop.
func (s *evaluator) repeat(name string, count, input any) ([]any, error) {
	n, err := s.rounds(count)
	if err != nil {
		return nil, fault.Under(".count", err)
	}
	all := make([]any, n)
	for i := range all {
		err := s.round(loop{name: name, index: i}, func() (err error) {
			if all[i], err = s.evaluate(input); err != nil {
				return err
			}
			return s.grow(language.SizeOf(all[i]))
		})
		if err != nil {
			return nil, fault.Under(".input", err)
		}
	}
	return all, nil
}

// propertyLoops are the loops of an object that has some: "copy": [{"name", "count",
// "input"}, ...]. Each makes an array under its name.
func propertyLoops(o Object) ([]Object, bool) {
	array, _ := o["copy"].([]any)
	loops, ok := language.AllOf[Object](array)
	named := func(l Object) bool {
		_, ok := l["name"].(string)
		_, input := l["input"]
		return ok && input
	}
	return loops, ok && len(loops) > 0 && !slices.ContainsFunc(loops, func(l Object) bool { return !named(l) })
}

// repeatInto adds the arrays that loops make to an object.
func (s *evaluator) repeatInto(object Object, loops []Object) error {
	for i, l := range loops {
		name, _ := l["name"].(string)
		array, err := s.repeat(name, l["count"], l["input"])
		if err != nil {
			return fault.Under(".copy["+strconv.Itoa(i)+"]", err)
		}
		object[name] = array
	}
	return nil
}

// copyIndex is copyIndex([loop], [offset]). Without a name it is the index of the loop
// that makes the resource.
func copyIndex(s *evaluator, args []any) (any, error) {
	var name string
	if len(args) > 0 {
		if text, ok := args[0].(string); ok {
			name, args = text, args[1:]
		}
	}
	var offset int64
	if len(args) > 0 {
		n, ok := language.Whole(args[0])
		if !ok || len(args) > 1 {
			return nil, language.Expects("the name of a loop and a whole number")
		}
		offset = n
	}
	for _, l := range slices.Backward(s.loops) {
		if name == "" && (l.resource || !s.loops[0].resource) || name != "" && strings.EqualFold(l.name, name) {
			return language.Number(int64(l.index) + offset), nil
		}
	}
	return nil, errors.New("the template function 'copyIndex' is not expected at this location. The function can only be used in a " +
		"resource with copy specified")
}

// addCopies takes the resources that a loop makes into the template.
func (t *Template) addCopies(symbol, path string, document Object) error {
	spec := path + ".copy"
	copies, _ := document["copy"].(Object)
	name, ok := copies["name"].(string)
	if !ok || name == "" {
		return fault.Invalid(spec, "The 'copy' of a template resource has no name")
	}
	n, err := t.scope.rounds(copies["count"])
	if err != nil {
		return fault.At(spec+".count", err)
	}
	batch, err := batchOf(copies, n)
	if err != nil {
		return fault.At(spec, err)
	}
	key := strings.ToLower(name)
	t.loops[key] = []azure.ID{}
	var before, now []azure.ID // of the last batch, and of this one
	for i := range n {
		if i%batch == 0 {
			before, now = now, nil
		}
		first := len(t.Resources)
		err := t.scope.grow(language.SizeOf(document))
		if err == nil {
			err = t.scope.round(loop{name, i, true}, func() error { return t.addOne(nil, symbol, path, document) })
		}
		if err != nil {
			return fault.At(path, err)
		}
		if len(t.Resources) > first { // else its condition is false
			r := t.Resources[first] // the resources inside of it come behind it
			r.DependsOn = append(r.DependsOn, before...)
			now, t.loops[key] = append(now, r.ID), append(t.loops[key], r.ID)
		}
	}
	return nil
}

// batchOf is how many copies are made side by side: all, unless the loop is serial.
func batchOf(copies Object, n int) (int, error) {
	mode, _ := copies["mode"].(string)
	switch strings.ToLower(mode) {
	case "", "parallel":
		return max(1, n), nil
	case "serial":
		batch, ok := copies["batchSize"]
		if !ok {
			return 1, nil
		}
		if size, whole := language.Whole(batch); whole && size > 0 && size <= mostCopies {
			return int(size), nil
		}
		return 0, short.Errorf("the batch size '%v' of the copy is not valid: it must be a whole number from 1 to %d", batch, mostCopies)
	}
	return 0, short.Errorf("the mode '%s' of the copy is not valid: it must be Parallel or Serial", mode)
}
