package boot

import (
	"encoding/base64"
	"slices"
	"testing"
)

// A machine with an Ignition config is distinguished from a cloud-init machine. Ignition enables the units of its presets.
func TestReadsIgnition(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for data, want := range map[string]bool{
		encode([]byte(`{"ignition":{"version":"3.3.0"}}`)): true, encode([]byte(" \n{}")): true, encode([]byte("#cloud-config\n")): false,
		encode([]byte{0x1f, 0x8b}): false, "": false, "{": false,
	} {
		if got := ReadsIgnition(data); got != want {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	}
	got := enabledUnits("# by Ignition\nenable a.service\ndisable b.service\nenable c.timer\n\n")
	if want := []string{"a.service", "c.timer"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
