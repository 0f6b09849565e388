package main

import (
	"bytes"
	"testing"

	"kaz/cmd/internal/release"
)

// kaz says its version though components of another make of flags are in it.
func TestVersion(t *testing.T) {
	command := rootCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})
	if err := command.ExecuteContext(t.Context()); err != nil || out.String() != "kaz version "+release.Version()+"\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
