package account

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MetadataHeader begins the names of headers with metadata.
const MetadataHeader = "x-ms-meta-"

// Pairs is metadata: elements by their names.
type Pairs map[string]string

// MarshalXML implements xml.Marshaler.
func (p Pairs) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if err := e.EncodeElement(p[name], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

// PairsOf returns metadata without what its headers begin with.
func PairsOf(metadata map[string]string) Pairs {
	p := Pairs{}
	for header, value := range metadata {
		p[strings.ToLower(header[len(MetadataHeader):])] = value
	}
	return p
}

// Metadata returns the metadata in the headers of a request, by header.
func Metadata(given http.Header) map[string]string {
	metadata := map[string]string{}
	for header := range given {
		if strings.HasPrefix(strings.ToLower(header), MetadataHeader) {
			metadata[header] = given.Get(header)
		}
	}
	return metadata
}

// Show writes metadata as Azure spells it: in small letters, which some clients insist on.
func (p Pairs) Show(h http.Header) {
	for name, value := range p {
		h[MetadataHeader+name] = []string{value}
	}
}

// mostListed is how many elements a page has, unless the client wants fewer.
const mostListed = 5000

// PageSize returns how many elements the page has that the parameters of a request ask for.
func PageSize(v url.Values) (int, error) {
	text := v.Get("maxresults")
	if text == "" {
		return mostListed, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue", "maxresults must be at least 1.")
	}
	return min(n, mostListed), nil
}

// PageOf returns the names of a page in their order, and the one with which the next page begins, "" for the last page. They begin with a
// prefix, and are not before the marker.
func PageOf[V any](all map[string]V, prefix, marker string, most int) (names []string, next string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, prefix) || name < marker {
			continue
		}
		if len(names) == most {
			return names, name
		}
		names = append(names, name)
	}
	return names, ""
}

// Included returns what else a list is to have.
func Included(v url.Values, allowed ...string) (map[string]bool, error) {
	all := map[string]bool{}
	for word := range strings.SplitSeq(strings.ToLower(v.Get("include")), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !slices.Contains(allowed, word) {
			return nil, InvalidParameter("include", word, "some of "+strings.Join(allowed, ", "))
		}
		all[word] = true
	}
	return all, nil
}
