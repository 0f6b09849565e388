package blob

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/emulator/behaviour"
)

// listed is a page of a list of blobs.
type listed struct {
	XMLName xml.Name `xml:"EnumerationResults"`
	Prefix  string   `xml:"Prefix,omitempty"`
	Blobs   []entry  `xml:"Blobs>Blob"`
	Next    string   `xml:"NextMarker"`
}

type entry struct {
	Name     string `xml:"Name"`
	Modified string `xml:"Properties>Last-Modified"`
	ETag     string `xml:"Properties>Etag"`
	Length   int    `xml:"Properties>Content-Length"`
	Kind     string `xml:"Properties>Content-Type"`
	Type     string `xml:"Properties>BlobType"`
}

// mostListed is how many blobs a page has, unless the client wants fewer.
const mostListed = 5000

// list answers a request for the blobs of a container in the order of their names. A marker is the first name of a page.
func (s *Service) list(w http.ResponseWriter, r *http.Request, caller *behaviour.Principal, container string) {
	key, refused := s.allowed(caller, account(r.Host), container, "read")
	if refused != nil {
		fail(w, refused.status, refused.code, refused.message)
		return
	}
	query := r.URL.Query()
	most := mostListed
	if text := query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fail(w, http.StatusBadRequest, "OutOfRangeQueryParameterValue", "maxresults must be at least 1.")
			return
		}
		most = min(n, mostListed)
	}
	page := listed{Prefix: query.Get("prefix")}
	s.mu.Lock()
	for _, at := range slices.Sorted(maps.Keys(s.blobs)) {
		name, ours := strings.CutPrefix(at, key+"/")
		if !ours || !strings.HasPrefix(name, page.Prefix) || name < query.Get("marker") {
			continue
		}
		if len(page.Blobs) == most {
			page.Next = name
			break
		}
		b := s.blobs[at]
		page.Blobs = append(page.Blobs, entry{name, b.modified.Format(http.TimeFormat), b.etag, len(b.content), b.kind, "BlockBlob"})
	}
	s.mu.Unlock()
	text, err := xml.Marshal(page)
	if err != nil {
		fail(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the client is gone
}
