package controlplane

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os/exec"
	"runtime"
	"strings"
)

// oldestGo is the first release of Go that the pinned modules build with.
const oldestGo = "go1.26"

// ErrNoGo is returned by [Build] if the go command is missing or too old.
var ErrNoGo = errors.New("the control plane is built from source with the go command, " + oldestGo + " or newer (https://go.dev/dl), " +
	"unless kaz is from an archive kaz-local of a release, which brings it")

// toolchain is the go command that builds the programs.
type toolchain struct {
	path    string
	version string
	arch    string // of the programs
}

func (t toolchain) platform() string { return runtime.GOOS + "/" + t.arch }

// findToolchain returns the go command at path, or the go command in PATH if path is empty.
func findToolchain(ctx context.Context, path string) (toolchain, error) {
	if path == "" {
		found, err := exec.LookPath("go")
		if err != nil {
			return toolchain{}, fmt.Errorf("%w: %w", ErrNoGo, err)
		}
		path = found
	}
	cmd := exec.CommandContext(ctx, path, "env", "GOVERSION")
	cmd.Env = append(cmd.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return toolchain{}, fmt.Errorf("%w: %s env GOVERSION: %w", ErrNoGo, path, err)
	}
	// The version of a toolchain with experiments is "go1.26.8 X:name": the release is the first word.
	v := strings.TrimSpace(string(out))
	release, _, _ := strings.Cut(v, " ")
	if version.IsValid(release) && version.Compare(release, oldestGo) < 0 {
		return toolchain{}, fmt.Errorf("%w: %s is %s", ErrNoGo, path, v)
	}
	return toolchain{path: path, version: v}, nil
}
