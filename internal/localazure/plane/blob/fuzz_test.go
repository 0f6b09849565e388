package blob_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
)

// FuzzBlobs sends anything: the answer is never a 500, and what is acknowledged is there after a restart.
func FuzzBlobs(f *testing.F) {
	f.Add("PUT", "/c/a", "", "x-ms-meta-a", "b", []byte("text"))
	f.Add("PUT", "/c/\xff", "", "Content-Type", "text/\xe9", []byte{0xff, 0})
	f.Add("PUT", "/c/a", "comp=lease", "x-ms-lease-action", "acquire", []byte{})
	f.Add("GET", "/c", "restype=container&comp=list&marker=x&maxresults=-1&prefix=%ff", "Range", "bytes=0-", []byte{})
	f.Add("PUT", "/d", "restype=container", "x-ms-blob-public-access", "blob", []byte{})
	f.Add("PUT", "/C/0", "", "0", "0", []byte("0"))
	f.Add("DELETE", "/c/a/../b", "sig=x&se=2030&sp=rw", "If-Match", "*", []byte{})
	f.Add("PUT", "/c/a\x002026-01-01T00:00:00.0000000Z", "", "Cache-Control", "\xe9", []byte("x"))
	f.Add("PUT", "/c/a", "comp=block&blockid=YQ==", "x-ms-copy-source", "https://acc.blob.core.windows.net/c/b", []byte("x"))
	f.Add("PUT", "/c/a", "comp=blocklist", "Content-MD5", "x", []byte("<BlockList><Latest>YQ==</Latest></BlockList>"))
	f.Add("GET", "/", "comp=blobs&where=%22a%22%3D'b'AND%40container%3C'c'&marker=YQ", "x-ms-if-tags", `a='b' OR "c"<>'d'`, []byte{})
	f.Add("POST", "/c", "restype=container&comp=batch", "Content-Type", "multipart/mixed; boundary=b",
		[]byte("--b\r\nContent-ID: 0\r\n\r\nDELETE /c/a HTTP/1.1\r\nAuthorization: Bearer good\r\n\r\n\r\n--b--\r\n"))
	f.Add("PUT", "/c", "restype=container&comp=acl", "x", "y", []byte("<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>"))
	f.Add("PUT", "/c/a", "comp=tags", "x-ms-delete-snapshots", "only", []byte("<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"))
	azure := withContainer(f)
	f.Fuzz(func(t *testing.T, method, path, query, header, value string, body []byte) {
		r, err := http.NewRequest(method, "https://acc.blob.core.windows.net/", bytes.NewReader(body))
		if err != nil || path != "" && path[0] != '/' {
			return // net/http lets no such request through
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set(header, value)
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		r.Header.Set("Authorization", "Bearer good")
		dir := filepath.Join(t.TempDir(), "blobs")
		w := httptest.NewRecorder()
		service(t, azure, dir).ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusNotImplemented || w.Code < 200 {
			t.Fatalf("%s %q?%s %s %q: %d %s", method, path, query, header, value, w.Code, w.Body)
		}
		if w.Code != http.StatusCreated || r.URL.Query().Get("restype") != "" || r.URL.Query().Get("comp") != "" {
			return
		}
		again := serve(t, azure, dir)("GET", (&url.URL{Path: path}).EscapedPath(), "good", "")
		defer again.Body.Close()
		if text, err := io.ReadAll(again.Body); err != nil || again.StatusCode != 200 || !bytes.Equal(text, body) {
			t.Errorf("%q was acknowledged: %d %q, %v", path, again.StatusCode, text, err)
		}
	})
}
