package node

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/mount"
)

// Config is the configuration of the node service.
type Config struct {
	Driver string // name of the driver
	Node   string // name of the node
	// Mounts formats and mounts.
	Mounts  *mount.Mounts
	Devices Devices
	// Place returns the zone of the machine, REGION-NUMBER or "", and the number of disks that can be attached to it, 0
	// if it is not known.
	Place func(ctx context.Context) (zone string, most int64, err error)
}

// Node is the node service.
type Node struct {
	csispec.UnimplementedNodeServer
	config Config
	locks  csi.Locks
}

var _ csispec.NodeServer = (*Node)(nil)

// New returns the node service of a driver.
func New(c Config) *Node { return &Node{config: c} }

// NodeGetCapabilities returns what the node service can do.
func (n *Node) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	answer := &csispec.NodeGetCapabilitiesResponse{}
	for _, kind := range []csispec.NodeServiceCapability_RPC_Type{
		csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csispec.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS, csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csispec.NodeServiceCapability{Type: &csispec.NodeServiceCapability_Rpc{
			Rpc: &csispec.NodeServiceCapability_RPC{Type: kind},
		}})
	}
	return answer, nil
}

// NodeGetInfo returns the name of the node, its zone, and how many disks its machine can have.
func (n *Node) NodeGetInfo(ctx context.Context, _ *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	zone, most, err := n.config.Place(ctx)
	if err != nil {
		return nil, csi.Status(err, "zone and size of node %s", n.config.Node)
	}
	return &csispec.NodeGetInfoResponse{
		NodeId: n.config.Node, MaxVolumesPerNode: most,
		AccessibleTopology: &csispec.Topology{Segments: disk.Segments(n.config.Driver, zone)},
	}, nil
}

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
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	if r.GetVolumeCapability().GetBlock() != nil {
		return done, nil
	}
	device, err := n.device(ctx, request, r.GetPublishContext())
	if err != nil {
		return nil, err
	}
	if partition := r.GetVolumeContext()["partition"]; partition != "" {
		device += "-part" + partition
	}
	return done, csi.Status(n.stage(device, r), "mount volume %s", r.GetVolumeId())
}

// device waits for the device of the LUN in a publish context.
func (n *Node) device(ctx context.Context, request string, published map[string]string) (string, error) {
	text := disk.Value(published, disk.LUNKey)
	lun, err := readLUN(text)
	if err != nil {
		return "", csi.Invalid("%s: publish context: %s %q: %v", request, disk.LUNKey, text, err)
	}
	device, err := n.config.Devices.Find(ctx, lun)
	return device, csi.Status(err, "device of LUN %d", lun)
}

