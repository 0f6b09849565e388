package blob

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour/storage/lease"
)

// version is a blob, or one of its snapshots.
type version struct {
	name     string
	snapshot string // its time, "" for the blob itself
}

// String is the version in keys. The names of blobs have no zero.
func (v version) String() string {
	if v.snapshot == "" {
		return v.name
	}
	return v.name + "\x00" + v.snapshot
}

// parseVersion is the inverse of String.
func parseVersion(text string) version {
	name, snapshot, _ := strings.Cut(text, "\x00")
	return version{name, snapshot}
}

// compare orders versions as lists do: by their names, the snapshots of a blob before it.
func (v version) compare(o version) int {
	const last = "~" // behind all times
	return cmp.Or(strings.Compare(v.name, o.name), strings.Compare(cmp.Or(v.snapshot, last), cmp.Or(o.snapshot, last)))
}

// marker is the version as the marker of a page that begins with it.
func (v version) marker() string { return base64.RawURLEncoding.EncodeToString([]byte(v.String())) }

// parseMarker returns the version with which a page begins, the zero version for the first page.
func parseMarker(text string) (version, error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return version{}, refuse(http.StatusBadRequest, "OutOfRangeInput",
			"One of the request inputs is out of range: there is no marker %q.", text)
	}
	return parseVersion(string(decoded)), nil
}

// snapshotForm is the form of the times of snapshots.
const snapshotForm = "2006-01-02T15:04:05.0000000Z"

// takeSnapshot keeps a blob as it is, with the metadata of the request if it has some.
func (c blobCall) takeSnapshot() error {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	b, err := c.find(snapshots)
	if err != nil {
		return err
	}
	b.Lease = lease.Lease{}
	if metadata := metadataOf(c.r.Header); len(metadata) > 0 {
		b.Metadata = metadata
	}
	const tick = 100 * time.Nanosecond
	for at := c.now.UTC(); ; at = at.Add(tick) {
		c.snapshot = at.Format(snapshotForm)
		if _, there := c.service.blobs[c.key()]; !there {
			break
		}
	}
	if err := c.service.keep(c.key(), b); err != nil {
		return err
	}
	b.headers(c.w)
	c.w.Header().Set("x-ms-snapshot", c.snapshot)
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// snapshotsOf returns the keys of the snapshots of a blob. The caller holds the lock.
func (c blobCall) snapshotsOf() (keys []string) {
	before := c.container.Key() + "/" + c.blob + "\x00"
	for key := range c.service.blobs {
		if strings.HasPrefix(key, before) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// delete deletes a blob, its snapshots, or one of these.
func (c blobCall) delete() error {
	const header = "x-ms-delete-snapshots"
	wanted := strings.ToLower(c.r.Header.Get(header))
	if !slices.Contains([]string{"", "include", "only"}, wanted) {
		return invalidHeader(header, wanted, "include or only")
	}
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
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
		if err := c.service.forget(key); err != nil {
			return err
		}
	}
	if wanted != "only" {
		c.service.unstage(c.key())
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}
