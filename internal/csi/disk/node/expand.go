package node

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
)

// NodeExpandVolume waits until the kernel sees the new size of a disk, and grows the file system of a volume to it.
func (n *Node) NodeExpandVolume(ctx context.Context, r *csispec.NodeExpandVolumeRequest) (*csispec.NodeExpandVolumeResponse, error) {
	if err := csi.Missing("NodeExpandVolume", "volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	info, err := os.Stat(r.GetVolumePath())
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "expand volume %s: %v", r.GetVolumeId(), err)
	}
	device, block := r.GetVolumePath(), !info.IsDir()
	if !block {
		if device, err = n.config.System.Device(ctx, r.GetVolumePath()); err != nil {
			return nil, status.Errorf(codes.NotFound, "expand volume %s: %v", r.GetVolumeId(), err)
		}
	}
	wanted := r.GetCapacityRange().GetRequiredBytes()
	size, err := n.config.System.Grown(ctx, device, wanted)
	switch {
	case err != nil:
		return nil, csi.Status(err, "expand volume %s", r.GetVolumeId())
	case size < wanted:
		return nil, status.Errorf(codes.Unavailable, "expand volume %s: the kernel sees %d bytes of %d; it is tried again",
			r.GetVolumeId(), size, wanted)
	}
	if !block {
		err = n.config.System.Grow(ctx, device, r.GetVolumePath())
	}
	return &csispec.NodeExpandVolumeResponse{CapacityBytes: size}, csi.Status(err, "expand volume %s", r.GetVolumeId())
}

// NodeGetVolumeStats returns how much of a volume is used.
func (n *Node) NodeGetVolumeStats(ctx context.Context, r *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	if err := csi.Missing("NodeGetVolumeStats", "volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	usage, err := n.usage(ctx, r.GetVolumePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", r.GetVolumeId(), err)
	}
	return &csispec.NodeGetVolumeStatsResponse{Usage: usage}, csi.Status(err, "volume %s", r.GetVolumeId())
}

// NodeGetVolumeHealth returns what is wrong with a volume where it is published, or else where it is staged.
func (n *Node) NodeGetVolumeHealth(_ context.Context, r *csispec.NodeGetVolumeHealthRequest) (
	*csispec.NodeGetVolumeHealthResponse, error,
) {
	if err := csi.Missing("NodeGetVolumeHealth", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	health := &csispec.VolumeHealth{VolumeId: r.GetVolumeId()}
	path := cmp.Or(r.GetVolumePublishPath(), r.GetStagingTargetPath())
	if path == "" { // nothing is known of a volume without a path
		return &csispec.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
	}
	fault, err := n.config.System.Health(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", r.GetVolumeId(), err)
	}
	if fault != nil {
		kind := csispec.VolumeHealthErrorType_DEGRADED
		if fault.Lost {
			kind = csispec.VolumeHealthErrorType_INACCESSIBLE
		}
		health.HealthStatuses = append(health.HealthStatuses, &csispec.VolumeHealth_VolumeHealthEntry{
			Status: kind, Reason: fault.Reason, Message: fault.Message,
		})
	}
	return &csispec.NodeGetVolumeHealthResponse{VolumeHealth: health}, csi.Status(err, "volume %s", r.GetVolumeId())
}

func (n *Node) usage(ctx context.Context, path string) ([]*csispec.VolumeUsage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return n.config.System.Usage(path)
	}
	size, err := n.config.System.Size(ctx, path)
	return []*csispec.VolumeUsage{{Unit: csispec.VolumeUsage_BYTES, Total: size}}, err
}
