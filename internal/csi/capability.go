package csi

import (
	"fmt"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
)

// Modes are the access modes that a driver knows, and whether the mode needs several machines.
type Modes map[csispec.VolumeCapability_AccessMode_Mode]bool

// DiskModes are the access modes of disks.
func DiskModes() Modes {
	return Modes{
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        false,
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   false,
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: false,
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  false,
		csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    true,
		csispec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  true,
		csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   true,
	}
}

// CheckDisk returns why a disk that maxShares machines can have cannot have a capability, nil if it can.
func (m Modes) CheckDisk(c *csispec.VolumeCapability, maxShares int64) error {
	mode := c.GetAccessMode().GetMode()
	several, known := m[mode]
	switch {
	case !known:
		return fmt.Errorf("access mode %s is not supported", mode)
	case (c.GetBlock() == nil) == (c.GetMount() == nil):
		return fmt.Errorf("want an access type, block or mount")
	case several && c.GetMount() != nil:
		return fmt.Errorf("access mode %s is not supported with a file system: use volumeMode Block", mode)
	case several && maxShares < 2:
		return fmt.Errorf("access mode %s needs a disk with maxShares of 2 or more", mode)
	}
	return nil
}
