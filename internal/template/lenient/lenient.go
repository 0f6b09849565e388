// Package lenient reads JSON as the resource manager reads templates: with comments, keys without quotes, strings in single quotes and of
// several lines, and commas behind the last element. Layer L1.
package lenient

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure/short"
)

// Strict writes lenient JSON as JSON. What is neither stays as it is.
func Strict(text []byte) ([]byte, error) {
	d := reader{rest: strings.TrimPrefix(string(text), "\ufeff")}
	for d.skip(); d.rest != ""; d.skip() {
		c := d.rest[0]
		switch {
		case c == '"' || c == '\'':
			if err := d.text(c); err != nil {
				return nil, err
			}
		case c == '}' || c == ']':
			out := bytes.TrimSuffix(d.out.Bytes(), []byte(","))
			d.out.Truncate(len(out))
			d.take(1)
		case isWord(c):
			d.word()
		default:
			d.take(1)
		}
	}
	return d.out.Bytes(), nil
}

type reader struct {
	rest string
	out  bytes.Buffer
}

// take copies bytes.
func (d *reader) take(n int) {
	d.out.WriteString(d.rest[:n])
	d.rest = d.rest[n:]
}

// skip drops blanks and comments.
func (d *reader) skip() {
	for {
		d.rest = strings.TrimLeft(d.rest, " \t\r\n")
		end := ""
		switch {
		case strings.HasPrefix(d.rest, "//"):
			end = "\n"
		case strings.HasPrefix(d.rest, "/*"):
			end = "*/"
		default:
			return
		}
		_, d.rest, _ = strings.Cut(d.rest[2:], end)
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c == '+' || c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' ||
		c >= utf8.RuneSelf
}

// word copies a literal, or a key, to which it adds quotes.
func (d *reader) word() {
	n := 0
	for n < len(d.rest) && isWord(d.rest[n]) {
		n++
	}
	word := d.rest[:n]
	d.rest = d.rest[n:]
	if d.skip(); strings.HasPrefix(d.rest, ":") {
		word = `"` + word + `"`
	}
	d.out.WriteString(word)
}

// text copies a string in quotes of one kind.
func (d *reader) text(quote byte) error {
	d.out.WriteByte('"')
	for i := 1; i < len(d.rest); i++ {
		switch c := d.rest[i]; {
		case c == quote:
			d.out.WriteByte('"')
			d.rest = d.rest[i+1:]
			return nil
		case c == '\\' && i+1 < len(d.rest):
			i++
			if d.rest[i] != '\'' {
				d.out.WriteByte('\\')
			}
			d.out.WriteByte(d.rest[i])
		case c == '"':
			d.out.WriteString(`\"`)
		case c < ' ':
			fmt.Fprintf(&d.out, `\u%04x`, c)
		default:
			d.out.WriteByte(c)
		}
	}
	return short.Errorf("decode JSON: a string is not closed: %.40q", d.rest)
}
