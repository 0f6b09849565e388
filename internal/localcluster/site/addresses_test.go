package site

import (
	"slices"
	"strings"
	"testing"
)

func TestReadFamilies(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "IPv4": {IPv4}, "ipv4": {IPv4}, "IPv4,IPv6": {IPv4, IPv6}, "ipv4,ipv6": {IPv4, IPv6},
	} {
		got, err := ReadFamilies(fields(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"IPv6", "IPv6,IPv4", "IPv4,IPv4", "IPv4,IPv6,IPv6", "dual"} {
		got, err := ReadFamilies(fields(text))
		if want := "--ip-families " + text + ": want IPv4, or IPv4,IPv6"; err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}

func fields(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}