// stage mounts a device at the staging path, and grows the file system to the device.
func (n *Node) stage(device string, r *csispec.NodeStageVolumeRequest) error {
	asked := r.GetVolumeCapability().GetMount()
	fsType := cmp.Or(disk.Value(r.GetVolumeContext(), "fsType"), asked.GetFsType(), "ext4")
	options := slices.Clone(asked.GetMountFlags())
	if fsType == "xfs" {
		options = append(options, "nouuid") // a copy of a disk has the UUID of its source
	}
	if err := n.config.Mounts.Stage(device, r.GetStagingTargetPath(), fsType, options); err != nil {
		return err
	}
	if slices.Contains(options, "ro") {
		return nil
	}
	return n.config.Mounts.Grow(device, r.GetStagingTargetPath())
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

// NodePublishVolume makes a volume visible at the path of a pod: the staged file system, or the device itself.
func (n *Node) NodePublishVolume(ctx context.Context, r *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	const request = "NodePublishVolume"
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath(),
		"target_path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := disk.CheckVolume(request, r.GetVolumeContext(), r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	source := r.GetStagingTargetPath()
	if r.GetVolumeCapability().GetBlock() != nil {
		if source, err = n.device(ctx, request, r.GetPublishContext()); err != nil {
			return nil, err
		}
	}
	if err := n.checkSingle(source, r); err != nil {
		return nil, err
	}
	var options []string
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	err = n.config.Mounts.Bind(source, r.GetTargetPath(), options)
	return &csispec.NodePublishVolumeResponse{}, csi.Status(err, "publish volume %s", r.GetVolumeId())
}

// checkSingle refuses a second path for a volume that one pod has for itself.
func (n *Node) checkSingle(source string, r *csispec.NodePublishVolumeRequest) error {
	if r.GetVolumeCapability().GetAccessMode().GetMode() != csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	others, err := n.config.Mounts.Others(source)
	if err != nil {
		return csi.Status(err, "publish volume %s", r.GetVolumeId())
	}
	for _, path := range others {
		if path != r.GetTargetPath() {
			return status.Errorf(codes.FailedPrecondition, "publish volume %s: it is in use at %s, and access mode ReadWriteOncePod "+
				"allows one pod", r.GetVolumeId(), path)
		}
	}
	return nil
}

// NodeUnpublishVolume removes a volume from the path of a pod.
func (n *Node) NodeUnpublishVolume(_ context.Context, r *csispec.NodeUnpublishVolumeRequest) (
	*csispec.NodeUnpublishVolumeResponse, error,
) {
	err := n.unmount("NodeUnpublishVolume", r.GetVolumeId(), "target_path", r.GetTargetPath())
	return &csispec.NodeUnpublishVolumeResponse{}, err
}

// NodeExpandVolume grows the file system of a volume to its device.
func (n *Node) NodeExpandVolume(_ context.Context, r *csispec.NodeExpandVolumeRequest) (*csispec.NodeExpandVolumeResponse, error) {
	if err := csi.Missing("NodeExpandVolume", "volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	info, err := os.Stat(r.GetVolumePath())
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "expand volume %s: %v", r.GetVolumeId(), err)
	}
	if !info.IsDir() || r.GetVolumeCapability().GetBlock() != nil {
		size, err := mount.Size(r.GetVolumePath())
		return &csispec.NodeExpandVolumeResponse{CapacityBytes: size}, csi.Status(err, "expand volume %s", r.GetVolumeId())
	}
	release, err := n.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	device, err := n.config.Mounts.Device(r.GetVolumePath())
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "expand volume %s: %v", r.GetVolumeId(), err)
	}
	size, err := n.expand(device, r)
	return &csispec.NodeExpandVolumeResponse{CapacityBytes: size}, csi.Status(err, "expand volume %s", r.GetVolumeId())
}

func (n *Node) expand(device string, r *csispec.NodeExpandVolumeRequest) (int64, error) {
	n.config.Devices.Rescan(device)
	size, err := mount.Size(device)
	if err != nil {
		return 0, err
	}
	if wanted := r.GetCapacityRange().GetRequiredBytes(); size < wanted {
		return 0, status.Errorf(codes.Unavailable, "expand volume %s: the kernel sees %d bytes of %d; it is tried again",
			r.GetVolumeId(), size, wanted)
	}
	return size, n.config.Mounts.Grow(device, r.GetVolumePath())
}

// NodeGetVolumeStats returns how much of a volume is used.
func (n *Node) NodeGetVolumeStats(_ context.Context, r *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	if err := csi.Missing("NodeGetVolumeStats", "volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	info, err := os.Stat(r.GetVolumePath())
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", r.GetVolumeId(), err)
	}
	if !info.IsDir() {
		size, err := mount.Size(r.GetVolumePath())
		return &csispec.NodeGetVolumeStatsResponse{
			Usage: []*csispec.VolumeUsage{{Unit: csispec.VolumeUsage_BYTES, Total: size}},
		}, csi.Status(err, "volume %s", r.GetVolumeId())
	}
	usage, err := mount.Usage(r.GetVolumePath())
	return &csispec.NodeGetVolumeStatsResponse{Usage: usage}, csi.Status(err, "volume %s", r.GetVolumeId())
}

// readLUN reads a LUN: a number, or the end of a device path, as volumes of the in-tree driver have it.
func readLUN(text string) (int, error) {
	const most = 63
	if match := lunInPath.FindStringSubmatch(text); match != nil {
		text = match[1]
	}
	lun, err := strconv.Atoi(text)
	if err != nil || lun < 0 || lun > most {
		return 0, fmt.Errorf("want a number from 0 to %d", most)
	}
	return lun, nil
}
