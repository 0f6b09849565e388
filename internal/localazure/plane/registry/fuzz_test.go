package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzContent sends anything as the pusher, to uploads and manifests above all: the answer is never a 500.
func FuzzContent(f *testing.F) {
	for _, seed := range []struct{ method, path, query, header, value, body string }{
		{"POST", "/v2/a/blobs/uploads/", "", "Content-Range", "0-3", "data"},
		{"POST", "/v2/a/blobs/uploads/", "digest=sha256:" + sum("data"), "", "", "data"},
		{"PATCH", "/v2/a/blobs/uploads/UPLOAD", "", "Content-Range", "0-3", "data"},
		{"PATCH", "/v2/a/blobs/uploads/UPLOAD", "", "Content-Range", "-1-9223372036854775808", "data"},
		{"PUT", "/v2/a/blobs/uploads/UPLOAD", "digest=sha256:" + sum("data"), "", "", "data"},
		{"PUT", "/v2/a/blobs/uploads/UPLOAD", "digest=sha512:00", "Content-Type", "\xff", ""},
		{"DELETE", "/v2/a/blobs/uploads/UPLOAD", "", "", "", ""},
		{"GET", "/v2/a/blobs/sha256:" + sum("x"), "", "Range", "bytes=5-", ""},
		{"PUT", "/v2/a/manifests/latest", "", "Content-Type", "application/vnd.oci.image.index.v1+json", `{"manifests":[{"digest":"x"}]}`},
		{"PUT", "/v2/a/manifests/latest", "", "Content-Type", "application/vnd.oci.image.manifest.v1+json",
			`{"config":{"digest":"sha256:` + sum("x") + `"},"layers":[{"urls":["u"]},null],"subject":{"digest":"sha256:zz"}}`},
		{"GET", "/v2/a/tags/list", "n=-1&last=%ff", "", "", ""},
		{"GET", "/v2/_catalog", "n=99999999999999999999", "", "", ""},
		{"GET", "/v2/a/referrers/sha256:" + sum("x"), "artifactType=%ff", "", "", ""},
		{"POST", "/oauth2/token", "", "Content-Type", "application/x-www-form-urlencoded", "grant_type=%zz&scope=a:b"},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.header, seed.value, seed.body)
	}
	c := start(f, f.TempDir())
	f.Fuzz(func(t *testing.T, method, path, query, header, value, body string) {
		r, err := http.NewRequest(method, "https://"+server+"/", strings.NewReader(body))
		if err != nil {
			return // net/http lets no such request through
		}
		id := c.send("POST", "/v2/a/blobs/uploads/", nil).Header().Get("Docker-Upload-Uuid")
		defer c.send("DELETE", "/v2/a/blobs/uploads/"+id, nil)
		r.URL.Path, r.URL.RawQuery = strings.ReplaceAll(path, "UPLOAD", id), query
		r.Header.Set(header, value)
		r.Header.Set("Authorization", basic(pusher, secret))
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %q?%s %s %q %q: %d %s", method, path, query, header, value, body, w.Code, w.Body)
		}
	})
}
