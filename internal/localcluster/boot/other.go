//go:build !linux

package boot

import (
	"context"
	"errors"
)

var errSystem = errors.New("virtual machines need Linux: they are namespaces of its kernel")

// Run needs Linux.
func Run(context.Context, Spec, ...string) error { return errSystem }

// Enter needs Linux.
func Enter(Spec, string) error { return errSystem }
