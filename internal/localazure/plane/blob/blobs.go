package blob

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage/lease"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/blob/tags"
	"kaz/internal/localazure/plane/octets"
)

// largest is the most bytes that a request brings.
const largest = 256 << 20

// body reads the content that a request brings, and checks it against the sums in its headers.
func (c *call) body() ([]byte, error) {
	content, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, largest))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	return content, octets.Check(c.r.Header, content)
}

// put makes a whole block blob, an empty append blob, or a copy.
func (c blobCall) put() error {
	const header = "x-ms-blob-type"
	switch kind := c.r.Header.Get(header); {
	case kind == "" && c.r.Header.Get(sourceHeader) != "":
		return copyCall(c).copy()
	case kind == kept.Blocks:
		return c.putBlock()
	case kind == kept.Appended:
		return blockCall(c).putAppend()
	case kind == "":
		return account.MissingHeader(header)
	default:
		return account.InvalidHeader(header, kind, "BlockBlob or AppendBlob")
	}
}

// putBlock writes a whole block blob from the body or from another blob.
func (c blobCall) putBlock() error {
	content, from, err := copyCall(c).given()
	if err != nil {
		return err
	}
	p, sum := propertiesOf(c.r.Header, from == nil), octets.MD5(content)
	if err := octets.CheckMD5(p["Content-MD5"], content); err != nil {
		return err
	}
	if from != nil && len(p) == 0 && !strings.EqualFold(c.r.Header.Get("x-ms-copy-source-blob-properties"), "false") {
		p = from.Properties.Clone()
	}
	orAny(p)["Content-MD5"] = sum
	c.w.Header().Set("Content-MD5", sum)
	if c.r.Header.Get("x-ms-version") >= withBothSums {
		c.w.Header().Set("x-ms-content-crc64", octets.CRC64(content))
	}
	known := kept.Facts{Type: kept.Blocks, Properties: p, Tags: copyCall(c).copiedTags(from)}
	return c.create(kept.Blob{Facts: known, Content: content}, http.StatusCreated)
}

// create stores a new blob with the metadata, tags and tier of the request, in place of the one that has its name. Blocks that are not
// committed are gone then.
func (c *call) create(b kept.Blob, status int) error {
	if err := c.furnish(&b); err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	return c.replace(b, status)
}

// furnish gives a new blob the metadata, tags and tier of the request.
func (c *call) furnish(b *kept.Blob) (err error) {
	if b.Metadata == nil {
		b.Metadata = account.Metadata(c.r.Header)
	}
	given, err := tags.InHeader(c.r.Header.Get("x-ms-tags"))
	if err != nil {
		return err
	}
	if given != nil {
		b.Tags = given
	}
	b.Tier, err = tierOf(c.r.Header, false)
	return err
}

// replace puts a blob in place of the one that has its name, and answers. The caller holds the lock.
func (c *call) replace(b kept.Blob, status int) error {
	had, err := c.find(creates)
	if err != nil {
		return err
	}
	b.Created, b.TierSet = c.now.UTC(), c.now.UTC()
	if !had.Created.IsZero() && had.Type == b.Type {
		b.Created = had.Created
	}
	b.Lease = had.Lease.Written(c.now)
	if err := c.store(&b); err != nil {
		return err
	}
	c.service.kept.Unstage(c.key())
	c.w.Header().Set("x-ms-request-server-encrypted", "true")
	stamp(c.w, b)
	b.Copy.Answer(c.w.Header())
	c.w.WriteHeader(status)
	return nil
}

// store keeps a blob that has been changed now. The caller holds the lock.
func (c *call) store(b *kept.Blob) error {
	b.Made = c.made
	c.service.kept.Stamp(b, c.now)
	return c.service.kept.Keep(c.key(), *b)
}

// change changes what is known of a blob, and answers.
func (c *call) change(status int, do func(b *kept.Blob) error) error {
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(changes)
	if err != nil {
		return err
	}
	if err := do(&b); err != nil {
		return err
	}
	if err := c.store(&b); err != nil {
		return err
	}
	c.w.Header().Set("x-ms-request-server-encrypted", "true")
	stamp(c.w, b)
	c.w.WriteHeader(status)
	return nil
}

