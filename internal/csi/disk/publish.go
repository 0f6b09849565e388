package disk

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
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
	have, err := c.volume(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	machine, err := c.config.Nodes.Machine(ctx, r.GetNodeId())
	if err != nil {
		return nil, csi.Status(err, "node %s", r.GetNodeId())
	}
	if err := c.waitUntilFree(ctx, have, machine, shares); err != nil {
		return nil, err
	}
	caching, err := disk.Caching(have.Resource, lookup(r.GetVolumeContext(), "cachingMode"))
	if err != nil {
		return nil, csi.Invalid("%s: volume context: %v", request, err)
	}
	change := disk.Attachment(have.Resource, caching)
	lun, err := c.attacher.change(ctx, machine, change)
	if err != nil {
		return nil, attachStatus(err, have.ID, r.GetNodeId())
	}
	published := map[string]string{lunKey: strconv.Itoa(lun)}
	if lookup(r.GetVolumeContext(), disk.RequestedSize) == "" {
		disk.AddFacts(published, have.Resource)
	}
	return &csispec.ControllerPublishVolumeResponse{PublishContext: published}, nil
}

// A machine releases a disk some moments after the detachment: for so long an attachment elsewhere waits, and this is
// how often it looks at first.
const (
	releaseWithin = 30 * time.Second
	firstLook     = 500 * time.Millisecond
	slowestLook   = 4 * time.Second
)

// waitUntilFree waits until no other machine has a disk, if only one machine can have it.
func (c *Controller) waitUntilFree(ctx context.Context, have attachedDisk, machine azure.ID, shares int64) error {
	deadline := time.Now().Add(releaseWithin)
	for look := firstLook; have.holder() != "" && !have.holder().Equal(machine) && shares < 2; look = min(2*look, slowestLook) {
		if time.Now().After(deadline) {
			return status.Errorf(codes.FailedPrecondition, "attach %s to %s: the disk is attached to %s and a disk with maxShares 1 "+
				"can have one machine; it is attached when that machine releases it", have.ID.Name(), machine.Name(), have.holder().Name())
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return csi.Status(ctx.Err(), "attach %s to %s: waiting for %s to release it", have.ID.Name(), machine.Name(),
				have.holder().Name())
		}
		var err error
		if have, err = c.volume(ctx, string(have.ID)); err != nil {
			return err
		}
	}
	return nil
}

// attachStatus returns the gRPC status of a failed attachment.
func attachStatus(err error, id azure.ID, node string) error {
	if full, ok := errors.AsType[*disk.FullError](err); ok {
		return status.Error(codes.ResourceExhausted, full.Error())
	}
	if leaving, ok := errors.AsType[*disk.LeavingError](err); ok {
		return status.Error(codes.Aborted, leaving.Error())
	}
	return csi.Status(err, "attach %s to node %s", id.Name(), node)
}

// ControllerUnpublishVolume detaches a disk from a node's machine. A machine that is gone has no disks.
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
		_, err = c.attacher.change(ctx, machine, disk.Change{Disk: id})
	}
	if azure.IsNotFound(err) {
		return done, c.confirmDetached(ctx, id, r.GetNodeId())
	}
	if err != nil {
		return nil, csi.Status(err, "detach %s from node %s", id.Name(), r.GetNodeId())
	}
	return done, nil
}

// confirmDetached returns an error while a disk is attached to the machine of a node whose machine was not found.
func (c *Controller) confirmDetached(ctx context.Context, id azure.ID, node string) error {
	have, err := readDisk(ctx, c.config.Azure, id)
	if err != nil && !azure.IsNotFound(err) {
		return csi.Status(err, "detach %s from node %s", id.Name(), node)
	}
	if have.holder() == "" {
		return nil
	}
	if holder := c.config.Nodes.Node(ctx, have.holder()); holder != "" && !strings.EqualFold(holder, node) {
		return nil
	}
	return status.Errorf(codes.Aborted, "detach %s from node %s: the node's machine was not found, but the disk is still attached to %s",
		id.Name(), node, have.holder().Name())
}
