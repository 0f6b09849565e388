//go:build !linux

package mount

import (
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
)

// Usage returns an error: only Linux is asked.
func Usage(string) ([]*csispec.VolumeUsage, error) {
	return nil, errors.New("the use of a volume is known on Linux only")
}