// get answers with a blob or a range of it.
func (c blobCall) get() error {
	c.service.kept.Lock()
	b, err := c.find(reads)
	c.service.kept.Unlock()
	if err != nil {
		return err
	}
	if c.r.Method == http.MethodHead {
		c.describe(b)
		c.w.Header().Set("Content-Length", strconv.Itoa(len(b.Content)))
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	if b.Tier == kept.Archived {
		return refuse(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	within, partial, err := octets.Wanted(c.r.Header, int64(len(b.Content)))
	if refused, ok := errors.AsType[*behaviour.Error](err); ok && refused.Status == http.StatusBadRequest {
		err = nil // Azure ignores what is no range
	}
	if err != nil {
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(b.Content)))
		return err
	}
	part, status := b.Content[within.From:within.To], http.StatusOK
	c.describe(b)
	header := c.w.Header()
	if partial {
		status = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", within.From, within.To-1, len(b.Content)))
	}
	if err := c.sums(part, partial); err != nil {
		return err
	}
	header.Set("Content-Length", strconv.Itoa(len(part)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(part) // the client is gone
	return nil
}

// sums writes the sums of a part of a content, if the request wants them. The sum of the whole has a header of its own then.
func (c blobCall) sums(part []byte, partial bool) error {
	const most = 4 << 20
	header := c.w.Header()
	if whole := header.Get("Content-MD5"); partial && whole != "" {
		header.Set("x-ms-blob-content-md5", whole)
		header.Del("Content-MD5")
	}
	for _, s := range []struct {
		asks, answers string
		sum           func([]byte) string
	}{
		{"x-ms-range-get-content-md5", "Content-MD5", octets.MD5},
		{"x-ms-range-get-content-crc64", "x-ms-content-crc64", octets.CRC64},
	} {
		asked := c.r.Header.Get(s.asks)
		switch {
		case !strings.EqualFold(asked, "true"):
			continue
		case !partial:
			return account.InvalidHeader(s.asks, asked, "a range beside it")
		case len(part) > most:
			return refuse(http.StatusBadRequest, "OutOfRangeInput",
				"One of the request inputs is out of range: %s allows %d bytes, and the range has %d.", s.asks, most, len(part))
		}
		header.Set(s.answers, s.sum(part))
	}
	return nil
}

func stamp(w http.ResponseWriter, b kept.Blob) {
	w.Header().Set("ETag", b.ETag)
	w.Header().Set("Last-Modified", b.Modified.Format(http.TimeFormat))
}

// use is what a request does with a blob.
type use int

const (
	reads   use = iota
	changes     // or deletes the blob, which must exist
	creates
	leases    // checks the lease itself
	snapshots // takes what it is
)

// find returns the blob as it is, or why the request must not be carried out on it. The caller holds the lock.
func (c *call) find(how use) (kept.Blob, error) {
	had, there := c.service.kept.Get(c.key())
	if c.onlyNew && there && (how == creates || how == changes) {
		return had, refuse(http.StatusForbidden, "UnauthorizedBlobOverwrite", "This request is not authorized to perform blob overwrites.")
	}
	if err := c.conditions(had, there, how); err != nil || how == leases {
		return had, err
	}
	id, err := leaseID(c.r.Header, "x-ms-lease-id", false)
	if err != nil {
		return had, err
	}
	return had, had.Lease.Check(lease.Blob, id, how != reads && how != snapshots, c.now)
}

// conditions returns why a request must not be carried out on the blob as it is.
func (c *call) conditions(had kept.Blob, there bool, how use) error {
	none := c.r.Header.Get("If-None-Match")
	if how == creates && there && none == "*" {
		return refuse(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
	}
	if !there && how != creates {
		return noBlob()
	}
	if err := c.checkTagCondition(had, there); err != nil {
		return err
	}
	met, changed, err := meets(had, c.r.Header, "", there)
	switch {
	case err != nil:
		return err
	case !changed && how == reads:
		return refuse(http.StatusNotModified, "ConditionNotMet", "")
	case !met || !changed:
		return unmet()
	}
	return nil
}

func unmet() error {
	return refuse(http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

// meets reports whether a blob is as the conditions of a request want it, and whether it is another one than the reader has. Their
// headers begin with a prefix.
func meets(b kept.Blob, given http.Header, prefix string, there bool) (met, changed bool, err error) {
	match, none := given.Get(prefix+"If-Match"), given.Get(prefix+"If-None-Match")
	met = match == "" || there && (match == "*" || match == b.ETag)
	changed = none == "" || !there || none != "*" && none != b.ETag
	for _, t := range []struct {
		header string
		to     *bool
		want   bool // that the blob was changed after the time
	}{{prefix + "If-Unmodified-Since", &met, false}, {prefix + "If-Modified-Since", &changed, true}} {
		text := given.Get(t.header)
		if text == "" || !there {
			continue
		}
		at, err := http.ParseTime(text)
		if err != nil {
			return false, false, account.InvalidHeader(t.header, text, "a time such as "+http.TimeFormat)
		}
		if b.Modified.Truncate(time.Second).After(at) != t.want {
			*t.to = false
		}
	}
	return met, changed, nil
}

func formatInt(n int) string { return strconv.Itoa(n) }

func wrongType() error {
	return refuse(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
}
