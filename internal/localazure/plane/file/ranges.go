package file

import (
	"crypto/md5" // the API has headers with it; it protects nothing
	"encoding/xml"
	"hash/crc64"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"kaz/internal/localazure/plane/file/content"
)

// rangeCall is a request about ranges of a file.
type rangeCall struct{ *call }

// put writes or clears a range.
func (c rangeCall) put() error {
	text := c.r.Header.Get("x-ms-range")
	if text == "" {
		text = c.r.Header.Get("Range")
	}
	if text == "" {
		return missingHeader("x-ms-range")
	}
	to, err := parseRange("x-ms-range", text)
	if err != nil {
		return err
	}
	if to.To < 0 {
		return invalidHeader("x-ms-range", text, "bytes=FROM-TO")
	}
	var data []byte
	switch kind := strings.ToLower(c.r.Header.Get("x-ms-write")); kind {
	case "clear":
	case "update":
		if data, err = c.data(to); err != nil {
			return err
		}
	default:
		return invalidHeader("x-ms-write", kind, "update or clear")
	}
	return c.modify(os.O_RDWR, func(h *handle) error { return c.write(h, to, text, data) })
}

func (c rangeCall) write(h *handle, to content.Range, text string, data []byte) error {
	if to.To > h.info.Size() {
		return invalidRange(text, h.info.Size())
	}
	if err := c.service.copies.refusePending(h.share, h.name); err != nil {
		return err
	}
	if data == nil {
		if err := content.Clear(h.File, to.From, to.To-to.From); err != nil {
			return err
		}
	} else {
		if err := c.checkSpace(h.share, int64(len(data))); err != nil {
			return err
		}
		if _, err := h.WriteAt(data, to.From); err != nil {
			return err
		}
		sum := md5.Sum(data)
		c.w.Header().Set("Content-MD5", md5Text(sum))
	}
	if strings.EqualFold(c.r.Header.Get("x-ms-file-last-write-time"), "preserve") {
		at := h.info.ModTime()
		if err := h.share.root.Chtimes(h.name, at, at); err != nil {
			return err
		}
	}
	return c.answer(h, http.StatusCreated)
}

// data returns what is to be written: the body, or a range of another file.
func (c rangeCall) data(to content.Range) ([]byte, error) {
	length := to.To - to.From
	if length > largestRange {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
			"The size of the request body exceeds the maximum size permitted: %d bytes, %d are allowed.", length, largestRange)
	}
	if c.r.Header.Get("x-ms-copy-source") != "" {
		return copyCall(c).sourceData(length)
	}
	if c.r.ContentLength != length {
		return nil, invalidHeader("Content-Length", formatInt(c.r.ContentLength), formatInt(length)+" as the range has")
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(c.r.Body, data); err != nil {
		return nil, refuse(http.StatusBadRequest, "IncompleteBody", "The request body is shorter than its length.")
	}
	if sum := c.r.Header.Get("Content-MD5"); sum != "" && sum != md5Text(md5.Sum(data)) {
		return nil, refuse(http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value "+
			"calculated by the server.")
	}
	return data, nil
}

// azureCRC64 is the polynomial of the sums that Azure Storage returns.
var azureCRC64 = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// list answers with the ranges of a file that are no holes.
func (c rangeCall) list() error {
	if c.query.Get("prevsharesnapshot") != "" {
		return refuse(http.StatusBadRequest, "UnsupportedQueryParameter",
			"One of the query parameters specified in the request URI is not supported: prevsharesnapshot.")
	}
	return c.look(func(h *handle) error {
		if !h.info.Mode().IsRegular() {
			return wrongType()
		}
		within := content.Range{To: h.info.Size()}
		if within.To > 0 {
			var err error
			if within, _, err = wantedRange(c.r.Header, h.info.Size()); err != nil {
				return err
			}
		}
		found, err := content.Ranges(h.File, within)
		if err != nil {
			return err
		}
		type listed struct{ Start, End int64 }
		all := make([]listed, len(found))
		for i, r := range found {
			all[i] = listed{r.From, r.To - 1}
		}
		c.stamp(h)
		c.w.Header().Set("x-ms-content-length", formatInt(h.info.Size()))
		c.xml(http.StatusOK, struct {
			XMLName xml.Name `xml:"Ranges"`
			Range   []listed
		}{Range: all})
		return nil
	})
}

// checkSpace refuses a write that makes the files of the share larger than its quota.
func (c rangeCall) checkSpace(o *opened, length int64) error {
	const gib = 1 << 30
	ok, err := c.service.reserve(o.content, length, int64(o.quotaGiB)*gib)
	if err == nil && !ok {
		err = shareFull(o)
	}
	return err
}

// wantedRange returns the range that a request asks for, the whole file if it asks for none.
func wantedRange(given http.Header, size int64) (content.Range, bool, error) {
	text := given.Get("x-ms-range")
	if text == "" {
		text = given.Get("Range")
	}
	whole := content.Range{To: size}
	if text == "" {
		return whole, false, nil
	}
	asked, err := parseRange("x-ms-range", text)
	if err != nil {
		return whole, false, err
	}
	if asked.To < 0 || asked.To > size {
		asked.To = size
	}
	if asked.From >= size {
		return whole, false, invalidRange(text, size)
	}
	return asked, true, nil
}

func invalidRange(text string, size int64) *refusal {
	return refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
		"The range specified is invalid for the current size of the resource: %s of %d bytes.", text, size)
}

// parseRange parses bytes=FROM-TO. The end is below 0 if there is none.
func parseRange(name, text string) (content.Range, error) {
	bad := invalidHeader(name, text, "bytes=FROM-TO")
	numbers, ok := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(numbers, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil || from < 0 {
		return content.Range{}, bad
	}
	if last == "" {
		return content.Range{From: from, To: -1}, nil
	}
	to, err := strconv.ParseInt(last, 10, 64)
	if err != nil || to < from {
		return content.Range{}, bad
	}
	return content.Range{From: from, To: to + 1}, nil
}
