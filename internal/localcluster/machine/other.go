//go:build !linux

package machine

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
)

var errSystem = errors.New("virtual machines need Linux: they are namespaces of its kernel")

// Run needs Linux.
func Run(context.Context, Spec, ...string) error { return errSystem }

// RunAt needs Linux.
func RunAt(context.Context, Place, ...string) error { return errSystem }

// Boot needs Linux.
func Boot(context.Context, Spec, *slog.Logger) error { return errSystem }

// Check needs Linux.
func Check(string, int) []error { return []error{errSystem} }

// Enter needs Linux.
func Enter(context.Context, string, ...string) (*exec.Cmd, error) { return nil, errSystem }

// ShutDown needs Linux.
func ShutDown(string) error { return errSystem }

// ShutdownTime is 0 without machines.
const ShutdownTime = 0

// HostPrograms needs Linux.
func HostPrograms() (map[string]string, error) { return nil, errSystem }

// RemoveCgroups does nothing without cgroups.
func RemoveCgroups(string) error { return nil }
