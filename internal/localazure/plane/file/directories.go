package file

import (
	"encoding/xml"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"kaz/internal/localazure/behaviour"
)

// directoryCall is a request about a directory.
type directoryCall struct{ *call }

func (c directoryCall) create() error {
	return c.change(func(o *opened) error {
		name, _, err := o.find(c.target)
		if err == nil {
			return refuse(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
		}
		if !isMissing(err) {
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
		h.Metadata = metadataOf(c.r.Header)
		return c.store(h, http.StatusCreated)
	})
}

func (c directoryCall) get() error {
	return c.look(func(h *handle) error {
		c.stamp(h)
		c.showProperties(h)
		c.w.Header().Set("x-ms-server-encrypted", "true")
		c.w.WriteHeader(http.StatusOK)
		return nil
	})
}

func (c directoryCall) setProperties() error {
	return c.modify(os.O_RDONLY, func(h *handle) error {
		return c.store(h, http.StatusOK)
	})
}

func (c directoryCall) delete() error {
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

func (c directoryCall) list() error {
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
		page, err := pageOf(c.query, len(all), func(i int) string { return all[i].Name() })
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

func (c directoryCall) writeList(directory fs.FileInfo, entries []entry, page page) {
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
func (c directoryCall) entry(o *opened, name string, e fs.DirEntry) (entry, bool) {
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
func (c directoryCall) detail(one *entry, info fs.FileInfo, stored properties, include string) {
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
