// Package secret has the type of texts that are never printed. Layer L0, pure.
package secret

import (
	"errors"
	"fmt"
	"io"
	"unique"
)

// Redacted stands for a text that is not printed.
const Redacted = "[redacted]"

// Text is a text that is never printed: fmt, encoders and loggers that use them write [redacted], or nothing for the empty text. A
// pointer holds the text, so it stays hidden where no method is called, as in an unexported field. Equal texts are equal with ==.
type Text struct{ text unique.Handle[string] }

// New returns a Text. The empty text gives the zero Text.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{unique.Make(text)}
}

// Reveal returns the text.
func (t Text) Reveal() string {
	if t.IsZero() {
		return ""
	}
	return t.text.Value()
}

// IsZero reports whether there is no text.
func (t Text) IsZero() bool { return t == Text{} }

// Equal reports whether both hide the same text, for programs that compare values by reflection.
func (t Text) Equal(other Text) bool { return t == other }

// String returns "" for the zero Text and [redacted] for others.
func (t Text) String() string {
	if t.IsZero() {
		return ""
	}
	return Redacted
}

// Format handles all verbs, including %d and %#v, which bypass String.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// MarshalText returns String, for JSON, YAML, XML and keys of maps in them.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText sets the text, for decoders of what a service answers. It refuses [redacted], which is no secret but the output of an
// encoder.
func (t *Text) UnmarshalText(text []byte) error {
	if string(text) == Redacted {
		return errors.New("the text of a secret is " + Redacted + ": want the text itself")
	}
	*t = New(string(text))
	return nil
}

// MarshalBinary returns String, for gob.
func (t Text) MarshalBinary() ([]byte, error) { return t.MarshalText() }
