package blob

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// listed is a page of a list of blobs.
type listed struct {
	XMLName xml.Name `xml:"EnumerationResults"`
	Prefix  string   `xml:"Prefix,omitempty"`
	Blobs   []entry  `xml:"Blobs>Blob"`
	Next    string   `xml:"NextMarker"`
}

type entry struct {
	Name          string `xml:"Name"`
	Modified      string `xml:"Properties>Last-Modified"`
	ETag          string `xml:"Properties>Etag"`
	Length        int    `xml:"Properties>Content-Length"`
	Kind          string `xml:"Properties>Content-Type"`
	Type          string `xml:"Properties>BlobType"`
	LeaseStatus   string `xml:"Properties>LeaseStatus"`
	LeaseState    string `xml:"Properties>LeaseState"`
	LeaseDuration string `xml:"Properties>LeaseDuration,omitempty"`
}

// mostListed is how many blobs a page has, unless the client wants fewer.
const mostListed = 5000

// list answers a request for the blobs of a container in the order of their names. A marker is the first name of a page.
func (c *call) list() error {
	most := mostListed
	if text := c.query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue", "maxresults must be at least 1.")
		}
		most = min(n, mostListed)
	}
	page := listed{Prefix: c.query.Get("prefix")}
	s := c.service
	s.mu.Lock()
	for _, at := range slices.Sorted(maps.Keys(s.blobs)) {
		name, ours := strings.CutPrefix(at, c.container.Key()+"/")
		if !ours || !strings.HasPrefix(name, page.Prefix) || name < c.query.Get("marker") {
			continue
		}
		if len(page.Blobs) == most {
			page.Next = name
			break
		}
		page.Blobs = append(page.Blobs, c.entry(name, s.blobs[at]))
	}
	s.mu.Unlock()
	reply(c.w, http.StatusOK, page)
	return nil
}

func (c *call) entry(name string, b stored) entry {
	return entry{Name: name, Modified: b.modified.Format(http.TimeFormat), ETag: b.etag, Length: len(b.content), Kind: b.kind,
		Type: "BlockBlob", LeaseStatus: b.lease.Status(c.now), LeaseState: string(b.lease.State(c.now)),
		LeaseDuration: b.lease.Duration(c.now)}
}
