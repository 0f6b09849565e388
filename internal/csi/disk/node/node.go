package node

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	plandisk "kaz/internal/plan/disk"
)

// Config is the configuration of the node service.
type Config struct {
	Driver string // name of the driver
	Node   string // name of the node
	System System // of the machine
	// Place returns the zone of the machine and the number of disks that can be attached to it. The zone is REGION-NUMBER or
	// "". The number is 0 if it is not known.
	Place func(ctx context.Context) (zone string, most int64, err error)
	// Attached returns the disks that Azure has attached to the machine, by LUN. It is nil, or its answer is empty, if
	// that is not known.
	Attached func(ctx context.Context) (map[int]azure.ID, error)
	// Speed returns how fast all disks of the machine together can be. It is nil if disks are not tuned.
	Speed func(ctx context.Context) plandisk.Speed
	Log   *slog.Logger // nil is slog.Default
}

// Node is the node service.
type Node struct {
	csispec.UnimplementedNodeServer
	config Config
	locks  csi.Locks
}

var _ csispec.NodeServer = (*Node)(nil)

// New returns the node service of a driver.
func New(c Config) *Node {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Node{config: c}
}

// NodeGetCapabilities returns what the node service can do.
func (n *Node) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	answer := &csispec.NodeGetCapabilitiesResponse{}
	for _, kind := range []csispec.NodeServiceCapability_RPC_Type{
		csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csispec.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS, csispec.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
		csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csispec.NodeServiceCapability{Type: &csispec.NodeServiceCapability_Rpc{
			Rpc: &csispec.NodeServiceCapability_RPC{Type: kind},
		}})
	}
	return answer, nil
}

// NodeGetInfo returns the name of the node, its zone, and how many disks its machine can have. The kubelet asks when the
// driver registers, and in the interval that the CSIDriver object names.
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

// published is a request for a volume that is attached to the machine.
type published interface {
	GetVolumeId() string
	GetPublishContext() map[string]string
	GetVolumeContext() map[string]string
	GetVolumeCapability() *csispec.VolumeCapability
}

// checkVolume returns an error with the code InvalidArgument if the disk, or the machine's system, cannot have what is
// asked for.
func (n *Node) checkVolume(request string, r published) error {
	if err := disk.CheckVolume(request, r.GetVolumeContext(), r.GetVolumeCapability()); err != nil {
		return err
	}
	if err := n.config.System.Check(r.GetVolumeContext(), r.GetVolumeCapability()); err != nil {
		return csi.Invalid("%s: volume %s: %v", request, r.GetVolumeId(), err)
	}
	return nil
}

// device waits for the device of a volume, and checks that it is the volume's disk.
func (n *Node) device(ctx context.Context, request string, r published) (string, error) {
	text := disk.Value(r.GetPublishContext(), disk.LUNKey)
	lun, err := readLUN(text)
	if err != nil {
		return "", csi.Invalid("%s: publish context: %s %q: %v", request, disk.LUNKey, text, err)
	}
	device, err := n.config.System.Find(ctx, lun)
	if err != nil {
		return "", csi.Status(err, "device of LUN %d", lun)
	}
	if err := n.confirm(ctx, lun, r.GetVolumeId()); err != nil {
		return "", err
	}
	if err := n.checkSize(ctx, device, r.GetVolumeContext()); err != nil {
		return "", err
	}
	partition := r.GetVolumeContext()["partition"]
	if partition == "" {
		return device, nil
	}
	if _, err := strconv.ParseUint(partition, 10, 8); err != nil {
		return "", csi.Invalid("%s: volume context: partition %q: want a number", request, partition)
	}
	device, err = n.config.System.Partition(ctx, device, partition)
	return device, csi.Status(err, "volume %s", r.GetVolumeId())
}

// confirm refuses a LUN at which Azure has another disk. Without evidence it refuses nothing.
func (n *Node) confirm(ctx context.Context, lun int, volume string) error {
	if n.config.Attached == nil {
		return nil
	}
	attached, err := n.config.Attached(ctx)
	if err != nil {
		n.config.Log.Debug("the disk of a lun cannot be confirmed", "lun", lun, "volume", volume, "error", err)
		return nil
	}
	have, known := attached[lun]
	if !known || have.Equal(azure.ID(volume)) {
		return nil
	}
	return status.Errorf(codes.Unavailable, "volume %s: the machine's metadata shows disk %s at LUN %d; nothing is mounted, and it "+
		"is tried again", volume, have, lun)
}

// checkSize refuses a device that is smaller than its disk was when it was created. Disks never shrink.
func (n *Node) checkSize(ctx context.Context, device string, volumeContext map[string]string) error {
	const gib = 1 << 30
	wanted, err := strconv.ParseInt(disk.Value(volumeContext, plandisk.RequestedSize), 10, 64)
	if err != nil {
		return nil // a volume that was not provisioned by the driver
	}
	size, err := n.config.System.Size(ctx, device)
	if err != nil {
		return csi.Status(err, "size of %s", device)
	}
	if size < wanted*gib {
		return status.Errorf(codes.FailedPrecondition, "device %s has %d bytes, and the volume %d GiB: it is another disk; nothing is "+
			"mounted", device, size, wanted)
	}
	return nil
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
