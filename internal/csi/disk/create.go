package disk

import (
	"context"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/pause"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/nodes"
)

// CreateVolume creates a disk: empty, from a snapshot, or as a copy of a disk. A request that is repeated finds the disk
// by its name and its owner.
func (c *Controller) CreateVolume(ctx context.Context, r *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	volume, err := c.requested(r)
	if err != nil {
		return nil, err
	}
	id := c.config.Cluster.ID(volume)
	release, err := c.locks.Take(string(id))
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.useSource(ctx, &volume, r.GetVolumeContentSource()); err != nil {
		return nil, err
	}
	if !c.locator().allowed(volume, r.GetAccessibilityRequirements()) {
		return nil, status.Errorf(codes.ResourceExhausted, "CreateVolume: a copy of disk %s is in its zone %s-%s, which is not "+
			"allowed here", volume.Source.Name(), c.locator().region(volume.Parameters), volume.Zone)
	}
	made, err := c.create(ctx, c.config.Cluster.Disk(volume), volume.Parameters.DiskName != "")
	if err != nil {
		return nil, err
	}
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: string(made.ID), CapacityBytes: disk.Bytes(made.Properties.DiskSizeGB),
		VolumeContext: volume.Context(r.GetParameters(), r.GetMutableParameters()), ContentSource: r.GetVolumeContentSource(),
		AccessibleTopology: c.locator().topology(volume),
	}}, nil
}

// requested returns the volume that a request asks for.
func (c *Controller) requested(r *csispec.CreateVolumeRequest) (disk.Volume, error) {
	var none disk.Volume
	p, err := disk.ReadParameters(r.GetParameters(), r.GetMutableParameters())
	if err != nil {
		return none, csi.Invalid("CreateVolume: %v", err)
	}
	if err := csi.Missing("CreateVolume", "name", r.GetName()); err != nil {
		return none, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return none, csi.Invalid("CreateVolume: volume_capabilities is missing")
	}
	if err := checkCapabilities("CreateVolume", max(p.MaxShares, 1), r.GetVolumeCapabilities()...); err != nil {
		return none, err
	}
	size, err := p.SizeGB(r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return none, status.Errorf(codes.OutOfRange, "CreateVolume: %v", err)
	}
	zone, err := c.locator().zone(p, r.GetAccessibilityRequirements())
	if err != nil {
		return none, err
	}
	return disk.Volume{Name: r.GetName(), Parameters: p, SizeGB: size, Zone: zone}, nil
}

// useSource checks the source of a volume and makes the volume a copy of it.
func (c *Controller) useSource(ctx context.Context, v *disk.Volume, source *csispec.VolumeContentSource) error {
	switch {
	case source.GetSnapshot() != nil:
		snapshot, err := c.source(ctx, source.GetSnapshot().GetSnapshotId())
		if err != nil {
			return err
		}
		v.Source = snapshot.ID
		return largeEnough(v.SizeGB, snapshot.Properties.DiskSizeGB, "snapshot "+snapshot.ID.Name())
	case source.GetVolume() != nil:
		from, err := c.volume(ctx, source.GetVolume().GetVolumeId())
		if err != nil {
			return err
		}
		v.Source = from.ID
		if len(from.Zones) == 1 && !v.Parameters.ZoneRedundant() {
			v.Zone = from.Zones[0]
		}
		return largeEnough(v.SizeGB, from.Properties.DiskSizeGB, "disk "+from.ID.Name())
	}
	return nil
}

func largeEnough(size, source int64, what string) error {
	if size < source {
		return status.Errorf(codes.OutOfRange, "CreateVolume: %d GiB are less than the %d GiB of %s", size, source, what)
	}
	return nil
}

