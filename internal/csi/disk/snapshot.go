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
	want := c.config.Cluster.Snapshot(r.GetName(), source, p)
	release, err := c.locks.Take(string(want.ID))
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := ensure(ctx, c.config.Azure, want, func(s compute.Snapshot) string { return s.ProvisioningState })
	if err != nil {
		return nil, csi.Status(err, "create snapshot %s of disk %s", want.ID.Name(), source.Name())
	}
	if from := have.Properties.CreationData.SourceResourceID; !from.Equal(source) {
		return nil, status.Errorf(codes.AlreadyExists, "create snapshot %s of disk %s: a snapshot of this name exists, of disk %s",
			want.ID.Name(), source.Name(), from.Name())
	}
	shown, err := shownSnapshot(have)
	return &csispec.CreateSnapshotResponse{Snapshot: shown}, err
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

// DeleteSnapshot deletes a snapshot. A snapshot that does not exist is deleted.
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
	_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Delete, ID: id})
	return &csispec.DeleteSnapshotResponse{}, csi.Status(err, "delete snapshot %s", id.Name())
}
