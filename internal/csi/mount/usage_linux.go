package mount

import (
	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// Usage returns the used and free bytes and inodes of the file system at a path.
func Usage(path string) ([]*csispec.VolumeUsage, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return nil, err
	}
	block := s.Bsize
	return []*csispec.VolumeUsage{
		{
			Unit: csispec.VolumeUsage_BYTES, Total: int64(s.Blocks) * block, Available: int64(s.Bavail) * block,
			Used: int64(s.Blocks-s.Bfree) * block,
		},
		{Unit: csispec.VolumeUsage_INODES, Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}, nil
}
