package file

import (
	"crypto/md5"
	"encoding/xml"
	"errors"
	"hash/crc64"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"kaz/internal/emulator/plane/file/content"
)

const (
	// largestFile is the largest size of a file, largestRange that of a range of a request.
	largestFile  = 4 << 40
	largestRange = 4 << 20
)

// createFile creates an empty file, or one with a copy of another file.
func (c *call) createFile() error {
	if c.r.Header.Get("x-ms-copy-source") != "" {
		return c.copyFile()
	}
	size, err := c.sizeHeader(true)
	if err != nil {
		return err
	}
	return c.change(func(o *opened) error {
		h, err := c.makeFile(o, size)
		if err != nil {
			return err
		}
		defer h.Close()
		return c.initialize(h, http.StatusCreated)
	})
}

// sizeHeader returns the size that a request gives, below 0 for none.
func (c *call) sizeHeader(needed bool) (int64, error) {
	const name = "x-ms-content-length"
	text := c.r.Header.Get(name)
	if text == "" && !needed {
		return -1, nil
	}
	if text == "" {
		return 0, missingHeader(name)
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 || size > largestFile {
		return 0, invalidHeader(name, text, "0 to "+formatInt(largestFile))
	}
	return size, nil
}

// makeFile creates the file of the request with a size, or empties it. The caller closes it.
func (c *call) makeFile(o *opened, size int64) (*handle, error) {
	name, info, err := o.find(c.target)
	if err != nil {
		if r := refused(err); r == nil || r.code != "ResourceNotFound" {
			return nil, err
		}
	} else if !info.Mode().IsRegular() {
		return nil, wrongType()
	}
	if err := c.checkQuota(o, size); err != nil {
		return nil, err
	}
	if info != nil {
		if err := c.service.copies.refusePending(o, name); err != nil {
			return nil, err
		}
	}
	h, err := o.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	h.properties = properties{Revision: h.Revision}
	if err := h.Truncate(size); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// checkQuota refuses a file that is larger than the share. The space that the files of the share have together is checked when they
// are written.
func (c *call) checkQuota(o *opened, size int64) error {
	const gib = 1 << 30
	if o.quotaGiB > 0 && size > int64(o.quotaGiB)*gib {
		return shareFull(o)
	}
	return nil
}

func shareFull(o *opened) *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "ShareSizeLimitReached", "The share has no space left: its quota is %d GiB.", o.quotaGiB)
}

// checkSpace refuses a write that makes the files of the share larger than its quota.
func (c *call) checkSpace(o *opened, length int64) error {
	const gib = 1 << 30
	ok, err := c.service.reserve(o.content, length, int64(o.quotaGiB)*gib)
	if err == nil && !ok {
		err = shareFull(o)
	}
	return err
}

// getFile answers with a file's properties and, to GET, its content.
func (c *call) getFile() error {
	return c.look(func(h *handle) error {
		if !h.info.Mode().IsRegular() {
			return wrongType()
		}
		size := h.info.Size()
		within, partial, err := c.wantedRange(size)
		if err != nil {
			return err
		}
		header := c.w.Header()
		header.Set("Content-Type", "application/octet-stream")
		c.showProperties(h)
		c.stamp(h)
		header.Set("x-ms-type", "File")
		header.Set("x-ms-server-encrypted", "true")
		header.Set("x-ms-lease-status", "unlocked")
		header.Set("x-ms-lease-state", "available")
		header.Set("Accept-Ranges", "bytes")
		c.service.copies.show(header, h)
		header.Set("Content-Length", formatInt(within.To-within.From))
		if c.r.Method == http.MethodHead || c.query.Get("comp") == "metadata" {
			if c.query.Get("comp") == "metadata" {
				header.Del("Content-Length")
			}
			c.w.WriteHeader(http.StatusOK)
			return nil
		}
		return c.download(h, within, partial)
	})
}

func (c *call) download(h *handle, within content.Range, partial bool) error {
	header, status := c.w.Header(), http.StatusOK
	if partial {
		status = http.StatusPartialContent
		header.Set("Content-Range", "bytes "+formatInt(within.From)+"-"+formatInt(within.To-1)+"/"+formatInt(h.info.Size()))
		if whole := h.Headers["Content-MD5"]; whole != "" {
			header.Set("x-ms-content-md5", whole)
			header.Del("Content-MD5")
		}
		if strings.EqualFold(c.r.Header.Get("x-ms-range-get-content-md5"), "true") && within.To-within.From <= largestRange {
			part := make([]byte, within.To-within.From)
			if _, err := h.ReadAt(part, within.From); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			header.Set("Content-MD5", md5Text(md5.Sum(part)))
		}
	}
	c.w.WriteHeader(status)
	_, _ = io.Copy(c.w, io.NewSectionReader(h, within.From, within.To-within.From)) // the client is gone
	return nil
}

// wantedRange returns the range that a request asks for, the whole file if it asks for none.
func (c *call) wantedRange(size int64) (content.Range, bool, error) {
	text := c.r.Header.Get("x-ms-range")
	if text == "" {
		text = c.r.Header.Get("Range")
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

func (c *call) deleteFile() error {
	return c.change(func(o *opened) error {
		name, _, err := o.findKind(c.target)
		if err != nil {
			return err
		}
		if err := c.service.copies.refusePending(o, name); err != nil {
			return err
		}
		if err := o.root.Remove(name); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusAccepted)
		return nil
	})
}

// setFileProperties changes properties, and the size if the request gives one.
func (c *call) setFileProperties() error {
	size, err := c.sizeHeader(false)
	if err != nil {
		return err
	}
	return c.modify(os.O_RDWR, func(h *handle) error {
		if err := c.service.copies.refusePending(h.share, h.name); err != nil {
			return err
		}
		if size >= 0 && size != h.info.Size() {
			if err := c.checkQuota(h.share, size); err != nil {
				return err
			}
			if err := h.Truncate(size); err != nil {
				return err
			}
		} else if size < 0 {
			h.Headers = nil // headers that the request leaves out are cleared, unless it changes the size
		}
		if err := c.read(&h.properties); err != nil {
			return err
		}
		if err := h.write(h.File); err != nil {
			return err
		}
		if err := c.applyFileSystem(h); err != nil {
			return err
		}
		return c.answer(h, http.StatusOK)
	})
}

// putRange writes or clears a range.
func (c *call) putRange() error {
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
		if data, err = c.rangeData(to); err != nil {
			return err
		}
	default:
		return invalidHeader("x-ms-write", kind, "update or clear")
	}
	return c.modify(os.O_RDWR, func(h *handle) error { return c.writeRange(h, to, text, data) })
}

func (c *call) writeRange(h *handle, to content.Range, text string, data []byte) error {
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

// rangeData returns what is to be written: the body, or a range of another file.
func (c *call) rangeData(to content.Range) ([]byte, error) {
	length := to.To - to.From
	if length > largestRange {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
			"The size of the request body exceeds the maximum size permitted: %d bytes, %d are allowed.", length, largestRange)
	}
	if c.r.Header.Get("x-ms-copy-source") != "" {
		return c.sourceData(length)
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

// listRanges answers with the ranges of a file that are no holes.
func (c *call) listRanges() error {
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
			if within, _, err = c.wantedRange(h.info.Size()); err != nil {
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
