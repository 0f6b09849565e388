package template

import (
	"fmt"
	"strconv"
	"strings"

	"kaz/internal/template/expression"
	"kaz/internal/template/fault"
)

// dependencies notes what must exist before a resource: what the resource lists, and what its expressions refer to.
func (t *Template) dependencies(r *Resource) error {
	t.scope.loops = r.loops
	defer func() { t.scope.loops = nil }()
	for i, x := range r.after {
		path := r.path + ".dependsOn[" + strconv.Itoa(i) + "]"
		value, err := t.scope.evaluate(x)
		if err != nil {
			return fault.At(path, err)
		}
		s, _ := value.(string)
		id := t.scope.target(s)
		copies, isLoop := t.loops[strings.ToLower(s)]
		made, isSymbol := t.scope.symbols[s]
		switch {
		case isLoop:
			if err := t.scope.work(len(copies)); err != nil {
				return fault.At(path, err)
			}
			r.DependsOn = append(r.DependsOn, copies...)
		case isSymbol:
			if err := t.scope.work(len(made)); err != nil {
				return fault.At(path, err)
			}
			t.after(r, made)
		case t.has(id):
			r.DependsOn = append(r.DependsOn, t.scope.byID[id.Key()].ID)
		case !t.dropped[id.Key()]:
			return fault.Invalid(path, "The resource '%s' is not defined in the template. Please see https://aka.ms/arm-syntax-resources "+
				"for usage details", s)
		}
	}
	var failure error
	expression.Visit(r.body, func(path string, e expression.Expression, err error) {
		if failure == nil && err == nil {
			err = t.references(r, e)
		}
		if failure == nil && err != nil {
			failure = fault.At(r.path+path, fault.In(e.String(), err))
		}
	})
	// Errors in the template of a nested deployment are found when that template is deployed.
	expression.Visit(r.outer, func(_ string, e expression.Expression, err error) {
		if err == nil {
			_ = t.references(r, e)
		}
	})
	return failure
}

// references notes the resources of the template that an expression asks for by name. A
// resource given by its id is not waited for.
func (t *Template) references(r *Resource, e expression.Expression) (failure error) {
	e.Calls(func(call expression.Expression) {
		name := strings.ToLower(call.Call)
		if _, err := t.scope.check(call); err != nil && failure == nil {
			failure = err
		}
		if name == "references" && len(call.Args) > 0 {
			symbol, _ := call.Args[0].Literal.(string)
			t.after(r, t.scope.symbols[symbol])
		}
		if name != "reference" && !strings.HasPrefix(name, "list") || len(call.Args) == 0 {
			return
		}
		if of, err := t.scope.compute(call.Args[0]); err == nil && !strings.HasPrefix(fmt.Sprint(of), "/") {
			r.DependsOn = append(r.DependsOn, t.scope.target(fmt.Sprint(of)))
		}
	})
	return failure
}

// after makes a resource wait for others of the template, but for those that the template does not make.
func (t *Template) after(r *Resource, others []*Resource) {
	for _, other := range others {
		if t.has(other.ID) {
			r.DependsOn = append(r.DependsOn, other.ID)
		}
	}
}

// order sorts the resources so that each comes after what it depends on.
func (t *Template) order() error {
	o := sorting{of: t, done: map[*Resource]bool{}, begun: map[*Resource]bool{}}
	for _, r := range t.Resources {
		if err := o.visit(r); err != nil {
			return err
		}
	}
	t.Resources = o.sorted
	return nil
}

// sorting is a sort by dependencies under way.
type sorting struct {
	of          *Template
	sorted      []*Resource
	begun, done map[*Resource]bool
}

func (o *sorting) visit(r *Resource) error {
	if o.done[r] {
		return nil
	}
	if o.begun[r] {
		return fault.Invalid(r.path, "Circular dependency detected on resource: '%s'. Please see https://aka.ms/arm-syntax-resources for "+
			"usage details", r.ID)
	}
	o.begun[r] = true
	for _, id := range append(r.DependsOn, r.ID.Parent()) {
		if before := o.of.scope.byID[id.Key()]; before != nil {
			if err := o.visit(before); err != nil {
				return err
			}
		}
	}
	o.done[r] = true
	o.sorted = append(o.sorted, r)
	return nil
}
