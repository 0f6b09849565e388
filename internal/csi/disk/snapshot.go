package disk

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/plan/disk"
)

// CreateSnapshot creates a snapshot of a disk. A request that is repeated finds the snapshot by its name.
func (c *Controller) CreateSnapshot(ctx context.Context, r *csispec.CreateSnapshotRequest) (*csispec.CreateSnapshotResponse, error) {
	if err := csi.Missing("CreateSnapshot", "source_volume_id", r.GetSourceVolumeId(), "name", r.GetName()); err != nil {
		return nil, err
	}
	p, err := disk.ReadSnapshotParameters(r.GetParameters())
	if err != nil {
		return nil, csi.Invalid("CreateSnapshot: %v", err)
	}
	source, ok := diskID(r.GetSourceVolumeId(), compute.Disks)
	if !ok {
		return nil, csi.Invalid("CreateSnapshot: source_volume_id %q is not the id of a disk", r.GetSourceVolumeId())
	}
	id := c.config.Cluster.SnapshotID(r.GetName(), source, p)
	release, err := c.locks.Take(string(id))
	if err != nil {
		return nil, err
	}
	defer release()
	of, err := c.volume(ctx, string(source))
	if err != nil {
		return nil, err
	}
	shown, err := c.takeSnapshot(ctx, c.config.Cluster.Snapshot(r.GetName(), of.Resource, p), p.Location)
	return &csispec.CreateSnapshotResponse{Snapshot: shown}, csi.Status(err, "create snapshot %s of disk %s", id.Name(), source.Name())
}

// takeSnapshot creates a snapshot, in another region if location names one.
func (c *Controller) takeSnapshot(ctx context.Context, want azure.Resource[compute.Snapshot], location string) (*csispec.Snapshot, error) {
	if location != "" && !disk.IsIn(want.Location, location) {
		return c.takeRemote(ctx, want, location)
	}
	have, err := c.ensureSnapshot(ctx, want, disk.SourceOf(want))
	if err != nil {
		return nil, err
	}
	return shownSnapshot(have)
}

// ensureSnapshot creates a snapshot, or returns the one that an earlier request created of the same disk for the same owner.
func (c *Controller) ensureSnapshot(ctx context.Context, want azure.Resource[compute.Snapshot], source azure.ID) (
	azure.Resource[compute.Snapshot], error,
) {
	return ensure(ctx, c.config.Azure, want, func(s compute.Snapshot) string { return s.ProvisioningState },
		func(have azure.Resource[compute.Snapshot]) error { return checkSnapshot(have, want, source) })
}

func checkSnapshot(have, want azure.Resource[compute.Snapshot], source azure.ID) error {
	if why := disk.OtherSnapshot(have, want, source); why != "" {
		return status.Errorf(codes.AlreadyExists, "create snapshot %s of disk %s: a snapshot of this name exists, %s", have.ID.Name(),
			source.Name(), why)
	}
	return nil
}

// takeRemote creates a snapshot in the region of the disk, copies it to another region and then deletes the first snapshot.
// Each request goes as far as Azure is. Until the first snapshot is complete, takeRemote returns the id of the future copy,
// not ready.
func (c *Controller) takeRemote(ctx context.Context, local azure.Resource[compute.Snapshot], location string) (*csispec.Snapshot, error) {
	remote, source := local.ID, disk.SourceOf(local)
	have, err := read[compute.Snapshot](ctx, c.config.Azure, remote)
	if azure.IsNotFound(err) {
		local.ID = disk.Between(remote)
		if have, err = c.ensureSnapshot(ctx, local, source); err != nil {
			return nil, err
		}
		promised, err := shownSnapshot(have)
		if s, unknown := disk.StateOf(have); err != nil || unknown != nil || !s.Copied {
			return notReady(promised, remote), err
		}
		if have, err = c.ensureSnapshot(ctx, disk.Remote(local, remote, location), source); err != nil {
			return nil, err
		}
	} else if err == nil {
		err = checkSnapshot(have, local, source)
	}
	if err != nil {
		return nil, err
	}
	shown, err := shownSnapshot(have)
	if err == nil && shown.GetReadyToUse() {
		err = c.deleteBetween(ctx, remote)
	}
	return shown, err
}

