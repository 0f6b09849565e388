package blob

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/blob/tags"
)

// listed is a page of a list of blobs.
type listed struct {
	XMLName   xml.Name `xml:"EnumerationResults"`
	Service   string   `xml:"ServiceEndpoint,attr"`
	Container string   `xml:"ContainerName,attr"`
	Prefix    string   `xml:"Prefix,omitempty"`
	Marker    string   `xml:"Marker,omitempty"`
	Most      int      `xml:"MaxResults,omitempty"`
	Delimiter string   `xml:"Delimiter,omitempty"`
	Blobs     []entry  `xml:"Blobs>Blob"`
	Prefixes  []entry  `xml:"Blobs>BlobPrefix"`
	Next      string   `xml:"NextMarker"`
}

// entry is a blob in a list, or the beginning of names of blobs.
type entry struct {
	Name       entryName     `xml:"Name"`
	Snapshot   string        `xml:"Snapshot,omitempty"`
	Properties *entryFacts   `xml:"Properties,omitempty"`
	Metadata   account.Pairs `xml:"Metadata,omitempty"`
	Tags       *tags.List    `xml:"Tags,omitempty"`
}

// entryName is a name, spelled as in a URL if XML cannot have its characters.
type entryName struct {
	Encoded bool   `xml:"Encoded,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func nameOf(text string) entryName {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\uFFFE' || r == '\uFFFF' }) {
		return entryName{true, url.PathEscape(text)}
	}
	return entryName{Text: text}
}

type entryFacts struct {
	Created         string `xml:"Creation-Time"`
	Modified        string `xml:"Last-Modified"`
	ETag            string `xml:"Etag"`
	Length          int    `xml:"Content-Length"`
	Kind            string `xml:"Content-Type"`
	Encoding        string `xml:"Content-Encoding"`
	Language        string `xml:"Content-Language"`
	CRC64           string `xml:"Content-CRC64"`
	MD5             string `xml:"Content-MD5"`
	Cache           string `xml:"Cache-Control"`
	Disposition     string `xml:"Content-Disposition"`
	Type            string `xml:"BlobType"`
	Tier            string `xml:"AccessTier,omitempty"`
	TierInferred    bool   `xml:"AccessTierInferred,omitempty"`
	TierSet         string `xml:"AccessTierChangeTime,omitempty"`
	Returns         string `xml:"ArchiveStatus,omitempty"`
	Sealed          bool   `xml:"Sealed,omitempty"`
	LeaseStatus     string `xml:"LeaseStatus"`
	LeaseState      string `xml:"LeaseState"`
	LeaseDuration   string `xml:"LeaseDuration,omitempty"`
	Encrypted       bool   `xml:"ServerEncrypted"`
	TagCount        int    `xml:"TagCount,omitempty"`
	CopyID          string `xml:"CopyId,omitempty"`
	CopyStatus      string `xml:"CopyStatus,omitempty"`
	CopySource      string `xml:"CopySource,omitempty"`
	CopyProgress    string `xml:"CopyProgress,omitempty"`
	CopyCompletedAt string `xml:"CopyCompletionTime,omitempty"`
}

// list answers a request for the blobs of a container in the order of their names.
func (c containerCall) list() error {
	most, err := account.PageSize(c.query)
	if err != nil {
		return err
	}
	include, err := account.Included(c.query, "metadata", "tags", "copy", "uncommittedblobs", "snapshots", "versions", "deleted",
		"deletedwithversions", "legalhold", "immutabilitypolicy")
	if err != nil {
		return err
	}
	first, err := parseMarker(c.query.Get("marker"))
	if err != nil {
		return err
	}
	page := listed{Service: account.Base(c.r, "https"), Container: c.container.Name(), Prefix: c.query.Get("prefix"),
		Marker: c.query.Get("marker"), Delimiter: c.query.Get("delimiter")}
	if include["snapshots"] && page.Delimiter != "" {
		return account.InvalidParameter("include", "snapshots", "no snapshots with a delimiter")
	}
	if c.query.Get("maxresults") != "" {
		page.Most = most
	}
	s := &c.service.kept
	s.Lock()
	for _, v := range c.versions(include) {
		if !c.listed(v, page.Prefix, first) {
			continue
		}
		group := nameOf(page.group(v.Name))
		if group.Text != "" && len(page.Prefixes) > 0 && page.Prefixes[len(page.Prefixes)-1].Name == group {
			continue
		}
		if len(page.Blobs)+len(page.Prefixes) == most {
			page.Next = marker(v)
			break
		}
		if group.Text != "" {
			page.Prefixes = append(page.Prefixes, entry{Name: group})
			continue
		}
		b, _ := s.Get(c.container.Key() + "/" + v.String())
		page.Blobs = append(page.Blobs, c.entry(v, b, include))
	}
	s.Unlock()
	account.Reply(c.w, http.StatusOK, page)
	return nil
}

// listed reports whether a list has a version on the page that begins with the first one, or on a later page.
func (c containerCall) listed(v kept.Version, prefix string, first kept.Version) bool {
	end := c.query.Get("endBefore")
	return strings.HasPrefix(v.Name, prefix) && v.Compare(first) >= 0 && v.Name >= c.query.Get("startFrom") && (end == "" || v.Name < end)
}

// group returns the beginning of a name up to the delimiter behind the prefix, "" without one.
func (p listed) group(name string) string {
	if p.Delimiter == "" {
		return ""
	}
	before, _, found := strings.Cut(name[len(p.Prefix):], p.Delimiter)
	if !found {
		return ""
	}
	return p.Prefix + before + p.Delimiter
}

// versions returns the blobs of a container in the order of lists: also their snapshots, and those that have waiting blocks alone, if
// the request wants them. The caller holds the lock.
func (c containerCall) versions(include map[string]bool) (all []kept.Version) {
	before := c.container.Key() + "/"
	for v := range c.service.kept.Under(before) {
		if v.Snapshot == "" || include["snapshots"] {
			all = append(all, v)
		}
	}
	if include["uncommittedblobs"] {
		for name := range c.service.kept.WaitingUnder(before, c.made) {
			all = append(all, kept.Version{Name: name})
		}
	}
	slices.SortFunc(all, kept.Version.Compare)
	return all
}

func (c containerCall) entry(v kept.Version, b kept.Blob, include map[string]bool) entry {
	p := &entryFacts{Created: b.Created.Format(http.TimeFormat), Modified: b.Modified.Format(http.TimeFormat),
		ETag: strings.Trim(b.ETag, `"`), Length: len(b.Content), Kind: b.Properties[contentType],
		Encoding: b.Properties["Content-Encoding"], Language: b.Properties["Content-Language"],
		MD5: b.Properties["Content-MD5"], Cache: b.Properties["Cache-Control"],
		Disposition: b.Properties["Content-Disposition"], Type: cmp.Or(b.Type, kept.Blocks), LeaseStatus: b.Lease.Status(c.now),
		LeaseState: string(b.Lease.State(c.now)), LeaseDuration: b.Lease.Duration(c.now), Encrypted: true,
		TagCount: len(b.Tags), Sealed: b.Sealed, Returns: b.Pending()}
	e := entry{Name: nameOf(v.Name), Snapshot: v.Snapshot, Properties: p}
	if p.Type == kept.Blocks {
		p.Tier, p.TierInferred = cmp.Or(b.Tier, "Hot"), b.Tier == ""
		if b.Tier != "" {
			p.TierSet = b.TierSet.Format(http.TimeFormat)
		}
	}
	if include["metadata"] {
		e.Metadata = account.PairsOf(b.Metadata)
	}
	if include["tags"] && len(b.Tags) > 0 {
		e.Tags = tags.ListOf(b.Tags)
	}
	if include["copy"] && b.Copy != nil {
		header := http.Header{}
		b.Copy.Show(header)
		p.CopyID, p.CopyStatus, p.CopySource = header.Get("x-ms-copy-id"), header.Get("x-ms-copy-status"), header.Get(sourceHeader)
		p.CopyProgress, p.CopyCompletedAt = header.Get("x-ms-copy-progress"), header.Get("x-ms-copy-completion-time")
	}
	return e
}
