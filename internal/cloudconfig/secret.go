package cloudconfig

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that is never printed: every verb of fmt, slog and JSON
// write [redacted]. The text sits behind a pointer, so that it stays hidden
// even where fmt cannot call methods, as in an unexported field.
type Secret struct{ text *string }

// NewSecret hides a text. The empty text gives the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the hidden text, for the one who must send it.
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

// String is what may be shown: nothing, or [redacted].
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// Format covers the verbs that would bypass String, such as %d and %#v.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String for encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
