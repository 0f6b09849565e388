package file

import (
	"context"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi"
	"kaz/internal/plan/share"
)

// listed is a share with the id of its volume.
type listed struct {
	volume string
	id     azure.ID
	quota  int64
}

// ListVolumes lists the shares of the driver: those of persistent volumes, and those in accounts that the driver made.
func (c *Controller) ListVolumes(ctx context.Context, r *csispec.ListVolumesRequest) (*csispec.ListVolumesResponse, error) {
	all, err := c.listShares(ctx)
	if err != nil {
		return nil, csi.Status(err, "list shares")
	}
	items, next, err := csi.Page(all, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	answer := &csispec.ListVolumesResponse{NextToken: next}
	for _, l := range items {
		answer.Entries = append(answer.Entries, &csispec.ListVolumesResponse_Entry{
			Volume: &csispec.Volume{VolumeId: l.volume, CapacityBytes: share.Bytes(l.quota)},
		})
	}
	return answer, nil
}

// listShares returns the shares of all accounts that persistent volumes name or that the driver made, in the order of their ids.
func (c *Controller) listShares(ctx context.Context) ([]listed, error) {
	if c.config.Azure == nil {
		return nil, nil
	}
	names, accounts, err := c.claimed(ctx)
	if err != nil {
		return nil, err
	}
	made, err := c.accounts.list(ctx, share.Request{Cluster: c.config.Cluster})
	if err != nil {
		return nil, err
	}
	for _, a := range made {
		if share.MadeByDriver(a) {
			accounts[a.ID.Key()] = a.ID
		}
	}
	var all []listed
	for _, account := range accounts {
		docs, err := c.config.Azure.List(ctx, azure.Query{Scope: storage.FileServiceOf(account), Type: storage.Shares})
		if azure.IsNotFound(err) {
			continue // a persistent volume names an account that is gone
		}
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			s, err := azure.Decode[storage.Share](doc)
			if err != nil {
				return nil, err
			}
			all = append(all, listed{volumeID(names, account, s.ID), s.ID, s.Properties.QuotaGiB})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.id.Key(), b.id.Key()) })
	return all, nil
}

// claimed returns the volume ids of persistent volumes by their shares, and their accounts.
func (c *Controller) claimed(ctx context.Context) (names map[string]string, accounts map[string]azure.ID, err error) {
	names, accounts = map[string]string{}, map[string]azure.ID{}
	if c.config.Volumes == nil {
		return names, accounts, nil
	}
	all, err := c.config.Volumes(ctx)
	for _, p := range all {
		v, err := p.Volume()
		if err != nil || !share.NamesAccount(v.Account) {
			continue
		}
		names[c.config.Cluster.ShareID(v).Key()] = p.Handle
		account := c.config.Cluster.AccountID(v)
		accounts[account.Key()] = account
	}
	return names, accounts, err
}

// volumeID returns the volume id of a share: that of its persistent volume, or the one that it had without a namespace.
func volumeID(names map[string]string, account, id azure.ID) string {
	if name, known := names[id.Key()]; known {
		return name
	}
	return share.Volume{Group: account.Group(), Account: account.Name(), Share: id.Name(), Namespace: "default"}.String()
}

// ListSnapshots lists the snapshots of the driver's shares, or one snapshot, or those of one share.
func (c *Controller) ListSnapshots(ctx context.Context, r *csispec.ListSnapshotsRequest) (*csispec.ListSnapshotsResponse, error) {
	all, err := c.selected(ctx, r)
	if err != nil {
		return nil, csi.Status(err, "list snapshots")
	}
	items, next, err := csi.Page(all, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	answer := &csispec.ListSnapshotsResponse{NextToken: next}
	for _, s := range items {
		answer.Entries = append(answer.Entries, &csispec.ListSnapshotsResponse_Entry{Snapshot: s})
	}
	return answer, nil
}

func (c *Controller) selected(ctx context.Context, r *csispec.ListSnapshotsRequest) ([]*csispec.Snapshot, error) {
	switch {
	case r.GetSnapshotId() != "":
		one, err := c.oneSnapshot(ctx, r.GetSnapshotId())
		if one == nil || err != nil || r.GetSourceVolumeId() != "" && one.GetSourceVolumeId() != r.GetSourceVolumeId() {
			return nil, err
		}
		return []*csispec.Snapshot{one}, nil
	case r.GetSourceVolumeId() != "":
		v, err := share.ParseVolume(r.GetSourceVolumeId())
		if err != nil || c.config.Azure == nil {
			return nil, nil
		}
		return c.snapshotsOf(ctx, c.config.Cluster.AccountID(v), v.Share, func(azure.ID) string { return r.GetSourceVolumeId() })
	}
	return c.allSnapshots(ctx)
}

// allSnapshots returns the snapshots of all shares of the driver.
func (c *Controller) allSnapshots(ctx context.Context) ([]*csispec.Snapshot, error) {
	shares, err := c.listShares(ctx)
	if err != nil {
		return nil, err
	}
	volumes, accounts := map[string]string{}, map[string]azure.ID{}
	for _, l := range shares {
		volumes[l.id.Key()] = l.volume
		account := l.id.Parent().Parent()
		accounts[account.Key()] = account
	}
	var all []*csispec.Snapshot
	for _, account := range accounts {
		some, err := c.snapshotsOf(ctx, account, "", func(id azure.ID) string { return volumes[id.Key()] })
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *csispec.Snapshot) int { return strings.Compare(a.GetSnapshotId(), b.GetSnapshotId()) })
	return all, nil
}

// snapshotsOf returns the snapshots of an account, or of one share.
func (c *Controller) snapshotsOf(ctx context.Context, account azure.ID, name string, volume func(azure.ID) string) (
	[]*csispec.Snapshot, error,
) {
	found, err := c.snapshots.list(ctx, account, name)
	if err != nil && !azure.IsNotFound(err) {
		return nil, err
	}
	var all []*csispec.Snapshot
	for _, t := range found {
		if v := volume(t.share); v != "" {
			all = append(all, c.shown(v, t, t.quota))
		}
	}
	return all, nil
}
