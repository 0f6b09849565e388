package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/mount"
	plandisk "kaz/internal/plan/disk"
)

// NodeStageVolume formats a disk that has no file system, and mounts it at the staging path.
func (n *Node) NodeStageVolume(ctx context.Context, r *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	const request = "NodeStageVolume"
	done := &csispec.NodeStageVolumeResponse{}
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := disk.CheckVolume(request, r.GetVolumeContext(), r.GetVolumeCapability()); err != nil {
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
	return done, csi.Status(n.stage(device, r), "mount volume %s", r.GetVolumeId())
}

// tune writes the settings of the volume's performance profile. The settings that a user names must be written; those
// that are computed only help.
func (n *Node) tune(ctx context.Context, device string, p plandisk.Parameters, r *csispec.NodeStageVolumeRequest) error {
	if n.config.Speed == nil {
		return nil
	}
	switch p.Profile {
	case plandisk.ProfileAdvanced:
		return n.config.Devices.Tune(device, p.DeviceSettings)
	case plandisk.ProfileBasic:
		gib, err := strconv.ParseInt(disk.Value(r.GetVolumeContext(), plandisk.RequestedSize), 10, 64)
		if err != nil {
			gib = 0
		}
		settings := plandisk.BasicSettings(p, gib, n.config.Speed(ctx))
		for name, value := range settings {
			if err := n.config.Devices.Tune(device, map[string]string{name: value}); err != nil {
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
func (n *Node) stage(device string, r *csispec.NodeStageVolumeRequest) error {
	asked := r.GetVolumeCapability().GetMount()
	fsType := strings.ToLower(cmp.Or(disk.Value(r.GetVolumeContext(), "fsType"), asked.GetFsType(), "ext4"))
	options := slices.Clone(asked.GetMountFlags())
	if fsType == "xfs" && !slices.Contains(options, "nouuid") {
		options = append(options, "nouuid") // a copy of a disk has the UUID of its source
	}
	grows := !slices.Contains(options, "ro") && !slices.Contains(options, mount.DirectMount)
	mount := func() error { return n.config.Mounts.Stage(device, r.GetStagingTargetPath(), fsType, options) }
	if err := mount(); err != nil {
		if holders := n.config.Devices.holders(device); len(holders) > 0 {
			return fmt.Errorf("device %s is in use by %s; if that is multipath, exclude Azure's disks in multipath.conf: %w",
				device, strings.Join(holders, ", "), err)
		}
		return err
	}
	if !grows {
		return nil
	}
	return n.grow(device, r.GetStagingTargetPath(), mount)
}

// grow grows the file system of a device that is mounted at the staging path. Where the kernel does not let it grow a mounted
// one, it unmounts the device meanwhile: no pod has it yet. A device that is mounted elsewhere too stays as it is.
func (n *Node) grow(device, path string, mount func() error) error {
	mounts := n.config.Mounts
	denied := mounts.Grow(device, path)
	if denied == nil || !mounts.IsExt(device) {
		return denied
	}
	if others, err := mounts.Others(path); err != nil || len(others) > 0 {
		return denied
	}
	if err := mounts.Unmount(path); err != nil {
		return errors.Join(denied, err)
	}
	grown := mounts.GrowUnmounted(device)
	if err := mount(); err != nil || grown != nil {
		return errors.Join(denied, grown, err)
	}
	return nil
}

// NodeUnstageVolume unmounts the staging path.
func (n *Node) NodeUnstageVolume(_ context.Context, r *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	err := n.unmount("NodeUnstageVolume", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath())
	return &csispec.NodeUnstageVolumeResponse{}, err
}

// unmount unmounts a path of a volume and removes it. A path that does not exist is no error.
func (n *Node) unmount(request, volume, field, path string) error {
	if err := csi.Missing(request, "volume_id", volume, field, path); err != nil {
		return err
	}
	release, err := n.locks.Take(volume)
	if err != nil {
		return err
	}
	defer release()
	return csi.Status(n.config.Mounts.Unmount(path), "unmount volume %s", volume)
}
