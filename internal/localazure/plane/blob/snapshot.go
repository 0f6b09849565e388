package blob

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour/storage/lease"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
)

// marker is the version as the marker of a page that begins with it.
func marker(v kept.Version) string { return base64.RawURLEncoding.EncodeToString([]byte(v.String())) }

// parseMarker returns the version with which a page begins, the zero version for the first page.
func parseMarker(text string) (kept.Version, error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return kept.Version{}, refuse(http.StatusBadRequest, "OutOfRangeInput",
			"One of the request inputs is out of range: there is no marker %q.", text)
	}
	return kept.ParseVersion(string(decoded)), nil
}

// snapshotForm is the form of the times of snapshots.
const snapshotForm = "2006-01-02T15:04:05.0000000Z"

// takeSnapshot keeps a blob as it is, with the metadata of the request if it has some.
func (c blobCall) takeSnapshot() error {
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(snapshots)
	if err != nil {
		return err
	}
	b.Lease = lease.Lease{}
	if metadata := account.Metadata(c.r.Header); len(metadata) > 0 {
		b.Metadata = metadata
	}
	const tick = 100 * time.Nanosecond
	for at := c.now.UTC(); ; at = at.Add(tick) {
		c.snapshot = at.Format(snapshotForm)
		if _, there := c.service.kept.Get(c.key()); !there {
			break
		}
	}
	if err := c.service.kept.Keep(c.key(), b); err != nil {
		return err
	}
	stamp(c.w, b)
	c.w.Header().Set("x-ms-snapshot", c.snapshot)
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// snapshotsOf returns the keys of the snapshots of a blob. The caller holds the lock.
func (c blobCall) snapshotsOf() (keys []string) {
	before := c.container.Key() + "/" + c.blob + "\x00"
	for v := range c.service.kept.Under(before) {
		keys = append(keys, before+v.String())
	}
	slices.Sort(keys)
	return keys
}

// delete deletes a blob, its snapshots, or one of these.
func (c blobCall) delete() error {
	const header = "x-ms-delete-snapshots"
	wanted := strings.ToLower(c.r.Header.Get(header))
	if !slices.Contains([]string{"", "include", "only"}, wanted) {
		return account.InvalidHeader(header, wanted, "include or only")
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if _, err := c.find(changes); err != nil {
		return err
	}
	keys := []string{c.key()}
	if c.snapshot == "" {
		taken := c.snapshotsOf()
		switch {
		case wanted == "" && len(taken) > 0:
			return refuse(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted while the blob has snapshots.")
		case wanted == "only":
			keys = taken
		default:
			keys = append(keys, taken...)
		}
	}
	for _, key := range keys {
		if err := c.service.kept.Forget(key); err != nil {
			return err
		}
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}
