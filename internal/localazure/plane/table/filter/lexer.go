package filter

import (
	"fmt"
	"regexp"
	"strings"

	"kaz/internal/localazure/plane/table/odata"
)

// kind is what a token is.
type kind int

const (
	end kind = iota
	name
	constant
	opening
	closing
)

// lexer reads the tokens of a filter. The first error ends it.
type lexer struct {
	rest  string
	kind  kind
	text  string // as it is spelled
	value odata.Value
	err   error
}

var (
	quotedForm = regexp.MustCompile(`^([A-Za-z]*)'((?:[^']|'')*)'`)
	nameForm   = regexp.MustCompile(`^[\p{L}_][\p{L}\p{Nd}\p{Mn}\p{Mc}\p{Pc}]*`)
	numberForm = regexp.MustCompile(`^-?(?:INF|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)`)
)

// types are the types of quoted constants by what is before the quote.
var types = map[string]odata.Type{"": odata.String, "datetime": odata.DateTime, "guid": odata.GUID}

// next reads the next token.
func (l *lexer) next() {
	l.rest = strings.TrimLeft(l.rest, " \t\r\n")
	l.kind, l.text = end, ""
	if l.err != nil || l.rest == "" {
		return
	}
	switch {
	case l.rest[0] == '(' || l.rest[0] == ')':
		l.take(1)
		if l.kind = opening; l.text == ")" {
			l.kind = closing
		}
	case quotedForm.MatchString(l.rest):
		l.quoted()
	case numberForm.MatchString(l.rest):
		l.number()
	case nameForm.MatchString(l.rest):
		l.take(len(nameForm.FindString(l.rest)))
		l.named()
	default:
		l.err = fmt.Errorf("the filter has %q where a property, a constant or an operator is allowed", l.rest)
	}
}

func (l *lexer) take(n int) { l.text, l.rest = l.rest[:n], l.rest[n:] }

func (l *lexer) keep(v odata.Value, err error) {
	l.kind, l.value = constant, v
	if err != nil {
		l.kind, l.err = end, fmt.Errorf("the filter has a constant that is wrong: %w", err)
	}
}

// quoted reads a constant such as 'it”s', datetime'2025-01-01T00:00:00Z', guid'...' or X'00FF'.
func (l *lexer) quoted() {
	m := quotedForm.FindStringSubmatch(l.rest)
	l.take(len(m[0]))
	text := strings.ReplaceAll(m[2], "''", "'")
	if m[1] == "X" || m[1] == "x" || m[1] == "binary" {
		l.keep(odata.HexOf(text))
		return
	}
	t, known := types[m[1]]
	if !known {
		l.err = fmt.Errorf("the filter has %s: the constants that begin with datetime, guid, X and binary are allowed", m[0])
		return
	}
	l.keep(odata.Parse(t, text))
}

// number reads a number. An L behind it tells a long integer, and a D a floating point number.
func (l *lexer) number() {
	l.take(len(numberForm.FindString(l.rest)))
	t := odata.Int32
	if strings.ContainsAny(l.text, ".eEI") {
		t = odata.Double
	}
	number := l.text
	if l.rest != "" && strings.ContainsRune("LlDdFfMm", rune(l.rest[0])) {
		if t = odata.Double; l.rest[0] == 'L' || l.rest[0] == 'l' {
			t = odata.Int64
		}
		l.rest = l.rest[1:]
	}
	v, err := odata.Parse(t, number)
	if err != nil && t == odata.Int32 {
		v, err = odata.Parse(odata.Int64, number)
	}
	l.keep(v, err)
}

// named reads a word: a property, an operator, or a constant with a name.
func (l *lexer) named() {
	switch l.text {
	case "true", "false":
		l.keep(odata.BooleanOf(l.text == "true"), nil)
	case "NaN", "INF":
		l.keep(odata.Parse(odata.Double, l.text))
	default:
		l.kind = name
	}
}
