package expression_test

import (
	"strings"
	"testing"

	"kaz/internal/template/expression"
)

// Whatever a string of a template holds, the parser returns, and what it understands it
// understands again in its own spelling.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"concat('a', 'b')", "parameters('x').y[0]['z'].w", "if(equals(variables('a'), ''), 1, -2)", "'it''s'", "resourceId('A.B/c', 'x')",
		"a(b(c(','].x[1]", "a(", "a)", "'", "-", "99999999999999999999", "a().", "a()[", "a() b()", " a ( 'x' , 1 ) . b [ c ( ) ] ",
		"äöü()",
		strings.Repeat("a(", 200), "", "null()", "not(true())",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := expression.Parse(text)
		if err != nil {
			return
		}
		again, err := expression.Parse(e.String())
		if err != nil {
			t.Fatalf("%q is understood, its own spelling %q is not: %v", text, e, err)
		}
		if again.String() != e.String() {
			t.Fatalf("%q is %q, and that is %q", text, e, again)
		}
	})
}
