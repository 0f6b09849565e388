//go:build !linux

package process

import (
	"errors"
	"syscall"
)

var errUnsupported = errors.New("local clusters run on Linux only")

func identify(int) (string, uint64, error) { return "", 0, errUnsupported }

func attributes() *syscall.SysProcAttr { return nil }

func awaitExit(int) {}

func signalGroup(int, syscall.Signal) error { return errUnsupported }

func lockFile(uintptr, bool) (bool, error) { return false, errUnsupported }

var errGone = errors.New("no such process")
