package wiring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table is the name of the nftables table in each namespace.
const Table = "kaz"

// Ruleset is an nftables table of the family inet. The empty one is no table.
type Ruleset struct {
	Chains map[string]Chain
	Sets   map[string]Set
}

// Chain is a list of rules.
type Chain struct {
	Hook  string // what makes it a base chain, "" for one that is jumped to
	Rules []string
}

// Set is a named set or map.
type Set struct {
	Kind string // "set" or "map"
	Type string // its type or typeof statement
	// Elements are the values by their keys, "" in a set.
	Elements map[string]string
}

func (s Set) element(key string) string {
	if value := s.Elements[key]; value != "" {
		return key + " : " + value
	}
	return key
}

// keys returns the elements' keys in order.
func (s Set) keys() []string { return slices.Sorted(maps.Keys(s.Elements)) }

// builder collects a ruleset.
type builder struct{ Ruleset }

func newBuilder() *builder {
	return &builder{Ruleset{Chains: map[string]Chain{}, Sets: map[string]Set{}}}
}

// base adds a base chain. hook is its hook statement.
func (b *builder) base(name, hook string, rules ...string) {
	b.Chains[name] = Chain{Hook: hook, Rules: rules}
}

func (b *builder) chain(name string, rules ...string) { b.Chains[name] = Chain{Rules: rules} }

func (b *builder) set(name, kind, typ string) map[string]string {
	elements := map[string]string{}
	b.Sets[name] = Set{Kind: kind, Type: typ, Elements: elements}
	return elements
}

// String returns the table in the syntax of nft.
func (r Ruleset) String() string {
	if len(r.Chains) == 0 && len(r.Sets) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", Table)
	for _, name := range slices.Sorted(maps.Keys(r.Sets)) {
		s := r.Sets[name]
		fmt.Fprintf(&b, "  %s %s {\n    %s\n", s.Kind, name, s.Type)
		for _, key := range s.keys() {
			fmt.Fprintf(&b, "    %s\n", s.element(key))
		}
		b.WriteString("  }\n")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Chains)) {
		c := r.Chains[name]
		fmt.Fprintf(&b, "  chain %s {\n", name)
		if c.Hook != "" {
			fmt.Fprintf(&b, "    %s\n", c.Hook)
		}
		for _, rule := range c.Rules {
			fmt.Fprintf(&b, "    %s\n", rule)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// Changes returns the commands, for one transaction, that turn one ruleset into another, and "" for equal rulesets.
// They touch only chains and elements that differ.
func Changes(have, want Ruleset) string {
	t := transaction{have: have, want: want}
	if len(have.Chains) == 0 && len(have.Sets) == 0 && (len(want.Chains) > 0 || len(want.Sets) > 0) {
		t.line("add table inet %s", Table)
	}
	// Chains and sets must exist before, and be deleted after, the rules that use them.
	t.make()
	for _, name := range slices.Sorted(maps.Keys(have.Chains)) {
		if fresh, stays := want.Chains[name]; !stays || !slices.Equal(fresh.Rules, have.Chains[name].Rules) {
			t.line("flush chain inet %s %s", Table, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.Sets)) {
		t.elements("delete", name, have.Sets[name], want.Sets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(want.Sets)) {
		t.elements("add", name, want.Sets[name], have.Sets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(want.Chains)) {
		if old, was := have.Chains[name]; !was || !slices.Equal(old.Rules, want.Chains[name].Rules) {
			for _, rule := range want.Chains[name].Rules {
				t.line("add rule inet %s %s %s", Table, name, rule)
			}
		}
	}
	t.remove()
	return t.String()
}

// transaction collects commands.
type transaction struct {
	strings.Builder
	have, want Ruleset
}

func (t *transaction) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// make adds new chains and sets, without content.
func (t *transaction) make() {
	for _, name := range slices.Sorted(maps.Keys(t.want.Chains)) {
		_, was := t.have.Chains[name]
		switch hook := t.want.Chains[name].Hook; {
		case was:
		case hook == "":
			t.line("add chain inet %s %s", Table, name)
		default:
			t.line("add chain inet %s %s { %s ; }", Table, name, hook)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.want.Sets)) {
		if _, was := t.have.Sets[name]; !was {
			t.line("add %s inet %s %s { %s ; }", t.want.Sets[name].Kind, Table, name, t.want.Sets[name].Type)
		}
	}
}

// remove deletes chains and sets that are not wanted.
func (t *transaction) remove() {
	for _, name := range slices.Sorted(maps.Keys(t.have.Chains)) {
		if _, stays := t.want.Chains[name]; !stays {
			t.line("delete chain inet %s %s", Table, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.have.Sets)) {
		if _, stays := t.want.Sets[name]; !stays {
			t.line("delete %s inet %s %s", t.have.Sets[name].Kind, Table, name)
		}
	}
}

// elements adds or deletes the elements of one set that the other set does not have, or has with another value.
func (t *transaction) elements(verb, name string, of, other Set) {
	var all []string
	for _, key := range of.keys() {
		if value, ok := other.Elements[key]; ok && value == of.Elements[key] {
			continue
		}
		if verb == "delete" {
			all = append(all, key)
		} else {
			all = append(all, of.element(key))
		}
	}
	// Long lines are slow to parse, and a line for each element is slower.
	const many = 500
	for chunk := range slices.Chunk(all, many) {
		t.line("%s element inet %s %s { %s }", verb, Table, name, strings.Join(chunk, ", "))
	}
}
