package disk

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/pause"
	"kaz/internal/plan/disk"
)

// ControllerPublishVolume attaches a disk to a node's machine. The publish context has the LUN.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *csispec.ControllerPublishVolumeRequest) (
	*csispec.ControllerPublishVolumeResponse, error,
) {
	const request = "ControllerPublishVolume"
	if err := csi.Missing(request, "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	shares, err := sharesOf(r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if err := checkCapabilities(request, shares, r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if err := csi.Missing(request, "node_id", r.GetNodeId()); err != nil {
		return nil, err
	}
	machine, err := c.config.Nodes.Machine(ctx, r.GetNodeId())
	if err != nil {
		return nil, csi.Status(err, "node %s", r.GetNodeId())
	}
	described := c.volumeContext(r)
	if lun, done, err := c.attachDescribed(ctx, machine, r, described); err != nil {
		return nil, err
	} else if done {
		return &csispec.ControllerPublishVolumeResponse{PublishContext: map[string]string{lunKey: strconv.Itoa(lun)}}, nil
	}
	have, err := c.volumeAt(ctx, r.GetVolumeId(), azure.Attach)
	if err != nil {
		return nil, err
	}
	if err := c.free(ctx, have, machine); err != nil {
		return nil, err
	}
	caching, err := disk.Caching(have.Resource, lookup(described, "cachingMode"))
	if err != nil {
		return nil, csi.Invalid("%s: volume context: %v", request, err)
	}
	lun, err := c.attach(ctx, machine, disk.Attachment(have.Resource, caching))
	if err != nil {
		return nil, attachStatus(err, have.ID, r.GetNodeId())
	}
	published := map[string]string{lunKey: strconv.Itoa(lun)}
	if lookup(r.GetVolumeContext(), disk.RequestedSize) == "" {
		disk.AddFacts(published, have.Resource)
	}
	return &csispec.ControllerPublishVolumeResponse{PublishContext: published}, nil
}

// volumeContext returns what the volume's context says of the attachment. With ConvertCaching, volumes of the in-tree driver
// get a read-only cache instead of one for reads and writes.
func (c *Controller) volumeContext(r *csispec.ControllerPublishVolumeRequest) map[string]string {
	said := r.GetVolumeContext()
	if !c.config.ConvertCaching || !strings.EqualFold(lookup(said, "kind"), "Managed") ||
		!strings.EqualFold(lookup(said, "cachingMode"), "ReadWrite") {
		return said
	}
	said = maps.Clone(said)
	maps.DeleteFunc(said, func(key, _ string) bool { return strings.EqualFold(key, "cachingMode") })
	said["cachingMode"] = "ReadOnly"
	return said
}

// attachDescribed attaches a disk as its volume context describes it, without reading the disk. The result done is false if
// the context says too little, or if Azure refuses the attachment. Azure refuses it if another machine has the disk, or if
// the disk has changed. The caller then reads the disk.
func (c *Controller) attachDescribed(ctx context.Context, machine azure.ID, r *csispec.ControllerPublishVolumeRequest,
	described map[string]string,
) (lun int, done bool, err error) {
	id, ok := diskID(r.GetVolumeId(), compute.Disks)
	if !ok {
		return 0, false, nil
	}
	change, ok := disk.Described(id, described)
	if !ok {
		return 0, false, nil
	}
	lun, err = c.attach(ctx, machine, change)
	switch azure.KindOf(err) {
	case azure.Invalid, azure.InUse, azure.NotFound:
		return 0, false, nil
	}
	return lun, err == nil, attachStatus(err, id, r.GetNodeId())
}

// attach attaches a disk and returns its LUN. While Azure is still detaching the disk it waits.
func (c *Controller) attach(ctx context.Context, machine azure.ID, change disk.Change) (int, error) {
	deadline := time.Now().Add(releaseWithin)
	for look := firstLook; ; look = min(2*look, slowestLook) {
		lun, err := c.attacher.change(ctx, machine, change)
		if !isLeaving(err) || time.Now().Add(look).After(deadline) {
			return lun, err
		}
		if pause.For(ctx, look) != nil {
			return 0, err
		}
	}
}

// isLeaving reports whether a disk was not attached because Azure is still detaching it.
func isLeaving(err error) bool {
	if _, ok := errors.AsType[*disk.LeavingError](err); ok {
		return true
	}
	e, ok := errors.AsType[*azure.Error](err)
	return ok && e.Code == "AttachDiskWhileBeingDetached"
}

// attachStatus returns the gRPC status of a failed attachment.
func attachStatus(err error, id azure.ID, node string) error {
	if err == nil {
		return nil
	}
	if full, ok := errors.AsType[*disk.FullError](err); ok {
		return status.Error(codes.ResourceExhausted, full.Error())
	}
	if leaving, ok := errors.AsType[*disk.LeavingError](err); ok {
		return status.Error(codes.Aborted, leaving.Error())
	}
	return csi.Status(err, "attach %s to node %s", id.Name(), node)
}

// ControllerUnpublishVolume detaches a disk from a node's machine. A machine that is gone has no disks. The machine of a
// deleted Node is found by the disk.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *csispec.ControllerUnpublishVolumeRequest) (
	*csispec.ControllerUnpublishVolumeResponse, error,
) {
	done := &csispec.ControllerUnpublishVolumeResponse{}
	if err := csi.Missing("ControllerUnpublishVolume", "volume_id", r.GetVolumeId(), "node_id", r.GetNodeId()); err != nil {
		return nil, err
	}
	id, ok := diskID(r.GetVolumeId(), compute.Disks)
	if !ok {
		return nil, csi.Invalid("ControllerUnpublishVolume: volume_id %q is not the id of a disk", r.GetVolumeId())
	}
	machine, err := c.config.Nodes.Machine(ctx, r.GetNodeId())
	if err == nil {
		err = c.detach(ctx, machine, id, r.GetNodeId())
	}
	if azure.IsNotFound(err) {
		err = c.detachFromLost(ctx, id, r.GetNodeId())
	}
	return done, csi.Status(err, "detach %s from node %s", id.Name(), r.GetNodeId())
}
