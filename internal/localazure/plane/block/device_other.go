//go:build !linux

package block

import (
	"errors"
	"os"
)

type device struct{ path string }

func openDevice(string) (*device, error) { return nil, errors.ErrUnsupported }

func (d *device) resize() error { return errors.ErrUnsupported }

func (d *device) close() error { return nil }

func cloneFile(*os.File, *os.File) error { return errors.ErrUnsupported }

func copyData(*os.File, *os.File) error { return errors.ErrUnsupported }
