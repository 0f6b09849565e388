package cloudconfig

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that is never printed: fmt, slog and JSON write [redacted]. The text is behind a
// pointer, so that it stays hidden where fmt cannot call methods, as in an unexported field.
type Secret struct{ text *string }

// NewSecret returns a Secret. The empty text gives the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil }

// Equal reports whether both hide the same text.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String returns "" for the zero Secret and "[redacted]" for others.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// Format handles all verbs, including %d and %#v, which bypass String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns String for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns String for encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
