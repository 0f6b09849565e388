package file

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"kaz/internal/localazure/plane/octets"
)

const (
	// largestFile is the largest size of a file, largestRange the largest size of a range of a request.
	largestFile  = 4 << 40
	largestRange = 4 << 20
)

// fileCall is a request about a file.
type fileCall struct{ *call }

// create creates an empty file, or one with a copy of another file.
func (c fileCall) create() error {
	if c.r.Header.Get("x-ms-copy-source") != "" {
		return copyCall(c).start()
	}
	size, err := sizeHeader(c.r.Header, true)
	if err != nil {
		return err
	}
	return c.change(func(o *opened) error {
		h, err := c.make(o, size)
		if err != nil {
			return err
		}
		defer h.Close()
		h.Metadata = metadataOf(c.r.Header)
		return c.store(h, http.StatusCreated)
	})
}

// sizeHeader returns the size that a request gives, below 0 for none.
func sizeHeader(given http.Header, needed bool) (int64, error) {
	const name = "x-ms-content-length"
	text := given.Get(name)
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

// make creates the file of the request with a size, or empties it. The caller closes it.
func (c fileCall) make(o *opened, size int64) (*handle, error) {
	name, info, err := o.find(c.target)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if info != nil && !info.Mode().IsRegular() {
		return nil, wrongType()
	}
	if err := o.checkQuota(size); err != nil {
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
func (o *opened) checkQuota(size int64) error {
	const gib = 1 << 30
	if o.quotaGiB > 0 && size > int64(o.quotaGiB)*gib {
		return shareFull(o)
	}
	return nil
}

func shareFull(o *opened) *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "ShareSizeLimitReached", "The share has no space left: its quota is %d GiB.",
		o.quotaGiB)
}

// get answers with a file's properties and, to GET, its content.
func (c fileCall) get() error {
	return c.look(func(h *handle) error {
		if !h.info.Mode().IsRegular() {
			return wrongType()
		}
		size := h.info.Size()
		within, partial, err := octets.Wanted(c.r.Header, size)
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

func (c fileCall) download(h *handle, within octets.Range, partial bool) error {
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
			header.Set("Content-MD5", octets.MD5(part))
		}
	}
	c.w.WriteHeader(status)
	_, _ = io.Copy(c.w, io.NewSectionReader(h, within.From, within.To-within.From)) // the client is gone
	return nil
}

func (c fileCall) delete() error {
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

// setProperties changes properties, and the size if the request gives one.
func (c fileCall) setProperties() error {
	size, err := sizeHeader(c.r.Header, false)
	if err != nil {
		return err
	}
	return c.modify(os.O_RDWR, func(h *handle) error {
		if err := c.service.copies.refusePending(h.share, h.name); err != nil {
			return err
		}
		if size >= 0 && size != h.info.Size() {
			if err := h.share.checkQuota(size); err != nil {
				return err
			}
			if err := h.Truncate(size); err != nil {
				return err
			}
		} else if size < 0 {
			h.Headers = nil // headers that the request leaves out are cleared, unless it changes the size
		}
		return c.store(h, http.StatusOK)
	})
}
