package file

import (
	"encoding/base64"
	"encoding/xml"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"kaz/internal/emulator/behaviour"
)

func (c *call) createDirectory() error {
	return c.change(func(o *opened) error {
		name, _, err := o.find(c.target)
		if err == nil {
			return refuse(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
		}
		if r := refused(err); r == nil || r.code != "ResourceNotFound" {
			return err
		}
		if err := o.root.Mkdir(name, 0o777); err != nil {
			return err
		}
		h, err := o.open(name, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer h.Close()
		return c.initialize(h, http.StatusCreated)
	})
}

// initialize stores the properties of a new file or directory, and answers.
func (c *call) initialize(h *handle, status int) error {
	if err := c.read(&h.properties); err != nil {
		return err
	}
	h.Metadata = c.metadata()
	if err := h.write(h.File); err != nil {
		return err
	}
	if err := c.applyFileSystem(h); err != nil {
		return err
	}
	return c.answer(h, status)
}

func (c *call) getDirectory() error {
	return c.look(func(h *handle) error {
		c.stamp(h)
		c.showProperties(h)
		c.w.Header().Set("x-ms-server-encrypted", "true")
		c.w.WriteHeader(http.StatusOK)
		return nil
	})
}

func (c *call) setDirectoryProperties() error {
	return c.modify(os.O_RDONLY, func(h *handle) error {
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

func (c *call) deleteDirectory() error {
	return c.change(func(o *opened) error {
		name, _, err := o.findKind(c.target)
		if err != nil {
			return err
		}
		if name == "." {
			return refuse(http.StatusConflict, "CannotDeleteFileOrDirectory", "The root directory of a share cannot be deleted.")
		}
		if err := o.root.Remove(name); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusAccepted)
		return nil
	})
}

// rename moves a file or directory of the same share to the target of the request.
func (c *call) rename() error {
	source, err := url.Parse(c.r.Header.Get("x-ms-file-rename-source"))
	if err != nil || source.Path == "" {
		return missingHeader("x-ms-file-rename-source")
	}
	if c.target.scope == directoryScope {
		source.RawQuery = "restype=directory"
	}
	from, err := parseTarget(source)
	if err != nil {
		return err
	}
	if !strings.EqualFold(from.share, c.target.share) || accountOf(source.Host) != c.account.name {
		return invalidHeader("x-ms-file-rename-source", source.Redacted(), "a path in the same share")
	}
	return c.change(func(o *opened) error {
		old, _, err := o.findKind(from)
		if err != nil {
			return err
		}
		name, info, err := o.find(c.target)
		switch {
		case err == nil && old == name:
			name = path.Join(parentOf(name), c.target.parts[len(c.target.parts)-1]) // only the case differs
		case err == nil && info.IsDir() || err == nil && !strings.EqualFold(c.r.Header.Get("x-ms-file-rename-replace-if-exists"), "true"):
			return refuse(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
		case err != nil && refused(err) != nil && refused(err).code != "ResourceNotFound":
			return err
		}
		if err := o.root.Rename(old, name); err != nil {
			return err
		}
		h, err := o.open(name, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer h.Close()
		return c.answer(h, http.StatusOK)
	})
}

// entry is a file or directory in a list.
type entry struct {
	XMLName    xml.Name // File or Directory
	FileID     string   `xml:"FileId,omitempty"`
	Name       encoded
	Properties entryProperties
	Attributes string `xml:",omitempty"`
}

type entryProperties struct {
	ContentLength  *int64 `xml:"Content-Length"`
	CreationTime   string `xml:",omitempty"`
	LastAccessTime string `xml:",omitempty"`
	LastWriteTime  string `xml:",omitempty"`
	ChangeTime     string `xml:",omitempty"`
	LastModified   string `xml:"Last-Modified,omitempty"`
	Etag           string `xml:",omitempty"`
}

// encoded is a name that XML may not be able to hold.
type encoded struct {
	Encoded bool   `xml:",attr,omitempty"`
	Text    string `xml:",chardata"`
}

func isControl(r rune) bool { return r < ' ' }

func encode(name string) encoded {
	if utf8.ValidString(name) && !strings.ContainsAny(name, "\uFFFE\uFFFF") && !strings.ContainsFunc(name, isControl) {
		return encoded{Text: name}
	}
	return encoded{true, url.PathEscape(name)}
}

func (c *call) listDirectory() error {
	return c.with(func(o *opened) error {
		name, info, err := o.findKind(c.target)
		if err != nil {
			return err
		}
		all, err := fs.ReadDir(o.root.FS(), name)
		if err != nil {
			return err
		}
		prefix := c.query.Get("prefix")
		all = slices.DeleteFunc(all, func(e fs.DirEntry) bool {
			return len(e.Name()) < len(prefix) || !strings.EqualFold(e.Name()[:len(prefix)], prefix)
		})
		page, err := c.page(len(all), func(i int) string { return all[i].Name() })
		if err != nil {
			return err
		}
		entries := []entry{}
		for _, e := range all[page.from:page.to] {
			if one, ok := c.entry(o, path.Join(name, e.Name()), e); ok {
				entries = append(entries, one)
			}
		}
		c.writeList(info, entries, page)
		return nil
	})
}

func (c *call) writeList(directory fs.FileInfo, entries []entry, page page) {
	c.xml(http.StatusOK, struct {
		XMLName         xml.Name `xml:"EnumerationResults"`
		ServiceEndpoint string   `xml:",attr"`
		ShareName       string   `xml:",attr"`
		ShareSnapshot   string   `xml:",attr,omitempty"`
		DirectoryPath   string   `xml:",attr"`
		Prefix          string   `xml:",omitempty"`
		Marker          string   `xml:",omitempty"`
		MaxResults      int      `xml:",omitempty"`
		DirectoryID     string   `xml:"DirectoryId,omitempty"`
		Entries         struct{ All []entry }
		NextMarker      string
	}{ServiceEndpoint: c.endpoint(), ShareName: c.target.share, ShareSnapshot: c.target.snapshot,
		DirectoryPath: strings.Join(c.target.parts, "/"), Prefix: c.query.Get("prefix"), Marker: c.query.Get("marker"),
		MaxResults: page.given, DirectoryID: idOf(directory), Entries: struct{ All []entry }{entries}, NextMarker: page.next})
}

// entry describes a file of a list, false for one that was removed meanwhile.
func (c *call) entry(o *opened, name string, e fs.DirEntry) (entry, bool) {
	info, err := e.Info()
	if err != nil {
		return entry{}, false
	}
	one := entry{XMLName: xml.Name{Local: "File"}, Name: encode(e.Name())}
	if size := info.Size(); info.IsDir() {
		one.XMLName.Local = "Directory"
	} else {
		one.Properties.ContentLength = &size
	}
	include := strings.ToLower(c.query.Get("include"))
	if !strings.EqualFold(c.r.Header.Get("x-ms-file-extended-info"), "true") && include == "" {
		return one, true
	}
	one.FileID = idOf(info)
	stored := properties{}
	if info.Mode().IsRegular() || info.IsDir() {
		h, err := o.open(name, os.O_RDONLY)
		if err != nil {
			return entry{}, false
		}
		defer h.Close()
		stored = h.properties
	}
	c.detail(&one, info, stored, include)
	return one, true
}

// detail adds what the request includes.
func (c *call) detail(one *entry, info fs.FileInfo, stored properties, include string) {
	modified := behaviour.Timestamp(info.ModTime())
	if strings.Contains(include, "timestamps") {
		created := stored.Created
		if created.IsZero() {
			created = info.ModTime()
		}
		one.Properties.CreationTime, one.Properties.LastWriteTime = behaviour.Timestamp(created), modified
		one.Properties.ChangeTime, one.Properties.LastAccessTime = modified, accessed(info)
		one.Properties.LastModified = info.ModTime().UTC().Format(http.TimeFormat)
	}
	if strings.Contains(include, "etag") {
		one.Properties.Etag = etagOf(info, stored.Revision)
	}
	if strings.Contains(include, "attributes") {
		one.Attributes = stored.Attributes
		if one.Attributes == "" {
			one.Attributes = defaultAttributes(info)
		}
	}
}

func accessed(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return behaviour.Timestamp(accessTime(stat))
	}
	return ""
}

// page is a part of a list.
type page struct {
	from, to, given int
	next            string
}

// mostResults is the most entries on a page.
const mostResults = 5000

// page returns the page that the request asks for. The marker has the key of the first entry of the page, so that changes before it
// move nothing. The keys are sorted.
func (c *call) page(n int, key func(i int) string) (page, error) {
	p := page{}
	size := mostResults
	if text := c.query.Get("maxresults"); text != "" {
		var err error
		if p.given, err = strconv.Atoi(text); err != nil || p.given < 1 {
			return p, refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
				"One of the query parameters specified in the request URI is outside the permissible range: maxresults is %q.", text)
		}
		size = min(size, p.given)
	}
	if marker := c.query.Get("marker"); marker != "" {
		first, err := base64.RawURLEncoding.DecodeString(marker)
		if err != nil {
			return p, refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
				"Value for one of the query parameters specified in the request URI is invalid: marker is %q.", marker)
		}
		for p.from < n && key(p.from) < string(first) {
			p.from++
		}
	}
	p.to = min(p.from+size, n)
	if p.to < n {
		p.next = base64.RawURLEncoding.EncodeToString([]byte(key(p.to)))
	}
	return p, nil
}
