package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
	"kaz/internal/csi/mount"
)

// answerAtMost bounds the wait for a file server.
const answerAtMost = 10 * time.Second

// NodeGetVolumeStats returns how full a volume is. A server that does not answer is asked once at a time.
func (n *Node) NodeGetVolumeStats(ctx context.Context, r *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	path := r.GetVolumePath()
	if err := csi.Missing("NodeGetVolumeStats", "volume_id", r.GetVolumeId(), "volume_path", path); err != nil {
		return nil, err
	}
	answer := n.usage.DoChan(path, func() (any, error) {
		if _, err := os.Lstat(path); err != nil {
			return nil, err
		}
		return mount.Usage(path)
	})
	select {
	case got := <-answer:
		if errors.Is(got.Err, fs.ErrNotExist) {
			return nil, status.Errorf(codes.NotFound, "volume %s: %v", r.GetVolumeId(), got.Err)
		}
		if got.Err != nil {
			return nil, csi.Status(got.Err, "volume %s", r.GetVolumeId())
		}
		// SMB servers count no inodes.
		usage := slices.Clone(got.Val.([]*csispec.VolumeUsage))
		usage = slices.DeleteFunc(usage, func(u *csispec.VolumeUsage) bool { return u.GetTotal() == 0 })
		return &csispec.NodeGetVolumeStatsResponse{Usage: usage}, nil
	case <-time.After(answerAtMost):
		return nil, status.Errorf(codes.Unavailable, "volume %s: the file server does not answer", r.GetVolumeId())
	case <-ctx.Done():
		return nil, csi.Status(ctx.Err(), "volume %s", r.GetVolumeId())
	}
}
