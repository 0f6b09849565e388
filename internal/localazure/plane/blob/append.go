package blob

import (
	"net/http"
	"strconv"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
)

// putAppend makes an empty append blob.
func (c blockCall) putAppend() error {
	content, err := c.body()
	if err != nil {
		return err
	}
	if len(content) > 0 {
		return account.InvalidHeader("Content-Length", formatInt(len(content)), "0 for an append blob")
	}
	known := kept.Facts{Type: kept.Appended, Properties: orAny(propertiesOf(c.r.Header, true))}
	return c.create(kept.Blob{Facts: known}, http.StatusCreated)
}

// append adds a block to the end of an append blob, from the body or from another blob.
func (c blockCall) append() error {
	content, _, err := copyCall(c).given()
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return account.InvalidHeader("Content-Length", "0", "at least 1")
	}
	return c.change(http.StatusCreated, func(b *kept.Blob) error {
		if b.Type != kept.Appended {
			return wrongType()
		}
		if b.Sealed {
			return refuse(http.StatusConflict, "BlobIsSealed",
				"The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete.")
		}
		if err := c.checkEnd(*b, len(content)); err != nil {
			return err
		}
		c.w.Header().Set("x-ms-blob-append-offset", formatInt(len(b.Content)))
		b.Content = append(b.Content, content...) // readers of the blob as it was do not look behind its end
		b.Appends++
		c.w.Header().Set("x-ms-blob-committed-block-count", formatInt(b.Appends))
		c.answerSums(content)
		return nil
	})
}

// checkEnd returns why a block must not be added to the end of a blob.
func (c blockCall) checkEnd(b kept.Blob, length int) error {
	for _, condition := range []struct {
		header, code string
		met          func(n int) bool
	}{
		{"x-ms-blob-condition-appendpos", "AppendPositionConditionNotMet", func(n int) bool { return n == len(b.Content) }},
		{"x-ms-blob-condition-maxsize", "MaxBlobSizeConditionNotMet", func(n int) bool { return len(b.Content)+length <= n }},
	} {
		text := c.r.Header.Get(condition.header)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return account.InvalidHeader(condition.header, text, "a number of bytes")
		}
		if !condition.met(n) {
			return refuse(http.StatusPreconditionFailed, condition.code, "The condition %s is not met: the blob has %d bytes.",
				condition.header, len(b.Content))
		}
	}
	if b.Appends >= mostBlocks {
		return refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The committed block count cannot exceed the maximum limit of %d blocks.", mostBlocks)
	}
	return nil
}
