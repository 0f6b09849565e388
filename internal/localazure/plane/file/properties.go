package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kaz/internal/localazure/plane/file/content"
)

// properties are what the API stores with a file or directory in addition to its file system.
type properties struct {
	Metadata   map[string]string `json:"metadata,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"` // of contentHeaders
	Attributes string            `json:"attributes,omitempty"`
	Created    time.Time         `json:"created,omitzero"`
	// Revision counts the changes of this text, for the ETag.
	Revision int        `json:"revision,omitempty"`
	Copy     *copyState `json:"copy,omitempty"`
}

// contentHeaders are the headers of a download that requests store by a header with a prefix.
var contentHeaders = []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control", "Content-MD5"}

func readProperties(f *os.File) (properties, error) {
	var p properties
	text, err := content.ReadAttribute(f)
	if err != nil || text == nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}

func (p properties) write(f *os.File) error {
	p.Revision++
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return content.WriteAttribute(f, text)
}

// handle is an open file or directory.
type handle struct {
	*os.File
	name  string
	info  fs.FileInfo
	share *opened
	properties
}

// open opens a file or directory. A pipe or device, which NFS clients can make, does not block it.
func (o *opened) open(name string, flag int) (*handle, error) {
	f, err := o.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o777)
	if err != nil {
		return nil, err
	}
	h := &handle{File: f, name: name, share: o}
	if h.info, err = f.Stat(); err == nil {
		h.properties, err = readProperties(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

// etag changes with each change of the content or of the properties.
func (h *handle) etag() string { return etagOf(h.info, h.Revision) }

func etagOf(info fs.FileInfo, revision int) string {
	return fmt.Sprintf("\"0x%X\"", uint64(info.ModTime().UnixNano())+uint64(info.Size())+uint64(revision))
}

// refresh reads what a change has made.
func (h *handle) refresh() (err error) {
	if h.info, err = h.Stat(); err != nil {
		return err
	}
	h.properties, err = readProperties(h.File)
	return err
}

// modeOf returns the bits of a mode as Unix has them.
func modeOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

func defaultAttributes(info fs.FileInfo) string {
	if info.IsDir() {
		return "Directory"
	}
	return "Archive"
}

func idOf(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(stat.Ino, 10)
	}
	return "0"
}

func parentOf(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "."
	}
	return name[:i]
}

// read takes the properties that a request gives. New files have defaults for the others.
func (p *properties) read(h http.Header) error {
	for _, name := range contentHeaders {
		value, given := h["X-Ms-"+name]
		if name == "Content-MD5" {
			value, given = h[http.CanonicalHeaderKey("x-ms-content-md5")]
		}
		if !given || len(value) == 0 {
			continue
		}
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		p.Headers[name] = value[0]
	}
	if attributes := h.Get("x-ms-file-attributes"); attributes != "" && !strings.EqualFold(attributes, "preserve") {
		p.Attributes = attributes
		if strings.EqualFold(attributes, "none") {
			p.Attributes = ""
		}
	}
	switch text := h.Get("x-ms-file-creation-time"); strings.ToLower(text) {
	case "", "preserve", "now", "source":
		if p.Created.IsZero() {
			p.Created = time.Now().UTC()
		}
	default:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return invalidHeader("x-ms-file-creation-time", text, "a time or now")
		}
		p.Created = at.UTC()
	}
	return nil
}

// metadataOf returns the x-ms-meta headers.
func metadataOf(given http.Header) map[string]string {
	const prefix = "X-Ms-Meta-"
	found := map[string]string{}
	for name, values := range given {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			found[strings.ToLower(name[len(prefix):])] = strings.Join(values, ",")
		}
	}
	return found
}

// applyFileSystem applies the headers that are attributes of the file system: the last write, and owner and mode of NFS.
func (h *handle) applyFileSystem(given http.Header) error {
	if err := h.applyOwner(given); err != nil {
		return err
	}
	switch text := given.Get("x-ms-file-last-write-time"); strings.ToLower(text) {
	case "", "preserve", "source":
		return nil
	case "now":
		now := time.Now()
		return h.share.root.Chtimes(h.name, now, now)
	default:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return invalidHeader("x-ms-file-last-write-time", text, "a time, now or preserve")
		}
		return h.share.root.Chtimes(h.name, at, at)
	}
}

func (h *handle) applyOwner(given http.Header) error {
	if !h.share.nfs {
		return nil
	}
	if mode := given.Get("x-ms-mode"); mode != "" {
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			return invalidHeader("x-ms-mode", mode, "an octal number")
		}
		if err := syscall.Fchmod(int(h.Fd()), uint32(bits)); err != nil {
			return err
		}
	}
	ids := map[string]int{"x-ms-owner": -1, "x-ms-group": -1}
	for name := range ids {
		text := given.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return invalidHeader(name, text, "a number")
		}
		ids[name] = int(n)
	}
	if ids["x-ms-owner"] < 0 && ids["x-ms-group"] < 0 {
		return nil
	}
	return h.Chown(ids["x-ms-owner"], ids["x-ms-group"])
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
