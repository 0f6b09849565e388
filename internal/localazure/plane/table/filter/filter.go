// Package filter reads the conditions of queries of tables, such as "Price gt 10 and (City eq 'Oslo' or not Sold)". Layer L2.
package filter

import (
	"fmt"

	"kaz/internal/localazure/plane/table/odata"
)

// Filter is a condition. It gets the values of properties by their names, and the zero value for those that are absent. A nil Filter is
// met by everything.
type Filter func(property func(name string) odata.Value) bool

// Matches reports whether the properties meet the condition.
func (f Filter) Matches(property func(name string) odata.Value) bool { return f == nil || f(property) }

// The limits of a condition.
const (
	mostCharacters = 32 << 10
	mostNested     = 100
)

// Parse reads a condition, nil for an empty text.
func Parse(text string) (Filter, error) {
	if len(text) > mostCharacters {
		return nil, fmt.Errorf("the filter has %d characters, at most %d are allowed", len(text), mostCharacters)
	}
	p := &parser{lexer: lexer{rest: text}}
	if p.next(); p.kind == end {
		return nil, p.err
	}
	f := p.or()
	if p.err == nil && p.kind != end {
		p.fail("the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

// parser reads by recursive descent. After an error, which it keeps, all tokens are the end.
type parser struct {
	lexer
	depth int
}

func (p *parser) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("the filter has %q where %s is allowed", p.text+p.rest, want)
	}
	p.kind = end
}

// word takes a word, and reports whether it is the next token.
func (p *parser) word(text string) bool {
	if p.kind != name || p.text != text {
		return false
	}
	p.next()
	return true
}

func (p *parser) or() Filter {
	left := p.and()
	for p.word("or") {
		a, b := left, p.and()
		left = func(property func(string) odata.Value) bool { return a(property) || b(property) }
	}
	return left
}

func (p *parser) and() Filter {
	left := p.not()
	for p.word("and") {
		a, b := left, p.not()
		left = func(property func(string) odata.Value) bool { return a(property) && b(property) }
	}
	return left
}

func (p *parser) not() Filter {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > mostNested {
		p.fail(fmt.Sprintf("no more than %d nested conditions", mostNested))
		return nil
	}
	if p.word("not") {
		a := p.not()
		return func(property func(string) odata.Value) bool { return !a(property) }
	}
	if p.kind != opening {
		return p.comparison()
	}
	p.next()
	inner := p.or()
	if p.kind != closing {
		p.fail("a closing parenthesis")
		return nil
	}
	p.next()
	return inner
}

// operand is one side of a comparison.
type operand struct {
	name  string // "" for a constant
	value odata.Value
}

func (o operand) get(property func(string) odata.Value) odata.Value {
	if o.name == "" {
		return o.value
	}
	return property(o.name)
}

// words are the words between conditions.
var words = map[string]bool{"and": true, "or": true, "not": true}

// operators are the comparisons, by what they say of the order of both sides.
var operators = map[string]func(order int) bool{
	"eq": func(order int) bool { return order == 0 },
	"ne": func(order int) bool { return order != 0 },
	"gt": func(order int) bool { return order > 0 },
	"ge": func(order int) bool { return order >= 0 },
	"lt": func(order int) bool { return order < 0 },
	"le": func(order int) bool { return order <= 0 },
}

// comparison reads two operands with an operator, or a truth alone. Values that cannot be compared, such as an absent one, meet nothing.
func (p *parser) comparison() Filter {
	left := p.operand()
	meets, known := operators[p.text]
	if p.kind != name || !known {
		return func(property func(string) odata.Value) bool { return left.get(property).Bool() }
	}
	p.next()
	right := p.operand()
	return func(property func(string) odata.Value) bool {
		order, comparable := odata.Compare(left.get(property), right.get(property))
		return comparable && meets(order)
	}
}

func (p *parser) operand() (o operand) {
	_, operator := operators[p.text]
	switch {
	case p.kind == constant:
		o.value = p.value
	case p.kind == name && !operator && !words[p.text]:
		o.name = p.text
	default:
		p.fail("a property or a constant")
		return o
	}
	p.next()
	return o
}
