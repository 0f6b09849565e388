package disk

import (
	"context"
	"slices"
	"strconv"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/plan/disk"
)

// page cuts a page out of a list. A token is the index of the page's first element. next is "" at the end.
func page[T any](all []T, token string, most int32) (items []T, next string, err error) {
	first := 0
	if token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "starting_token %q is not valid now: start again without a token", token)
		}
	}
	items = all[first:]
	if most > 0 && int(most) < len(items) {
		return items[:most], strconv.Itoa(first + int(most)), nil
	}
	return items, "", nil
}

// ListVolumes lists the driver's disks in the cluster's resource group, with the nodes to which they are attached.
func (c *Controller) ListVolumes(ctx context.Context, r *csispec.ListVolumesRequest) (*csispec.ListVolumesResponse, error) {
	disks, err := list(ctx, c, compute.Disks, decodeDisk, func(d attachedDisk) azure.Tags { return d.Tags })
	if err != nil {
		return nil, err
	}
	items, next, err := page(disks, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	answer := &csispec.ListVolumesResponse{NextToken: next}
	for _, d := range items {
		answer.Entries = append(answer.Entries, &csispec.ListVolumesResponse_Entry{
			Volume: &csispec.Volume{VolumeId: string(d.ID), CapacityBytes: disk.Bytes(d.Properties.DiskSizeGB)},
			Status: &csispec.ListVolumesResponse_VolumeStatus{PublishedNodeIds: c.nodesOf(ctx, d)},
		})
	}
	return answer, nil
}

// nodesOf returns the nodes of the machines to which a disk is attached. Machines that are not of the cluster are left out.
func (c *Controller) nodesOf(ctx context.Context, d attachedDisk) []string {
	var nodes []string
	for _, machine := range d.Machines {
		if node := c.config.Nodes.Node(ctx, machine); node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// ListSnapshots lists the driver's snapshots in the cluster's resource group, or one snapshot, or those of one disk.
func (c *Controller) ListSnapshots(ctx context.Context, r *csispec.ListSnapshotsRequest) (*csispec.ListSnapshotsResponse, error) {
	snapshots, err := c.selected(ctx, r)
	if err != nil {
		return nil, err
	}
	items, next, err := page(snapshots, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	answer := &csispec.ListSnapshotsResponse{NextToken: next}
	for _, s := range items {
		shown, err := shownSnapshot(s)
		if err != nil {
			return nil, err
		}
		answer.Entries = append(answer.Entries, &csispec.ListSnapshotsResponse_Entry{Snapshot: shown})
	}
	return answer, nil
}

func (c *Controller) selected(ctx context.Context, r *csispec.ListSnapshotsRequest) ([]azure.Resource[compute.Snapshot], error) {
	if r.GetSnapshotId() != "" {
		one, err := c.snapshot(ctx, r.GetSnapshotId())
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		return []azure.Resource[compute.Snapshot]{one}, err
	}
	all, err := list(ctx, c, compute.Snapshots, azure.Decode[compute.Snapshot],
		func(s azure.Resource[compute.Snapshot]) azure.Tags { return s.Tags })
	if source := azure.ID(r.GetSourceVolumeId()); source != "" {
		all = slices.DeleteFunc(all, func(s azure.Resource[compute.Snapshot]) bool {
			return !disk.SourceOf(s).Equal(source)
		})
	}
	return all, err
}

// list lists the driver's resources of a type in the cluster's resource group.
func list[T any](ctx context.Context, c *Controller, fullType string, decode func(azure.Document) (T, error),
	tags func(T) azure.Tags,
) ([]T, error) {
	docs, err := azure.At(c.config.Azure, azure.Compare).List(ctx, azure.Query{
		Scope: azure.GroupID(c.config.Cluster.Subscription, c.config.Cluster.ResourceGroup), Type: fullType,
	})
	if err != nil {
		return nil, csi.Status(err, "list %s", fullType)
	}
	var all []T
	for _, doc := range docs {
		r, err := decode(doc)
		if err != nil {
			return nil, csi.Status(err, "list %s", fullType)
		}
		if disk.Ours(tags(r)) {
			all = append(all, r)
		}
	}
	return all, nil
}
