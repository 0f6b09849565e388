package storage

import (
	"maps"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// snapshotsField is the field of a share's document with its snapshots.
const snapshotsField = behaviour.Private + "snapshots"

// snapshotHeader names a snapshot of a share by its time.
const snapshotHeader = "X-Ms-Snapshot"

// mostSnapshots is the limit of the snapshots of a share.
const mostSnapshots = 200

// addSnapshot adds a snapshot to a share, which otherwise stays as it is.
func addSnapshot(c *behaviour.Call) error {
	if c.Old == nil {
		return notFound(c, "ShareNotFound", "share")
	}
	metadata := behaviour.Sub(c.Doc, "properties.metadata")
	clear(c.Doc)
	maps.Copy(c.Doc, behaviour.Clone(c.Old))
	_, err := appendSnapshot(c, c.Doc, metadata)
	return err
}

// appendSnapshot appends a snapshot to the document of a share and returns its time.
func appendSnapshot(w behaviour.World, share, metadata behaviour.Object) (time.Time, error) {
	all := behaviour.Objects(share, snapshotsField)
	if len(all) >= mostSnapshots {
		return time.Time{}, behaviour.Conflict("SnapshotCountExceeded",
			"The total number of snapshots for the share is over the limit: it has %d, %d are allowed.", len(all), mostSnapshots)
	}
	const tick = 100 * time.Nanosecond
	now := w.Now().UTC().Truncate(tick)
	for _, s := range all { // no two snapshots have one time
		if t := snapshotTime(s); !now.After(t) {
			now = t.Add(tick)
		}
	}
	if metadata == nil {
		metadata = behaviour.Clone(behaviour.Sub(share, "properties.metadata"))
	}
	snapshot := behaviour.Object{"snapshotTime": behaviour.Timestamp(now), quotaField: behaviour.At(share, quotaPath)}
	if metadata != nil {
		snapshot["metadata"] = metadata
	}
	share[snapshotsField] = append(behaviour.Array(share, snapshotsField), snapshot)
	return now, nil
}

// quotaField is the name of a share's quota among its properties.
const quotaField = "shareQuota"

func snapshotTime(snapshot behaviour.Object) time.Time {
	t, err := time.Parse(time.RFC3339Nano, behaviour.Text(snapshot, "snapshotTime"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// findSnapshot returns the position of the snapshot of a time, below 0 for none.
func findSnapshot(share behaviour.Object, text string) int {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return -1
	}
	for i, s := range behaviour.Objects(share, snapshotsField) {
		if snapshotTime(s).Equal(at) {
			return i
		}
	}
	return -1
}

// snapshotView is the share as the snapshot has it that a request names.
func snapshotView(c *behaviour.Call) (behaviour.Object, error) {
	text := c.Header.Get(snapshotHeader)
	if text == "" {
		return c.Old, nil
	}
	i := findSnapshot(c.Old, text)
	if i < 0 {
		return nil, notFound(c, "ShareSnapshotNotFound", "share snapshot")
	}
	return asSnapshot(c.Old, behaviour.Objects(c.Old, snapshotsField)[i]), nil
}

// removeSnapshot removes the snapshot that a request names.
func removeSnapshot(c *behaviour.Call) (bool, error) {
	text := c.Header.Get(snapshotHeader)
	if text == "" {
		return false, nil
	}
	return true, DeleteSnapshot(c, c.ID, text)
}

// refuseWithSnapshots refuses to delete a share with snapshots if the request says so. Without $include they go with the share.
func refuseWithSnapshots(c *behaviour.Call) error {
	if len(behaviour.Array(c.Old, snapshotsField)) > 0 && strings.EqualFold(c.Query.Get("$include"), "none") {
		return behaviour.Conflict("ShareHasSnapshots", "The share has snapshots and the operation requires no snapshots.")
	}
	return nil
}

// snapshotViews returns the snapshots of a share as the list of shares shows them.
func snapshotViews(doc behaviour.Object) []behaviour.Object {
	var views []behaviour.Object
	for _, snapshot := range behaviour.Objects(doc, snapshotsField) {
		views = append(views, asSnapshot(doc, snapshot))
	}
	return views
}

// asSnapshot is a share as one of its snapshots has it.
func asSnapshot(share, snapshot behaviour.Object) behaviour.Object {
	view := maps.Clone(share)
	delete(view, snapshotsField)
	view = behaviour.Clone(view)
	behaviour.Remove(view, "properties.metadata")
	maps.Copy(behaviour.Sub(view, "properties"), behaviour.Clone(snapshot))
	return view
}

// Snapshot is a snapshot of a share.
type Snapshot struct {
	// Time names the snapshot.
	Time     time.Time
	Metadata behaviour.Object
	QuotaGiB int
}

// Snapshots returns the snapshots of a share's document, the oldest first.
func Snapshots(share behaviour.Object) []Snapshot {
	var all []Snapshot
	for _, s := range behaviour.Objects(share, snapshotsField) {
		quota, _ := behaviour.Int(s, quotaField)
		all = append(all, Snapshot{Time: snapshotTime(s), Metadata: behaviour.Sub(s, "metadata"), QuotaGiB: quota})
	}
	return all
}

// TakeSnapshot adds a snapshot to a share and returns its time. Without metadata it has the metadata of the share.
func TakeSnapshot(w behaviour.World, share azure.ID, metadata behaviour.Object) (at time.Time, err error) {
	if !w.Edit(share, func(doc behaviour.Object) { at, err = appendSnapshot(w, doc, metadata) }) {
		return at, behaviour.Refusal(404, "ShareNotFound", "The specified share does not exist.")
	}
	return at, err
}

// DeleteSnapshot removes the snapshot of a time from a share.
func DeleteSnapshot(w behaviour.World, share azure.ID, at string) error {
	doc, _ := w.Get(share)
	i := findSnapshot(doc, at)
	if i < 0 {
		return behaviour.Refusal(404, "ShareSnapshotNotFound", "The specified share snapshot does not exist.")
	}
	w.Edit(share, func(doc behaviour.Object) {
		all := behaviour.Array(doc, snapshotsField)
		doc[snapshotsField] = append(all[:i:i], all[i+1:]...)
	})
	return nil
}
