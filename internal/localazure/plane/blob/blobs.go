package blob

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour/storage/lease"
)

// stored is a blob.
type stored struct {
	content  []byte
	kind     string // Content-Type
	etag     string
	modified time.Time
	metadata map[string]string // by header
	lease    lease.Lease
	made     string // when its container was made
}

// largest is the most bytes that a blob has in one request.
const largest = 256 << 20

func (c *call) put() error {
	content, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, largest))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	if kind := c.r.Header.Get("x-ms-blob-type"); kind != "BlockBlob" {
		return invalidHeader("x-ms-blob-type", kind, "BlockBlob")
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	had, err := c.find(creates)
	if err != nil {
		return err
	}
	s.written++
	b := stored{made: c.made,
		content: content, kind: c.r.Header.Get("Content-Type"), modified: c.now.UTC(), metadata: metadataOf(c.r.Header),
		etag: fmt.Sprintf(`"0x%016X"`, uint64(c.now.UnixNano())+s.written), lease: had.lease.Written(c.now),
	}
	if err := s.keep(c.key(), b); err != nil {
		return err
	}
	b.headers(c.w)
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// metadataOf returns the metadata in the headers of a request, by header.
func metadataOf(given http.Header) map[string]string {
	metadata := map[string]string{}
	for header := range given {
		if strings.HasPrefix(strings.ToLower(header), "x-ms-meta-") {
			metadata[header] = given.Get(header)
		}
	}
	return metadata
}

func (c *call) delete() error {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	if _, err := c.find(changes); err != nil {
		return err
	}
	if err := c.service.forget(c.key()); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

func (c *call) get() error {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	b, err := c.find(reads)
	if err != nil {
		return err
	}
	b.headers(c.w)
	header := c.w.Header()
	header.Set("Content-Type", b.kind)
	header.Set("Content-Length", strconv.Itoa(len(b.content)))
	header.Set("x-ms-blob-type", "BlockBlob")
	showLease(header, b.lease, c.now)
	for name, value := range b.metadata {
		header.Set(name, value)
	}
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodGet {
		_, _ = c.w.Write(b.content) // the client is gone
	}
	return nil
}

func (b stored) headers(w http.ResponseWriter) {
	w.Header().Set("ETag", b.etag)
	w.Header().Set("Last-Modified", b.modified.Format(http.TimeFormat))
}

// use is what a request does with a blob.
type use int

const (
	reads   use = iota
	changes     // or deletes the blob, which must exist
	creates
	leases // checks the lease itself
)

// find returns the blob as it is, or why the request must not be carried out on it. The caller holds the lock.
func (c *call) find(how use) (stored, error) {
	had, there := c.service.blobs[c.key()]
	if err := c.conditions(had, there, how); err != nil || how == leases {
		return had, err
	}
	id, err := leaseID(c.r.Header, "x-ms-lease-id", false)
	if err != nil {
		return had, err
	}
	return had, had.lease.Check(lease.Blob, id, how != reads, c.now)
}

// conditions returns why a request must not be carried out on the blob as it is.
func (c *call) conditions(had stored, there bool, how use) error {
	match, none := c.r.Header.Get("If-Match"), c.r.Header.Get("If-None-Match")
	same := there && none != "" && none == had.etag
	switch {
	case how == creates && there && none == "*":
		return refuse(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
	case same && how == reads:
		return refuse(http.StatusNotModified, "ConditionNotMet", "")
	case same || !matches(match, had, there):
		return refuse(http.StatusPreconditionFailed, "ConditionNotMet",
			"The condition specified using HTTP conditional header(s) is not met.")
	case !there && how != creates:
		return noBlob()
	}
	return nil
}

// matches reports whether the blob is as If-Match wants it.
func matches(match string, had stored, there bool) bool {
	return match == "" || there && (match == "*" || match == had.etag)
}
