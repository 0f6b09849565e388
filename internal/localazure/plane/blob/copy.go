package blob

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/octets"
)

// sourceHeader has the address of a blob from which content is taken.
const sourceHeader = "x-ms-copy-source"

// copy makes a blob that is like another one.
func (c copyCall) copy() error {
	from, err := c.source()
	if err != nil {
		return err
	}
	b := kept.Blob{Facts: kept.Facts{Type: from.Type, Properties: from.Properties.Clone(), Blocks: slices.Clone(from.Blocks),
		Appends: from.Appends, Metadata: account.Metadata(c.r.Header)}, Content: slices.Clip(from.Content)}
	if len(b.Metadata) == 0 {
		b.Metadata = maps.Clone(from.Metadata)
	}
	address, err := url.Parse(c.r.Header.Get(sourceHeader))
	if err != nil {
		return err
	}
	if err := octets.CheckMD5(c.r.Header.Get("x-ms-source-content-md5"), b.Content); err != nil {
		return err
	}
	if b.Sealed = from.Sealed; c.r.Header.Get("x-ms-seal-blob") != "" {
		b.Sealed = strings.EqualFold(c.r.Header.Get("x-ms-seal-blob"), "true")
	}
	b.Tags = c.copiedTags(from)
	if c.r.Header.Get("x-ms-source-content-md5") != "" {
		c.w.Header().Set("Content-MD5", octets.MD5(b.Content))
	}
	address.RawQuery = "" // it may have a signature
	b.Copy = &kept.Copied{ID: c.guid(), Source: address.String(), Bytes: len(b.Content), At: c.now.UTC()}
	return c.create(b, http.StatusAccepted)
}

// copiedTags returns the tags of the source of a request that wants them.
func (c copyCall) copiedTags(from *kept.Blob) map[string]string {
	if from == nil || !strings.EqualFold(c.r.Header.Get("x-ms-copy-source-tag-option"), "copy") {
		return nil
	}
	return maps.Clone(from.Tags)
}

// abort ends a copy that is not made yet. There is none.
func (c copyCall) abort() error {
	if id := c.query.Get("copyid"); uuid.Validate(id) != nil {
		return account.InvalidParameter("copyid", id, "the id of a copy")
	}
	return refuse(http.StatusConflict, "NoPendingCopyOperation", "There is currently no pending copy operation.")
}

// given returns the content that a request brings: its body, or a range of another blob, which is returned then, too.
func (c copyCall) given() (content []byte, from *kept.Blob, err error) {
	if c.r.Header.Get(sourceHeader) == "" {
		content, err = c.body()
		return content, nil, err
	}
	if from, err = c.source(); err != nil {
		return nil, nil, err
	}
	content = from.Content
	const header = "x-ms-source-range"
	if text := c.r.Header.Get(header); text != "" {
		within, err := octets.Parse(header, text)
		if err != nil {
			return nil, nil, err
		}
		size := int64(len(content))
		if within.From >= size {
			return nil, nil, octets.Outside(text, size)
		}
		if within.To < 0 || within.To > size {
			within.To = size
		}
		content = content[within.From:within.To]
	}
	if len(content) > largest {
		return nil, nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
			"The source has %d bytes, at most %d are allowed.", len(content), largest)
	}
	err = errors.Join(octets.CheckMD5(c.r.Header.Get("x-ms-source-content-md5"), content),
		octets.CheckCRC64(c.r.Header.Get("x-ms-source-content-crc64"), content))
	return slices.Clip(content), from, err
}

// source returns the blob from which a request takes content.
func (c copyCall) source() (*kept.Blob, error) {
	text := c.r.Header.Get(sourceHeader)
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return nil, account.InvalidHeader(sourceHeader, text, "the address of a blob")
	}
	sent := &http.Request{Method: http.MethodGet, URL: address, Host: address.Host, Header: http.Header{}, TLS: c.r.TLS,
		RemoteAddr: c.r.RemoteAddr}
	r := account.Resolve(sent.WithContext(c.r.Context()))
	if !c.service.Answers(r.Host) {
		return nil, refuse(http.StatusNotFound, unverified, "The local Azure copies blobs of its own accounts alone, and %s is not one.",
			address.Host)
	}
	from, err := c.readSource(r)
	if refused, ok := errors.AsType[*behaviour.Error](err); ok {
		c.w.Header().Set("x-ms-copy-source-status-code", strconv.Itoa(refused.Status))
		c.w.Header().Set("x-ms-copy-source-error-code", refused.Code)
		return nil, refuse(refused.Status, unverified, "%s", refused.Message)
	}
	if err != nil {
		return nil, err
	}
	if from.Tier == kept.Archived {
		return nil, refuse(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	met, changed, err := meets(from, c.r.Header, "x-ms-source-", true)
	switch {
	case err != nil:
	case !changed && !c.copiesLater(): // Azure reads it on the same conditions then
		err = refuse(http.StatusNotModified, unverified, "")
	case !met || !changed:
		err = refuse(http.StatusPreconditionFailed, "SourceConditionNotMet",
			"The source condition specified using HTTP conditional header(s) is not met.")
	}
	return &from, err
}

// unverified is the code of a refusal because of the source of a copy.
const unverified = "CannotVerifyCopySource"

// copiesLater reports whether a request asks for a copy that Azure makes on its own, within an account without another right.
func (c copyCall) copiesLater() bool {
	return c.r.Header.Get("x-ms-blob-type") == "" && c.query.Get("comp") == "" &&
		!strings.EqualFold(c.r.Header.Get("x-ms-requires-sync"), "true")
}

// readSource reads a blob with a request. That has a right of its own, or its address has a signature.
func (c copyCall) readSource(r *http.Request) (kept.Blob, error) {
	read := &call{service: c.service, w: newAnswer(), query: r.URL.Query(), r: r}
	if right := c.r.Header.Get("x-ms-copy-source-authorization"); right != "" {
		read.r.Header.Set("Authorization", right)
	} else if c.copiesLater() && read.query.Get("sig") == "" && accountOf(r.Host) == accountOf(c.r.Host) {
		read.caller, read.trusted = c.caller, c.caller != nil || c.byKey
		read.byKey = c.byKey
	}
	if _, err := read.begin(func(string) (operation, error) { return onBlob(blobsRead, "r", nil), nil }); err != nil {
		return kept.Blob{}, err
	}
	if read.machine != "" {
		return kept.Blob{}, noBlob()
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	return read.find(reads)
}
