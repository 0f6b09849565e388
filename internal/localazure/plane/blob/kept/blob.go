// Package kept is what the local Azure keeps of blobs: in memory, and in files if there is a directory. Layer L2.
package kept

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour/storage/lease"
)

// The types of blobs.
const (
	Blocks   = "BlockBlob"
	Appended = "AppendBlob"
)

// Blob is a blob. Its content is replaced, never changed.
type Blob struct {
	Facts
	Content []byte
}

// Facts are what is known of a blob besides its content.
type Facts struct {
	Type       string            `json:"type,omitempty"`
	ETag       string            `json:"etag"`
	Created    time.Time         `json:"created,omitzero"`
	Modified   time.Time         `json:"modified"`
	Properties Properties        `json:"Properties,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"` // by header
	Tags       map[string]string `json:"tags,omitempty"`
	Tier       string            `json:"tier,omitempty"` // "" for that of the account
	TierSet    time.Time         `json:"tierSet,omitzero"`
	Returns    string            `json:"returns,omitempty"` // the tier to which a blob in the archive is to return
	Sealed     bool              `json:"sealed,omitempty"`
	Blocks     []Block           `json:"blocks,omitempty"`  // what its list has committed, in the order of the content
	Appends    int               `json:"appends,omitempty"` // how many blocks were appended
	Copy       *Copied           `json:"copy,omitempty"`
	Lease      lease.Lease       `json:"lease,omitzero"`
	Made       string            `json:"made,omitempty"` // when its container was made
}

// Properties are what a client says of the content of a blob, by the header that a reader gets.
type Properties map[string]string

// Clone is a copy that can be changed.
func (p Properties) Clone() Properties { return maps.Clone(p) }

// Block is a part of a content.
type Block struct {
	ID   string `json:"id" xml:"Name"`
	Size int    `json:"size" xml:"Size"`
}

// ByBlock returns the content of the blocks of a blob, by their ids.
func (b Blob) ByBlock() map[string][]byte {
	all, at := map[string][]byte{}, 0
	for _, k := range b.Blocks {
		all[k.ID] = b.Content[at : at+k.Size]
		at += k.Size
	}
	return all
}

// Copied says from where a blob was Copied. Nil is a blob that was not.
type Copied struct {
	ID     string    `json:"id"`
	Source string    `json:"source"`
	Bytes  int       `json:"bytes"`
	At     time.Time `json:"at"`
}

// Show writes what a reader gets of a copy.
func (k *Copied) Show(h http.Header) {
	if k == nil {
		return
	}
	k.Answer(h)
	h.Set("x-ms-copy-source", k.Source)
	h.Set("x-ms-copy-progress", strconv.Itoa(k.Bytes)+"/"+strconv.Itoa(k.Bytes))
	h.Set("x-ms-copy-completion-time", k.At.Format(http.TimeFormat))
}

// Answer writes what the client gets that asked for a copy: it is made at once.
func (k *Copied) Answer(h http.Header) {
	if k == nil {
		return
	}
	h.Set("x-ms-copy-id", k.ID)
	h.Set("x-ms-copy-status", "success")
}

// Archived is the tier of blobs that cannot be read.
const Archived = "Archive"

// Pending says to which tier a blob in the archive returns, "" if it does not.
func (b Blob) Pending() string {
	if b.Returns == "" {
		return ""
	}
	return "rehydrate-pending-to-" + strings.ToLower(b.Returns)
}

// Version is a blob, or one of its snapshots.
type Version struct {
	Name     string
	Snapshot string // its time, "" for the blob itself
}

// String is the Version in keys. The names of blobs have no zero.
func (v Version) String() string {
	if v.Snapshot == "" {
		return v.Name
	}
	return v.Name + "\x00" + v.Snapshot
}

// ParseVersion is the inverse of String.
func ParseVersion(text string) Version {
	name, snapshot, _ := strings.Cut(text, "\x00")
	return Version{name, snapshot}
}

// Compare orders versions as lists do: by their names, the snapshots of a blob before it.
func (v Version) Compare(o Version) int {
	const last = "~" // behind all times
	return cmp.Or(strings.Compare(v.Name, o.Name), strings.Compare(cmp.Or(v.Snapshot, last), cmp.Or(o.Snapshot, last)))
}
