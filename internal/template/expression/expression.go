// Package expression reads the expressions of templates: what is between the brackets of "[concat('a', 'b')]". Layer L1: it knows the
// spelling of expressions, and what evaluates them knows the functions.
package expression

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure/short"
)

// Expression is a parsed "[...]" of a template: a literal, or a call with what is
// selected from its result.
type Expression struct {
	// Literal is a string or a float64. It counts when Call is "".
	Literal any
	// Call is the name of the function that is called, as it is written.
	Call string
	Args []Expression
	// Path is ".name" and "[index]" behind a call. Names are literals.
	Path []Expression
}

// longest is how many characters an expression may have, as Azure documents it.
const longest = 24_576

// Deepest is how deep expressions may be nested, and variables may refer to others.
const Deepest = 100

// Parse reads an expression, without the brackets around it.
func Parse(text string) (Expression, error) {
	p := &parser{rest: strings.TrimSpace(text)}
	if len(text) > longest {
		return Expression{}, short.Errorf("the language expression has %d characters: at most %d are allowed", len(text), longest)
	}
	e, err := p.expression()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = short.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return e, short.Errorf("the language expression '%s' is not valid: %w", text, err)
	}
	return e, nil
}

// String is the expression in the shortest spelling that Parse reads as the same.
func (e Expression) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

func (e Expression) write(b *strings.Builder) {
	switch v := e.Literal.(type) {
	case string:
		b.WriteString("'" + strings.ReplaceAll(v, "'", "''") + "'")
		return
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
		return
	}
	b.WriteString(e.Call + "(")
	for i, a := range e.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		a.write(b)
	}
	b.WriteString(")")
	for _, step := range e.Path {
		b.WriteString("[")
		step.write(b)
		b.WriteString("]")
	}
}

// Calls visits every call of a function in the expression, outer ones first.
func (e Expression) Calls(visit func(call Expression)) {
	if e.Call != "" {
		visit(e)
	}
	for _, a := range slices.Concat(e.Args, e.Path) {
		a.Calls(visit)
	}
}

// Text returns the expression in a string of a template, and whether the string is an expression. An expression
// begins with one bracket, not two, and ends with a bracket.
func Text(s string) (string, bool) {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' || strings.HasPrefix(s, "[[") {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// Visit visits all expressions in a value of a template, with their paths in it,
// such as ".properties.rules[2].name".
func Visit(value any, visit func(path string, e Expression, err error)) {
	visitIn("", value, visit)
}

func visitIn(path string, value any, visit func(string, Expression, error)) {
	switch v := value.(type) {
	case string:
		if text, ok := Text(v); ok {
			e, err := Parse(text)
			visit(path, e, err)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visitIn(path+"."+key, key, visit)
			visitIn(path+"."+key, v[key], visit)
		}
	case []any:
		for i, x := range v {
			visitIn(path+"["+strconv.Itoa(i)+"]", x, visit)
		}
	}
}

// parser reads an expression from the left.
type parser struct {
	rest  string
	depth int
}

func (p *parser) expression() (e Expression, err error) {
	if p.depth++; p.depth > Deepest {
		return e, short.Errorf("it is nested more than %d deep", Deepest)
	}
	defer func() { p.depth-- }()
	p.rest = strings.TrimSpace(p.rest)
	switch {
	case p.rest == "":
		return e, short.Errorf("it ends where a value is expected")
	case p.rest[0] == '\'':
		e.Literal, err = p.text()
		return e, err
	case p.rest[0] == '-' || p.rest[0] >= '0' && p.rest[0] <= '9':
		e.Literal, err = p.number()
		return e, err
	}
	e.Call = p.word()
	if e.Call == "" {
		return e, short.Errorf("unexpected %q", p.rest)
	}
	if strings.HasPrefix(p.rest, ".") && p.eat('.') { // a function of the template, by its namespace
		name := p.word()
		if name == "" {
			return e, short.Errorf("expected the name of a function after %s", e.Call)
		}
		e.Call += "." + name
	}
	if !p.eat('(') {
		return e, short.Errorf("expected ( after %s", e.Call)
	}
	if e.Args, err = p.list(); err != nil {
		return e, err
	}
	e.Path, err = p.selectors()
	return e, err
}

func (p *parser) text() (string, error) {
	var b strings.Builder
	s := p.rest[1:]
	for {
		i := strings.IndexByte(s, '\'')
		if i < 0 {
			return "", short.Errorf("a string is not closed")
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, "'") {
			p.rest = s
			return b.String(), nil
		}
		b.WriteByte('\'')
		s = s[1:]
	}
}

func (p *parser) number() (float64, error) {
	end := 1
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.rest[:end])
	if err != nil {
		return 0, short.Errorf("%q is not a whole number", p.rest[:end])
	}
	p.rest = p.rest[end:]
	return float64(n), nil
}

func (p *parser) word() string {
	end := 0
	for end < len(p.rest) &&
		(p.rest[end] == '_' || p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end]|0x20 >= 'a' && p.rest[end]|0x20 <= 'z') {
		end++
	}
	w := p.rest[:end]
	p.rest = p.rest[end:]
	return w
}

func (p *parser) eat(c byte) bool {
	p.rest = strings.TrimSpace(p.rest)
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) list() ([]Expression, error) {
	var args []Expression
	if p.eat(')') {
		return nil, nil
	}
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
		if p.eat(')') {
			return args, nil
		}
		if !p.eat(',') {
			return nil, short.Errorf("expected , or ) before %q", p.rest)
		}
	}
}

func (p *parser) selectors() ([]Expression, error) {
	var path []Expression
	for {
		switch {
		case p.eat('.'):
			name := p.word()
			if name == "" {
				return nil, short.Errorf("expected a name before %q", p.rest)
			}
			path = append(path, Expression{Literal: name})
		case p.eat('['):
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			if !p.eat(']') {
				return nil, short.Errorf("expected ] before %q", p.rest)
			}
			path = append(path, e)
		default:
			return path, nil
		}
	}
}
