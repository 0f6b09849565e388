package node

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	plandisk "kaz/internal/plan/disk"
)

// NodeStageVolume formats a disk that has no file system, and mounts it at the staging path.
func (n *Node) NodeStageVolume(ctx context.Context, r *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	const request = "NodeStageVolume"
	done := &csispec.NodeStageVolumeResponse{}
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := n.checkVolume(request, r); err != nil {
		return nil, err
	}
	profile, err := plandisk.ReadProfile(r.GetVolumeContext())
	if err != nil {
		return nil, csi.Invalid("%s: volume context: %v", request, err)
	}
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	device, err := n.device(ctx, request, r)
	if err != nil {
		return nil, err
	}
	if err := n.tune(ctx, device, profile, r); err != nil {
		return nil, csi.Status(err, "settings of the device of volume %s", r.GetVolumeId())
	}
	if r.GetVolumeCapability().GetBlock() != nil {
		return done, nil
	}
	return done, csi.Status(n.stage(ctx, device, r), "mount volume %s", r.GetVolumeId())
}

// tune writes the settings of the volume's performance profile. The settings that a user names must be written; those
// that are computed only help.
func (n *Node) tune(ctx context.Context, device string, p plandisk.Parameters, r *csispec.NodeStageVolumeRequest) error {
	if n.config.Speed == nil {
		return nil
	}
	switch p.Profile {
	case plandisk.ProfileAdvanced:
		return n.config.System.Tune(device, p.DeviceSettings)
	case plandisk.ProfileBasic:
		gib, err := strconv.ParseInt(disk.Value(r.GetVolumeContext(), plandisk.RequestedSize), 10, 64)
		if err != nil {
			gib = 0
		}
		settings := plandisk.BasicSettings(p, gib, n.config.Speed(ctx))
		for name, value := range settings {
			if err := n.config.System.Tune(device, map[string]string{name: value}); err != nil {
				n.config.Log.Warn("a setting of perfprofile basic is not written", "volume", r.GetVolumeId(), "error", err)
			}
		}
		if settings == nil {
			n.config.Log.Warn("perfprofile basic has no settings for the disk", "volume", r.GetVolumeId(), "sku", p.SKU, "size", gib)
		}
	}
	return nil
}

// stage mounts a device at the staging path, and grows the file system to the device.
func (n *Node) stage(ctx context.Context, device string, r *csispec.NodeStageVolumeRequest) error {
	asked := r.GetVolumeCapability().GetMount()
	fsType := strings.ToLower(cmp.Or(disk.Value(r.GetVolumeContext(), "fsType"), asked.GetFsType()))
	return n.config.System.Stage(ctx, device, r.GetStagingTargetPath(), fsType, asked.GetMountFlags())
}

// NodeUnstageVolume unmounts the staging path.
func (n *Node) NodeUnstageVolume(ctx context.Context, r *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	err := n.unmount(ctx, "NodeUnstageVolume", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath())
	return &csispec.NodeUnstageVolumeResponse{}, err
}

// unmount unmounts a path of a volume and removes it. A path that does not exist is no error.
func (n *Node) unmount(ctx context.Context, request, volume, field, path string) error {
	if err := csi.Missing(request, "volume_id", volume, field, path); err != nil {
		return err
	}
	release, err := n.locks.Take(volume)
	if err != nil {
		return err
	}
	defer release()
	return csi.Status(n.config.System.Unmount(ctx, path), "unmount volume %s", volume)
}
