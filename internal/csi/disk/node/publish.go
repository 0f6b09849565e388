package node

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
)

// NodePublishVolume makes a volume visible at the path of a pod: the staged file system, or the device itself.
func (n *Node) NodePublishVolume(ctx context.Context, r *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	const request = "NodePublishVolume"
	done := &csispec.NodePublishVolumeResponse{}
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath(),
		"target_path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := n.checkVolume(request, r); err != nil {
		return nil, err
	}
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	if mounted, err := n.config.System.MountedWell(r.GetTargetPath()); mounted || err != nil {
		return done, csi.Status(err, "publish volume %s", r.GetVolumeId())
	}
	source, err := n.source(ctx, request, r)
	if err != nil {
		return nil, err
	}
	if err := n.checkSingle(source, r); err != nil {
		return nil, err
	}
	var options []string
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	return done, csi.Status(n.config.System.Bind(source, r.GetTargetPath(), options), "publish volume %s", r.GetVolumeId())
}

// source returns what a pod gets to see: the device of a block volume, or the path at which the volume is staged.
func (n *Node) source(ctx context.Context, request string, r *csispec.NodePublishVolumeRequest) (string, error) {
	if r.GetVolumeCapability().GetBlock() != nil {
		return n.device(ctx, request, r)
	}
	staged, err := n.config.System.Mounted(r.GetStagingTargetPath())
	if err != nil {
		return "", csi.Status(err, "publish volume %s", r.GetVolumeId())
	}
	if !staged {
		return "", status.Errorf(codes.FailedPrecondition, "publish volume %s: nothing is mounted at the staging path %s: the volume "+
			"must be staged first", r.GetVolumeId(), r.GetStagingTargetPath())
	}
	return r.GetStagingTargetPath(), nil
}

// checkSingle refuses a second path for a volume that one pod has for itself.
func (n *Node) checkSingle(source string, r *csispec.NodePublishVolumeRequest) error {
	if r.GetVolumeCapability().GetAccessMode().GetMode() != csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	others, err := n.config.System.Others(source)
	if err != nil {
		return csi.Status(err, "publish volume %s", r.GetVolumeId())
	}
	if len(others) > 0 {
		return status.Errorf(codes.FailedPrecondition, "publish volume %s: it is in use at %s, and access mode ReadWriteOncePod "+
			"allows one pod", r.GetVolumeId(), others[0])
	}
	return nil
}

// NodeUnpublishVolume removes a volume from the path of a pod.
func (n *Node) NodeUnpublishVolume(ctx context.Context, r *csispec.NodeUnpublishVolumeRequest) (
	*csispec.NodeUnpublishVolumeResponse, error,
) {
	err := n.unmount(ctx, "NodeUnpublishVolume", r.GetVolumeId(), "target_path", r.GetTargetPath())
	return &csispec.NodeUnpublishVolumeResponse{}, err
}
