//go:build !linux

package mount

import (
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
)

var errOther = errors.New("only Linux is supported")

// Check returns an error: only Linux is supported.
func Check(string) (*Fault, error) { return nil, errOther }

func others(string) ([]string, error) { return nil, errOther }

// Options returns an error: only Linux is supported.
func Options(string) (string, []string, error) { return "", nil, errOther }

// Grow returns an error: only Linux is supported.
func (m *Mounts) Grow(string, string) error { return errOther }

func isOf(string, string) (bool, error) { return false, errOther }

// Number returns an error: only Linux is supported.
func Number(string) (string, error) { return "", errOther }

// Usage returns an error: only Linux is supported.
func Usage(string) ([]*csispec.VolumeUsage, error) { return nil, errOther }

// GrowUnmounted returns an error: only Linux is supported.
func (m *Mounts) GrowUnmounted(string) error { return errOther }

// IsExt reports that no device has a file system: only Linux is supported.
func (m *Mounts) IsExt(string) bool { return false }