// deleteBetween deletes the snapshot in the region of the disk from which the snapshot remote is copied. It keeps a snapshot of
// that name that no driver made.
func (c *Controller) deleteBetween(ctx context.Context, remote azure.ID) error {
	between := disk.Between(remote)
	have, err := read[compute.Snapshot](ctx, c.config.Azure, between)
	if azure.IsNotFound(err) || err == nil && !disk.Ours(have.Tags) {
		return nil
	}
	if err == nil {
		_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Delete, ID: between})
	}
	return err
}

// notReady gives a snapshot the id of its future copy and marks it as not ready.
func notReady(s *csispec.Snapshot, id azure.ID) *csispec.Snapshot {
	if s != nil {
		s.SnapshotId, s.ReadyToUse = string(id), false
	}
	return s
}

func shownSnapshot(have azure.Resource[compute.Snapshot]) (*csispec.Snapshot, error) {
	s, err := disk.StateOf(have)
	if err != nil {
		return nil, csi.Status(err, "snapshot %s", have.ID.Name())
	}
	return &csispec.Snapshot{
		SnapshotId: string(have.ID), SourceVolumeId: string(s.Source), SizeBytes: disk.Bytes(s.SizeGB),
		CreationTime: timestamppb.New(s.Created), ReadyToUse: s.Ready,
	}, nil
}

// source reads the snapshot of which a disk is to be made. Until Azure has copied it, the error has the code Aborted, and the
// provisioner asks again.
func (c *Controller) source(ctx context.Context, handle string) (azure.Resource[compute.Snapshot], error) {
	have, err := c.snapshot(ctx, handle)
	if err != nil {
		return have, err
	}
	switch s, err := disk.StateOf(have); {
	case err != nil:
		return have, csi.Status(err, "snapshot %s", handle)
	case !s.Ready:
		return have, status.Errorf(codes.Aborted,
			"snapshot %s is not complete: its provisioning state is %s, and Azure has copied %.0f %%; "+
				"it is tried again", handle, have.Properties.ProvisioningState, s.Percent)
	}
	return have, nil
}

// snapshot reads a snapshot. A bare name is that of a snapshot in the cluster's resource group.
func (c *Controller) snapshot(ctx context.Context, handle string) (azure.Resource[compute.Snapshot], error) {
	id, ok := diskID(handle, compute.Snapshots)
	if !ok && disk.ResourceName(handle) == handle {
		id, ok = azure.GroupID(c.config.Cluster.Subscription, c.config.Cluster.ResourceGroup).Resource(compute.Snapshots, handle), true
	}
	if !ok {
		return azure.Resource[compute.Snapshot]{}, status.Errorf(codes.NotFound, "snapshot %q: there is no such snapshot", handle)
	}
	s, err := read[compute.Snapshot](ctx, c.config.Azure, id)
	return s, csi.Status(err, "snapshot %s", handle)
}

// GetSnapshot returns one snapshot.
func (c *Controller) GetSnapshot(ctx context.Context, r *csispec.GetSnapshotRequest) (*csispec.GetSnapshotResponse, error) {
	if err := csi.Missing("GetSnapshot", "snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	have, err := c.snapshot(ctx, r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	shown, err := shownSnapshot(have)
	return &csispec.GetSnapshotResponse{Snapshot: shown}, err
}

// DeleteSnapshot deletes a snapshot. It succeeds if the snapshot does not exist.
func (c *Controller) DeleteSnapshot(ctx context.Context, r *csispec.DeleteSnapshotRequest) (*csispec.DeleteSnapshotResponse, error) {
	if err := csi.Missing("DeleteSnapshot", "snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	id, ok := diskID(r.GetSnapshotId(), compute.Snapshots)
	if !ok {
		return &csispec.DeleteSnapshotResponse{}, nil
	}
	release, err := c.locks.Take(string(id))
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := read[compute.Snapshot](ctx, c.config.Azure, id)
	switch {
	case err != nil && !azure.IsNotFound(err):
		return nil, csi.Status(err, "delete snapshot %s", id.Name())
	case err == nil:
		if _, err := azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Delete, ID: id}); err != nil {
			return nil, csi.Status(err, "delete snapshot %s", id.Name())
		}
	}
	if err != nil || disk.CopiesRegion(have) { // the copy may have been promised and not begun
		err = c.deleteBetween(ctx, id)
	}
	return &csispec.DeleteSnapshotResponse{}, csi.Status(err, "delete snapshot %s", id.Name())
}
