package short

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestText checks that long texts are cut between characters, and that their beginning and end stay.
func TestText(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", Most), strings.Repeat("é", Most/2)} {
		if got := Text(text); got != text {
			t.Errorf("%.20q... is changed to %d bytes", text, len(got))
		}
	}
	for _, character := range []string{"a", "é", "€", "😀", "\x80"} {
		for offset := range 4 {
			text := strings.Repeat("x", offset) + "begin" + strings.Repeat(character, 1<<16) + "end"
			got := Text(text)
			if len(got) > Most+64 || !strings.HasSuffix(got, "end") || !strings.Contains(got, "begin") ||
				!strings.Contains(got, " bytes left out)") {
				t.Errorf("%q: %d bytes: %.100q", character, len(got), got)
			}
			if utf8.ValidString(text) != utf8.ValidString(got) {
				t.Errorf("%q is cut within a character", character)
			}
		}
	}
}

// TestErrorf checks that a long error is short, also in other errors, and wraps what it wrapped.
func TestErrorf(t *testing.T) {
	cause := errors.New("cause")
	err := Errorf("outer: %w", Errorf("the value '%s': %w", strings.Repeat("a", 1<<20), cause))
	if text := fmt.Sprint(err); len(text) > Most+100 || !errors.Is(err, cause) || !strings.HasPrefix(text, "outer: the value 'aaa") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
	if err := Errorf("plain %d", 1); err.Error() != "plain 1" {
		t.Error(err)
	}
}
