package resources

import (
	"fmt"
	"strconv"
	"strings"
)

// expression is a parsed "[...]" of a template: a literal, or a call with what is
// selected from its result.
type expression struct {
	literal any    // string or float64 when call is ""
	call    string // name of the function
	args    []expression
	path    []expression // ".name" and "[index]" behind a call; names are literals
}

// parseExpression reads what stands between the brackets.
func parseExpression(text string) (expression, error) {
	p := &expressionParser{rest: strings.TrimSpace(text)}
	e, err := p.expression()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return e, fmt.Errorf("the language expression '%s' is not valid: %w", text, err)
	}
	return e, nil
}

type expressionParser struct {
	rest  string
	depth int
}

// deepest is how far expressions may be nested.
const deepest = 100

func (p *expressionParser) expression() (e expression, err error) {
	if p.depth++; p.depth > deepest {
		return e, fmt.Errorf("it is nested more than %d deep", deepest)
	}
	defer func() { p.depth-- }()
	p.rest = strings.TrimSpace(p.rest)
	switch {
	case p.rest == "":
		return e, fmt.Errorf("it ends where a value is expected")
	case p.rest[0] == '\'':
		e.literal, err = p.text()
		return e, err
	case p.rest[0] == '-' || p.rest[0] >= '0' && p.rest[0] <= '9':
		e.literal, err = p.number()
		return e, err
	}
	e.call = p.word()
	if e.call == "" {
		return e, fmt.Errorf("unexpected %q", p.rest)
	}
	if !p.eat('(') {
		return e, fmt.Errorf("expected ( after %s", e.call)
	}
	if e.args, err = p.list(); err != nil {
		return e, err
	}
	e.path, err = p.selectors()
	return e, err
}

func (p *expressionParser) text() (string, error) {
	var b strings.Builder
	s := p.rest[1:]
	for {
		i := strings.IndexByte(s, '\'')
		if i < 0 {
			return "", fmt.Errorf("a string is not closed")
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

func (p *expressionParser) number() (float64, error) {
	end := 1
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.rest[:end])
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", p.rest[:end])
	}
	p.rest = p.rest[end:]
	return float64(n), nil
}

func (p *expressionParser) word() string {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '_' || p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end]|0x20 >= 'a' && p.rest[end]|0x20 <= 'z') {
		end++
	}
	w := p.rest[:end]
	p.rest = p.rest[end:]
	return w
}

func (p *expressionParser) eat(c byte) bool {
	p.rest = strings.TrimSpace(p.rest)
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *expressionParser) list() ([]expression, error) {
	var args []expression
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
			return nil, fmt.Errorf("expected , or ) before %q", p.rest)
		}
	}
}

func (p *expressionParser) selectors() ([]expression, error) {
	var path []expression
	for {
		switch {
		case p.eat('.'):
			name := p.word()
			if name == "" {
				return nil, fmt.Errorf("expected a name before %q", p.rest)
			}
			path = append(path, expression{literal: name})
		case p.eat('['):
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			if !p.eat(']') {
				return nil, fmt.Errorf("expected ] before %q", p.rest)
			}
			path = append(path, e)
		default:
			return path, nil
		}
	}
}

// calls visits every call of a function in the expression.
func (e expression) calls(visit func(expression)) {
	if e.call != "" {
		visit(e)
	}
	for _, a := range e.args {
		a.calls(visit)
	}
	for _, a := range e.path {
		a.calls(visit)
	}
}

// inBrackets is the expression in a template's string, and whether it is one.
func inBrackets(s string) (string, bool) {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' || strings.HasPrefix(s, "[[") {
		return "", false
	}
	return s[1 : len(s)-1], true
}
