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

// ErrNoGo is returned by [Build] when there is no go command to build with, or one that is too old.
var ErrNoGo = errors.New("the control plane is built from source with the go command, " + oldestGo + " or newer (https://go.dev/dl)")

// toolchain is the go command that builds the programs.
type toolchain struct {
	path    string
	version string
}

func (t toolchain) platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// findToolchain asks the go command for its version; path is looked up in PATH when empty.
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
	// A toolchain with experiments calls itself "go1.26.8 X:name": the release is the first word.
	v := strings.TrimSpace(string(out))
	release, _, _ := strings.Cut(v, " ")
	if version.IsValid(release) && version.Compare(release, oldestGo) < 0 {
		return toolchain{}, fmt.Errorf("%w: %s is %s", ErrNoGo, path, v)
	}
	return toolchain{path: path, version: v}, nil
}
