package blob

import (
	"encoding/xml"
	"io"
	"net/http"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/tags"
)

// tags answers with the tags of a blob.
func (c blobCall) tags() error {
	c.service.kept.Lock()
	b, err := c.find(reads)
	c.service.kept.Unlock()
	if err != nil {
		return err
	}
	account.Reply(c.w, http.StatusOK, tags.ListOf(b.Tags))
	return nil
}

// setTags replaces the tags of a blob, which leaves its etag as it is.
func (c blobCall) setTags() error {
	const most = 64 << 10
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	var list tags.List
	if err := xml.Unmarshal(text, &list); err != nil {
		return account.InvalidDocument(err)
	}
	given, err := list.Map()
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(changes)
	if err != nil {
		return err
	}
	b.Tags = given
	if err := c.service.kept.Keep(c.key(), b); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
