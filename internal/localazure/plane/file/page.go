package file

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
)

// page is a part of a list.
type page struct {
	from, to, given int
	next            string
}

// mostResults is the most entries on a page.
const mostResults = 5000

// pageOf returns the page that the request asks for. The marker has the key of the first entry of the page, so that changes before it
// move nothing. The keys are sorted.
func pageOf(query url.Values, n int, key func(i int) string) (page, error) {
	p := page{}
	size := mostResults
	if text := query.Get("maxresults"); text != "" {
		var err error
		if p.given, err = strconv.Atoi(text); err != nil || p.given < 1 {
			return p, refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
				"One of the query parameters specified in the request URI is outside the permissible range: maxresults is %q.", text)
		}
		size = min(size, p.given)
	}
	if marker := query.Get("marker"); marker != "" {
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
