package route

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Part is a part of a request that a condition looks at.
type Part int

// The parts.
const (
	Method Part = iota
	Header
	Query
)

// Condition is what a part of a request must be.
type Condition struct {
	Part Part
	Name string // of the header or the parameter of the query
	// Pattern is a regular expression for all of the value, in the syntax RE2.
	Pattern string
}

// Variable is the server variable of the gateway that the condition is on, and its pattern for all of the variable.
func (c Condition) Variable() (variable, pattern string) {
	switch c.Part {
	case Method:
		return "var_http_method", "^(?:" + c.Pattern + ")$"
	case Header:
		return "http_req_" + c.Name, "^(?:" + c.Pattern + ")$"
	default:
		return "var_query_string", "(?:^|&)" + Encoded(c.Name) + "=(?:" + c.Pattern + ")(?:&|$)"
	}
}

// Encoded returns a regular expression for a text in a query: each character by itself or by its code.
func Encoded(text string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		code := "%(?i:" + string([]byte{digits[c>>4], digits[c&0xf]}) + ")"
		switch {
		case c == ' ':
			b.WriteString("(?:\\+|" + code + ")")
		case c < ' ' || c >= 0x7f || strings.IndexByte("%&=#+", c) >= 0:
			b.WriteString(code)
		default:
			b.WriteString("(?:" + regexp.QuoteMeta(string(c)) + "|" + code + ")")
		}
	}
	return b.String()
}

// Pattern is a regular expression for the path, in which the case of letters counts. All paths have none.
func (p Path) Pattern() string {
	literal := regexp.QuoteMeta(p.Literal)
	switch p.Match {
	case Exact:
		return "^" + literal + "$"
	case Element:
		return "^" + literal + "(?:/.*)?$"
	case Text:
		return "^" + literal
	default:
		return ""
	}
}

// CompareRoutes orders routes so that the first one with a path and conditions that match a request is the right one.
func CompareRoutes(a, b Route) int {
	return cmp.Or(ComparePaths(a.Path, b.Path), b.count(Method)-a.count(Method), b.count(Header)-a.count(Header),
		b.count(Query)-a.count(Query), Compare(a.Object, b.Object), a.Rank-b.Rank)
}

func (r Route) count(part Part) (n int) {
	for _, c := range r.When {
		if c.Part == part {
			n++
		}
	}
	return n
}

// SameRequests reports whether two routes match the same requests.
func SameRequests(a, b Route) bool {
	return a.Path == b.Path && slices.Equal(a.When, b.When)
}

// Change is what becomes of a request and its answer.
type Change struct {
	Request, Response HeaderChange
	// Host is for the backend instead of the request's, "" for no change.
	Host string
	// Full replaces the path. Prefix replaces what the route's path fixes. Nil is no change.
	Full, Prefix *string
}

// HeaderChange changes headers. Add keeps the values that are there.
type HeaderChange struct {
	Set, Add []HeaderValue
	Remove   []string
}

// HeaderValue is a header with a value.
type HeaderValue struct{ Name, Value string }

// IsZero reports whether nothing is changed.
func (c Change) IsZero() bool {
	return c.Request.isZero() && c.Response.isZero() && c.Host == "" && c.Full == nil && c.Prefix == nil
}

func (h HeaderChange) isZero() bool { return len(h.Set)+len(h.Add)+len(h.Remove) == 0 }
