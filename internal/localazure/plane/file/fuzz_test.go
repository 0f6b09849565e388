package file

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sharedkey"
)

// FuzzFiles sends anything with a right signature: the answer is never a 500.
func FuzzFiles(f *testing.F) {
	for _, seed := range []struct{ method, path, query, header, value, body string }{
		{"PUT", "/one/a", "", "x-ms-content-length", "5", ""},
		{"PUT", "/one/a", "comp=range", "x-ms-range", "bytes=0-4", "12345"},
		{"PUT", "/one/d", "restype=directory", "x-ms-meta-\xff", "\xe9", ""},
		{"GET", "/one", "restype=directory&comp=list&marker=!!&maxresults=0&prefix=%ff", "x-ms-file-extended-info", "true", ""},
		{"PUT", "/one/b", "", "x-ms-copy-source", "https://" + host + "/one/a", ""},
		{"PUT", "/two", "restype=share", "x-ms-share-quota", "99999999999", ""},
		{"PUT", "/one", "restype=share&comp=snapshot", "x-ms-meta-a", "b", ""},
		{"PUT", "/one/a", "comp=rename", "x-ms-file-rename-source", "https://" + host + "/one/\xff", ""},
		{"GET", "/", "comp=list&include=metadata,snapshots", "Range", "bytes=9-1", ""},
		{"PUT", "/one/..%2f..", "", "x-ms-file-permission", "x", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.header, seed.value, seed.body)
	}
	w := start(f)
	w.file("/one/a", "content")
	f.Fuzz(func(t *testing.T, method, path, query, header, value, body string) {
		r, err := http.NewRequest(method, "https://"+host+"/", strings.NewReader(body))
		if err != nil {
			return // net/http lets no such request through
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
		r.Header.Set("x-ms-version", "2025-05-05")
		r.Header.Set("x-ms-write", "update")
		r.Header.Set(header, value)
		a, _ := w.service.find("account1")
		r.Header.Set("Authorization", "SharedKey account1:"+storage.Sign(a.keys[0], sharedkey.Text(r, "account1", strings.Compare)))
		reply := httptest.NewRecorder()
		w.service.ServeHTTP(reply, r)
		if reply.Code >= 500 && reply.Code != http.StatusNotImplemented || reply.Code < 200 {
			t.Errorf("%s %q?%s %s %q: %d %s", method, path, query, header, value, reply.Code, reply.Body)
		}
	})
}