// create creates a disk, or returns the disk that an earlier request created. It does not touch a disk that another volume
// owns. named says that the StorageClass names the disk, so that two volumes may ask for one name.
func (c *Controller) create(ctx context.Context, want azure.Resource[compute.Disk], named bool) (azure.Resource[compute.Disk], error) {
	owned := func(have azure.Resource[compute.Disk]) error {
		if why := disk.OtherOwner(have, want, named); why != "" {
			return status.Errorf(codes.AlreadyExists, "create disk %s: a disk of this name exists: %s", want.ID.Name(), why)
		}
		return nil
	}
	have, err := ensure(ctx, c.config.Azure, want, func(d compute.Disk) string { return d.ProvisioningState }, owned)
	if err == nil && named { // another process may have created it at the same time
		if have, err = read[compute.Disk](ctx, c.config.Azure, want.ID); err == nil {
			err = owned(have)
		}
	}
	if err != nil {
		return have, csi.Status(err, "create disk %s", want.ID.Name())
	}
	if why := disk.SameVolume(have, want); why != "" {
		return have, status.Errorf(codes.AlreadyExists, "create disk %s: a disk of this name exists: %s", want.ID.Name(), why)
	}
	return have, nil
}

// ensure creates a resource, or returns the resource that an earlier request created. It waits for a creation that is under
// way, and repeats one that failed. It reads before it writes, because Azure has no condition for disks and snapshots: a PUT
// changes what exists. owned returns an error if the resource that exists belongs to another owner.
func ensure[P any](ctx context.Context, in Azure, want azure.Resource[P], stateOf func(P) string,
	owned func(azure.Resource[P]) error,
) (azure.Resource[P], error) {
	for look := firstLook; ; look = min(2*look, slowestLook) {
		have, err := read[P](ctx, in, want.ID)
		if azure.IsNotFound(err) {
			return put(ctx, in, want)
		}
		if err == nil {
			err = owned(have)
		}
		if err != nil {
			return have, err
		}
		switch state := stateOf(have.Properties); {
		case strings.EqualFold(state, "Failed"), strings.EqualFold(state, "Canceled"):
			return put(ctx, in, want)
		case strings.EqualFold(state, "Succeeded"):
			return have, nil
		}
		if err := pause.For(ctx, look); err != nil {
			return have, err
		}
	}
}

// put creates a resource.
func put[P any](ctx context.Context, to azure.Writer, want azure.Resource[P]) (azure.Resource[P], error) {
	body, _, err := azure.Overlay(nil, want)
	if err != nil {
		return want, err
	}
	answer, err := azure.Do(ctx, to, azure.Request{Verb: azure.Put, ID: want.ID, Body: body})
	if err != nil {
		return want, err
	}
	made, err := azure.Decode[P](answer)
	if made.ID == "" {
		made.ID = want.ID
	}
	return made, err
}

// DeleteVolume deletes a disk. It succeeds if the disk does not exist.
func (c *Controller) DeleteVolume(ctx context.Context, r *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	if err := csi.Missing("DeleteVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	id, ok := diskID(r.GetVolumeId(), compute.Disks)
	if !ok {
		return &csispec.DeleteVolumeResponse{}, nil
	}
	release, err := c.locks.Take(string(id))
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := readDisk(ctx, c.config.Azure, id)
	switch {
	case azure.IsNotFound(err):
		return &csispec.DeleteVolumeResponse{}, nil
	case err != nil:
		return nil, csi.Status(err, "delete disk %s", id.Name())
	case have.holder() != "":
		return nil, status.Errorf(codes.FailedPrecondition, "delete disk %s: it is attached to %s",
			id.Name(), nodes.MachineName(have.holder()))
	}
	if err := c.deletable(ctx, have); err != nil {
		return nil, err
	}
	_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Delete, ID: id})
	return &csispec.DeleteVolumeResponse{}, csi.Status(err, "delete disk %s", id.Name())
}

// deletable returns an error if Kubernetes knows another volume of a disk, or if the disk belongs to another volume.
func (c *Controller) deletable(ctx context.Context, have attachedDisk) error {
	if c.config.Uses == nil {
		return nil
	}
	volumes, err := c.config.Uses.Volumes(ctx, have.ID)
	if err != nil {
		return csi.Status(err, "delete disk %s", have.ID.Name())
	}
	if why := disk.Keep(have.Resource, volumes); why != "" {
		return status.Errorf(codes.FailedPrecondition, "delete disk %s: %s", have.ID.Name(), why)
	}
	return nil
}
