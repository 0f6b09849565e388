package security

import "testing"

func FuzzPortRange(f *testing.F) {
	for _, s := range []string{"*", "80", "80-90", "90-80", "-1", "65536", "80,443", "a", "1-2-3", "+5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !portRange(text) {
			return
		}
		for _, r := range text {
			if (r < '0' || r > '9') && r != '-' && r != '*' {
				t.Errorf("%q is accepted as a port range", text)
			}
		}
	})
}
