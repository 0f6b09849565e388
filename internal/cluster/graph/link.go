package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Linked is a cluster's units with what follows from their references.
type Linked struct {
	// Units are in an order in which each stands behind those that it waits for.
	Units []*LinkedUnit
	all   map[string]map[string]*Resource
}

// LinkedUnit is a unit with its order and what it gets from others.
type LinkedUnit struct {
	Name  string
	Unit  *Unit
	After []string // units that must be complete first
	// Resources are in an order in which each stands behind those that it waits for.
	Resources []LinkedResource
	// Inputs are values of resources of other units, by the name of the parameter.
	Inputs map[string]Runtime
	// Outputs are values for other units.
	Outputs map[string]Runtime
	// Parameters are the template's parameters that the unit uses.
	Parameters []string
}

// LinkedResource is a resource and the symbols of its unit that it waits for.
type LinkedResource struct {
	*Resource
	DependsOn []string
}

// Resource returns the resource that a reference is about, nil for one that exists.
func (l Linked) Resource(r Ref) *Resource { return l.all[r.unit][r.symbol] }

// Unit returns a unit by its name, nil for none.
func (l Linked) Unit(name string) *LinkedUnit {
	i := slices.IndexFunc(l.Units, func(u *LinkedUnit) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return l.Units[i]
}

// OutputName is the name of the output of a unit, and of the parameter of another, that carries a value.
func OutputName(r Runtime) string {
	unit, symbol := r.Of.Target()
	return Camel(unit) + upper(Camel(symbol)) + upper(r.Path)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Camel makes an identifier of a name with dashes: poolGeneral of pool-general.
func Camel(s string) string {
	first, rest, more := strings.Cut(s, "-")
	if !more || rest == "" {
		return first
	}
	return first + upper(Camel(rest))
}

// Link links units. Its error names everything that does not fit.
func Link(units []*Unit) (Linked, error) {
	l := Linked{all: map[string]map[string]*Resource{}}
	if err := l.index(units); err != nil {
		return l, err
	}
	byName := map[string]*LinkedUnit{}
	for _, u := range units {
		linked, err := l.link(u)
		if err != nil {
			return l, err
		}
		byName[u.Name] = linked
	}
	for _, u := range byName {
		for _, input := range u.Inputs {
			byName[input.Of.unit].Outputs[OutputName(input)] = input
		}
	}
	order, err := sorted("unit", slices.Sorted(maps.Keys(byName)), func(name string) []string { return byName[name].After })
	if err != nil {
		return l, err
	}
	for _, name := range order {
		l.Units = append(l.Units, byName[name])
	}
	return l, nil
}

// index checks that units, symbols and resources are unique.
func (l Linked) index(units []*Unit) error {
	ids := map[string]string{}
	for _, u := range units {
		if l.all[u.Name] != nil {
			return fmt.Errorf("two units have the name %s", u.Name)
		}
		l.all[u.Name] = map[string]*Resource{}
		for _, r := range u.Resources {
			where := u.Name + "/" + r.Symbol
			if l.all[u.Name][r.Symbol] != nil {
				return fmt.Errorf("unit %s has two resources with the symbol %s", u.Name, r.Symbol)
			}
			l.all[u.Name][r.Symbol] = r
			if r.APIVersion() == "" {
				return fmt.Errorf("%s: no api-version is known for %s", where, r.Type)
			}
			if strings.Count(r.Type, "/") != strings.Count(r.Name, "/")+1 {
				return fmt.Errorf("%s: the name %q does not fit to the type %s: want a segment for each segment behind the provider",
					where, r.Name,
					r.Type)
			}
			id := strings.ToLower(fmt.Sprint(u.Group, " ", r.Scope, " ", r.Type, " ", r.Name))
			if other, had := ids[id]; had {
				return fmt.Errorf("%s and %s are the same resource: %s %s", other, where, r.Type, r.Name)
			}
			ids[id] = where
		}
	}
	return nil
}

// uses is what a resource of a unit refers to.
type uses struct {
	own, units, parameters map[string]bool
	inputs                 map[string]Runtime
	missing                Ref
}

// uses finds what a resource refers to.
func (l Linked) uses(u *Unit, r *Resource) uses {
	found := uses{own: map[string]bool{}, units: map[string]bool{}, parameters: map[string]bool{}, inputs: map[string]Runtime{}}
	use := func(ref Ref) {
		_, exists := ref.Exists()
		switch {
		case exists || ref.IsZero():
		case l.all[ref.unit][ref.symbol] == nil:
			found.missing = ref
		case ref.unit != u.Name:
			found.units[ref.unit] = true
		case ref.symbol != r.Symbol:
			found.own[ref.symbol] = true
		}
	}
	use(r.Scope)
	for _, ref := range r.After {
		use(ref)
	}
	if r.Condition != "" {
		found.parameters[r.Condition] = true
	}
	Walk(r.Body, func(value any) {
		switch value := value.(type) {
		case Port:
			use(value.ref())
		case Runtime:
			use(value.Of)
			if _, exists := value.Of.Exists(); !exists && value.Of.unit != u.Name {
				found.inputs[OutputName(value)] = value
			}
		case Parameter:
			found.parameters[string(value)] = true
		}
	})
	return found
}

// link finds what a unit needs.
func (l Linked) link(u *Unit) (*LinkedUnit, error) {
	linked := &LinkedUnit{Name: u.Name, Unit: u, Inputs: map[string]Runtime{}, Outputs: map[string]Runtime{}}
	after, parameters := map[string]bool{}, map[string]bool{}
	needs := map[string][]string{}
	for _, r := range u.Resources {
		found := l.uses(u, r)
		if missing := found.missing; !missing.IsZero() {
			return nil, fmt.Errorf("%s/%s refers to %s/%s, which does not exist", u.Name, r.Symbol, missing.unit, missing.symbol)
		}
		needs[r.Symbol] = slices.Sorted(maps.Keys(found.own))
		maps.Copy(after, found.units)
		maps.Copy(parameters, found.parameters)
		maps.Copy(linked.Inputs, found.inputs)
	}
	order, err := sorted("resource of unit "+u.Name, slices.Sorted(maps.Keys(l.all[u.Name])), func(s string) []string { return needs[s] })
	if err != nil {
		return nil, err
	}
	for _, symbol := range order {
		linked.Resources = append(linked.Resources, LinkedResource{l.all[u.Name][symbol], needs[symbol]})
	}
	linked.After, linked.Parameters = slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(parameters))
	return linked, nil
}

// Walk visits the values of a tree that are not maps or lists, in a fixed order.
func Walk(tree any, visit func(any)) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			Walk(tree[key], visit)
		}
	case []any:
		for _, item := range tree {
			Walk(item, visit)
		}
	case Keyed:
		visit(tree.Key)
		Walk(tree.Value, visit)
	case Concat:
		for _, part := range tree {
			Walk(part, visit)
		}
	default:
		visit(tree)
	}
}

// sorted orders names so that each stands behind what it needs, and otherwise by name. A circle is an error that names it.
func sorted(what string, names []string, needs func(string) []string) ([]string, error) {
	var order, path []string
	done := map[string]bool{}
	var visit func(string) error
	visit = func(name string) error {
		if i := slices.Index(path, name); i >= 0 {
			return fmt.Errorf("each %s waits for the next one: %s -> %s", what, strings.Join(path[i:], " -> "), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, need := range needs(name) {
			if err := visit(need); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		order = append(order, name)
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}
