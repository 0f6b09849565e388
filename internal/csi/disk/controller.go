package disk

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/nodes"
)

// Controller is the controller service. Close it when done.
type Controller struct {
	csispec.UnimplementedControllerServer
	config   Config
	locks    csi.Locks
	attacher *attacher
}

var _ csispec.ControllerServer = (*Controller)(nil)

// NewController returns the controller service of a driver.
func NewController(c Config) *Controller {
	if c.Limit == nil {
		c.Limit = func(context.Context, string) int { return 0 }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Controller{config: c, attacher: newAttacher(c)}
}

// Close ends the requests that wait to attach or detach.
func (c *Controller) Close() { c.attacher.close() }

// ControllerGetCapabilities returns what the controller can do.
func (c *Controller) ControllerGetCapabilities(context.Context, *csispec.ControllerGetCapabilitiesRequest) (
	*csispec.ControllerGetCapabilitiesResponse, error,
) {
	kinds := []csispec.ControllerServiceCapability_RPC_Type{
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csispec.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME, csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME, csispec.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	}
	if c.config.ListVolumes {
		kinds = append(kinds, csispec.ControllerServiceCapability_RPC_LIST_VOLUMES,
			csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES, csispec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS)
	}
	var all []*csispec.ControllerServiceCapability
	for _, kind := range kinds {
		all = append(all, &csispec.ControllerServiceCapability{Type: &csispec.ControllerServiceCapability_Rpc{
			Rpc: &csispec.ControllerServiceCapability_RPC{Type: kind},
		}})
	}
	return &csispec.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

// read reads a resource.
func read[P any](ctx context.Context, from azure.Reader, id azure.ID) (azure.Resource[P], error) {
	doc, err := from.Get(ctx, id)
	if err != nil {
		return azure.Resource[P]{}, err
	}
	r, err := azure.Decode[P](doc)
	if err != nil {
		return r, fmt.Errorf("read %s: %w", id, err)
	}
	r.ID = id
	return r, nil
}

// checkCapabilities returns an error with the code InvalidArgument if a disk cannot have one of the capabilities.
func checkCapabilities(request string, maxShares int64, capabilities ...*csispec.VolumeCapability) error {
	for _, capability := range capabilities {
		if capability == nil {
			return csi.Invalid("%s: the volume capability is missing", request)
		}
		if err := csi.DiskModes().CheckDisk(capability, maxShares); err != nil {
			return csi.Invalid("%s: %v", request, err)
		}
	}
	return nil
}

// sharesOf returns the number of machines that can have a volume at a time, from its volume context.
func sharesOf(volumeContext map[string]string) (int64, error) {
	value := lookup(volumeContext, "maxShares")
	if value == "" {
		return 1, nil
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		return 0, csi.Invalid("volume context: maxShares %q: want a whole number from 1 on", value)
	}
	return n, nil
}

// lookup returns a value by a key in any letter case.
func lookup(values map[string]string, key string) string {
	for k, v := range values {
		if strings.EqualFold(k, key) {
			return v
		}
	}
	return ""
}

// ValidateVolumeCapabilities reports whether a volume has all the capabilities.
func (c *Controller) ValidateVolumeCapabilities(ctx context.Context, r *csispec.ValidateVolumeCapabilitiesRequest) (
	*csispec.ValidateVolumeCapabilitiesResponse, error,
) {
	if err := csi.Missing("ValidateVolumeCapabilities", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, csi.Invalid("ValidateVolumeCapabilities: volume_capabilities is missing")
	}
	shares, err := sharesOf(r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if _, err := c.volume(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := checkCapabilities("ValidateVolumeCapabilities", shares, r.GetVolumeCapabilities()...); err != nil {
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csispec.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csispec.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()},
	}, nil
}

// attachedDisk is a disk with the machines that have it.
type attachedDisk struct {
	azure.Resource[compute.Disk]
	Machines []azure.ID
}

// readDisk reads a disk.
func readDisk(ctx context.Context, from azure.Reader, id azure.ID) (attachedDisk, error) {
	doc, err := from.Get(ctx, id)
	if err != nil {
		return attachedDisk{}, err
	}
	return decodeDisk(doc)
}

func decodeDisk(doc azure.Document) (attachedDisk, error) {
	r, err := azure.Decode[compute.Disk](doc)
	if err != nil {
		return attachedDisk{}, fmt.Errorf("read disk %s: %w", r.ID, err)
	}
	machines, err := nodes.Holders(doc)
	if err != nil {
		return attachedDisk{}, fmt.Errorf("read disk %s: %w", r.ID, err)
	}
	return attachedDisk{r, machines}, nil
}

// holder is the first machine that has a disk, "" if none has it.
func (d attachedDisk) holder() azure.ID {
	if len(d.Machines) == 0 {
		return ""
	}
	return d.Machines[0]
}

// volume reads the disk of a volume. An id that names no disk gives an error with the code NotFound.
func (c *Controller) volume(ctx context.Context, volume string) (attachedDisk, error) {
	return c.volumeAt(ctx, volume, azure.Provision)
}

// volumeAt reads the disk of a volume with a priority.
func (c *Controller) volumeAt(ctx context.Context, volume string, p azure.Priority) (attachedDisk, error) {
	id, ok := diskID(volume, compute.Disks)
	if !ok {
		return attachedDisk{}, status.Errorf(codes.NotFound, "volume %q: there is no such disk; a volume id is "+
			"/subscriptions/NAME/resourceGroups/NAME/providers/Microsoft.Compute/disks/NAME", volume)
	}
	d, err := readDisk(ctx, azure.At(c.config.Azure, p), id)
	return d, csi.Status(err, "volume %s", volume)
}

// ControllerExpandVolume makes a disk larger. The node grows the file system.
func (c *Controller) ControllerExpandVolume(ctx context.Context, r *csispec.ControllerExpandVolumeRequest) (
	*csispec.ControllerExpandVolumeResponse, error,
) {
	if err := csi.Missing("ControllerExpandVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetCapacityRange().GetRequiredBytes() <= 0 {
		return nil, csi.Invalid("ControllerExpandVolume: capacity_range.required_bytes is missing")
	}
	size, err := disk.Parameters{}.SizeGB(r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, status.Errorf(codes.OutOfRange, "volume %s: %v", r.GetVolumeId(), err)
	}
	release, err := c.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := c.volume(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if have.Properties.DiskSizeGB >= size {
		size = have.Properties.DiskSizeGB
	} else if err := c.grow(ctx, have, size); err != nil {
		return nil, err
	}
	return &csispec.ControllerExpandVolumeResponse{CapacityBytes: disk.Bytes(size), NodeExpansionRequired: true}, nil
}

func (c *Controller) grow(ctx context.Context, have attachedDisk, size int64) error {
	if !c.config.OnlineResize && have.holder() != "" {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s, and --enable-disk-online-resize is false: "+
			"delete its pods first", have.ID, nodes.MachineName(have.holder()))
	}
	now, err := c.patch(ctx, have.ID, azure.Resource[compute.Disk]{Properties: compute.Disk{DiskSizeGB: size}})
	if have.holder() != "" && slices.Contains([]codes.Code{codes.InvalidArgument, codes.FailedPrecondition}, status.Code(err)) {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s, and Azure refuses to make it %d GiB large: most "+
			"disks of 4 TiB and less grow beyond that only while they are detached; delete the pods of the volume "+
			"and it is tried again: %s",
			have.ID.Name(), nodes.MachineName(have.holder()), size, status.Convert(err).Message())
	}
	if err == nil && now.Properties.DiskSizeGB < size {
		return status.Errorf(codes.Aborted, "change disk %s: Azure ended the operation, but the disk has %d GiB, not %d", have.ID.Name(),
			now.Properties.DiskSizeGB, size)
	}
	return err
}

// patch changes a disk and returns it as it is then.
func (c *Controller) patch(ctx context.Context, id azure.ID, change azure.Resource[compute.Disk]) (azure.Resource[compute.Disk], error) {
	body, _, err := azure.Overlay(nil, change)
	if err != nil {
		return change, csi.Status(err, "change disk %s", id.Name())
	}
	answer, err := azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Patch, ID: id, Body: body})
	if err != nil {
		return change, csi.Status(err, "change disk %s", id.Name())
	}
	now, err := azure.Decode[compute.Disk](answer)
	return now, csi.Status(err, "change disk %s", id.Name())
}

// ControllerModifyVolume changes the SKU and the performance of a disk.
func (c *Controller) ControllerModifyVolume(ctx context.Context, r *csispec.ControllerModifyVolumeRequest) (
	*csispec.ControllerModifyVolumeResponse, error,
) {
	if err := csi.Missing("ControllerModifyVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	want, err := disk.ReadMutable(r.GetMutableParameters())
	if err != nil {
		return nil, csi.Invalid("ControllerModifyVolume: %v", err)
	}
	release, err := c.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := c.volume(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	change, needed, err := disk.Modify(have.Resource, want)
	if err != nil {
		return nil, csi.Invalid("ControllerModifyVolume: %v", err)
	}
	if !needed {
		return &csispec.ControllerModifyVolumeResponse{}, nil
	}
	now, err := c.patch(ctx, have.ID, change)
	if err != nil {
		return nil, err
	}
	if _, still, err := disk.Modify(now, want); still || err != nil {
		return nil, status.Errorf(codes.Aborted, "change disk %s: Azure ended the operation, but the disk is as before", have.ID.Name())
	}
	return &csispec.ControllerModifyVolumeResponse{}, nil
}
