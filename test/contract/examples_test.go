package contract

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	documented "kaz/test/contract/examples"
)

// examples are the documented examples in a file of an official module, by the name of their method and what follows it.
type examples struct {
	testing.TB
	module *documented.Module
	found  map[string]documented.Example
}

// readExamples reads the examples in a file of a module, which has a function that a file of the same folder defines.
func readExamples(t testing.TB, function any, file string) *examples {
	t.Helper()
	m, err := documented.Read(documented.Dir(function), file)
	if err != nil {
		t.Fatal(err)
	}
	e := &examples{TB: t, module: m, found: map[string]documented.Example{}}
	for _, example := range m.Examples() {
		_, name, _ := strings.Cut(example.Name, "_")
		e.found[name] = example
	}
	return e
}

func (e *examples) named(name string) documented.Example {
	e.Helper()
	example, ok := e.found[name]
	if !ok {
		e.Fatalf("the module has no example of %s", name)
	}
	return example
}

// argument is an argument of the example's call of its method. The context is argument 0.
func argument[T any](e *examples, method string, i int) T {
	e.Helper()
	arguments := e.named(method).Arguments
	if i >= len(arguments) {
		e.Fatalf("the example of %s has no argument %d", method, i)
	}
	v, err := e.module.Value(arguments[i], reflect.TypeFor[T]())
	if err != nil {
		e.Fatal(err)
	}
	return v.Interface().(T)
}

// answer is what the example says that Azure answers.
func answer[T any](e *examples, method string) T {
	e.Helper()
	example := e.named(method)
	if example.Answer == nil {
		e.Fatalf("the example of %s has no answer", method)
	}
	v, err := e.module.Value(example.Answer, reflect.TypeFor[T]())
	if err != nil {
		e.Fatal(err)
	}
	return v.Interface().(T)
}

// lacks returns the paths at which got lacks, or has otherwise, what want has. Elements of lists that have names are found by them.
func lacks(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		var all []string
		for name, value := range want {
			all = append(all, lacks(path+"."+name, value, have[name])...)
		}
		slices.Sort(all)
		return all
	case []any:
		have, _ := got.([]any)
		var all []string
		for i, value := range want {
			all = append(all, lacks(fmt.Sprintf("%s[%d]", path, i), value, elementLike(have, i, value))...)
		}
		return all
	}
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v, want %v", path, got, want)}
}

// elementLike is the element with the name of another one, or at the same place.
func elementLike(all []any, i int, like any) any {
	if named, _ := like.(map[string]any); named["name"] != nil {
		for _, one := range all {
			if o, _ := one.(map[string]any); o["name"] == named["name"] {
				return one
			}
		}
		return nil
	}
	if i < len(all) {
		return all[i]
	}
	return nil
}
