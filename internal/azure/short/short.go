// Package short bounds the texts of errors that quote what a client sent, such as a value of a template. Layer L0, pure.
package short

import (
	"fmt"
	"unicode/utf8"
)

// Most is the number of bytes that Text and Errorf keep of a longer text, without the note of what is left out.
const Most = 4096

// Text returns a text of at most Most bytes as it is. Of a longer one it keeps the beginning and the end, and says how much is left out
// between them.
func Text(text string) string {
	if len(text) <= Most {
		return text
	}
	head, tail := Most*3/4, len(text)-Most/4
	for range utf8.UTFMax - 1 { // keep characters whole
		if !utf8.RuneStart(text[head]) {
			head--
		}
		if !utf8.RuneStart(text[tail]) {
			tail++
		}
	}
	return fmt.Sprintf("%s ... (%d bytes left out) ... %s", text[:head], tail-head, text[tail:])
}

// Errorf is fmt.Errorf with a text that Text shortens. The error wraps the same errors.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	text := err.Error()
	if len(text) <= Most {
		return err
	}
	return &shortened{Text(text), err}
}

// shortened is an error with a shorter text.
type shortened struct {
	text string
	err  error
}

func (e *shortened) Error() string { return e.text }

func (e *shortened) Unwrap() error { return e.err }
