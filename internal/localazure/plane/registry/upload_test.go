package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// send sends data to a path of the registry as the pusher.
func (c *registryAzure) send(method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://"+server+path, body)
	r.Header.Set("Authorization", basic(pusher, secret))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// zeros is a large body without memory of its own.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Abandoned uploads take no memory.
func TestAbandonedUploads(t *testing.T) {
	c := start(t, t.TempDir())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n, size = 4, 32 << 20
	for range n {
		begun := c.send("POST", "/v2/a/blobs/uploads/", nil)
		if begun.Code != 202 {
			t.Fatalf("begin: %d %s", begun.Code, begun.Body)
		}
		got := c.send("PATCH", begun.Header().Get("Location"), zeros(size))
		if got.Code != 202 || got.Header().Get("Range") != fmt.Sprintf("0-%d", size-1) {
			t.Fatalf("data: %d %s %v", got.Code, got.Body, got.Header())
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > n*size/4 {
		t.Errorf("%d MB of abandoned uploads take %d MB of memory", n*size>>20, grown>>20)
	}
}

// An upload goes on where it was cut off, one slow client blocks no other, and the blob is what was sent.
func TestUploadInParts(t *testing.T) {
	c := start(t, t.TempDir())
	blob := bytes.Repeat([]byte("data"), 1000)
	digest := "sha256:" + sum(string(blob))
	slow := c.send("POST", "/v2/a/blobs/uploads/", nil).Header().Get("Location")
	read, write := io.Pipe()
	done := make(chan int)
	go func() { done <- c.send("PATCH", slow, read).Code }()
	if _, err := write.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	at := c.send("POST", "/v2/a/blobs/uploads/", nil).Header().Get("Location")
	for _, part := range []struct {
		method, query, data, contentRange string
		status                            int
	}{
		{"PATCH", "", string(blob[:1000]), "", 202},
		{"PATCH", "", string(blob[1000:2000]), "5-1004", 416},
		{"PATCH", "", string(blob[1000:2000]), "1000-1999", 202},
		{"GET", "", "", "", 204},
		{"PUT", "?digest=" + digest, string(blob[2000:]), "2000-3999", 201},
		{"PUT", "?digest=" + digest, "", "", 404},
	} {
		got := c.send(part.method, at+part.query, strings.NewReader(part.data), "Content-Range", part.contentRange)
		if got.Code != part.status {
			t.Errorf("%s %s: %d %s, want %d", part.method, part.contentRange, got.Code, got.Body, part.status)
		}
	}
	if got := c.send("GET", "/v2/a/blobs/"+digest, nil); got.Code != 200 || !bytes.Equal(got.Body.Bytes(), blob) {
		t.Errorf("the blob: %d, %d bytes", got.Code, got.Body.Len())
	}
	if got := c.send("POST", "/v2/a/blobs/uploads/?digest="+digest, strings.NewReader("other")); got.Code != 400 {
		t.Errorf("another digest: %d %s", got.Code, got.Body)
	}
	if err := write.CloseWithError(errors.New("gone")); err != nil {
		t.Fatal(err)
	}
	if status := <-done; status != 400 {
		t.Errorf("the client that went away: %d", status)
	}
}

// The uploads of a registry have bounds: their count, their size and their age.
func TestUploadBounds(t *testing.T) {
	now := time.Now()
	u := newUploads(t.TempDir())
	u.most = 10
	first, err := u.begin("a", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	second, err := u.begin("a", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write(make([]byte, 8)); err == nil {
		t.Error("16 of 10 bytes are accepted")
	}
	first.end()
	if _, err := second.Write(make([]byte, 8)); err != nil {
		t.Errorf("after the end of the other: %v", err)
	}
	for u.count() < mostUploads {
		if _, err := u.begin("a", now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.begin("a", now); err == nil {
		t.Errorf("%d uploads are accepted", u.count())
	}
	if _, err := u.begin("a", now.Add(2*graceTimeout)); err != nil || u.count() != 1 {
		t.Errorf("after a time without data: %v, %d uploads", err, u.count())
	}
	u.expire(now.Add(2*uploadTimeout), 0)
}

// A start removes the data of uploads that a killed process left.
func TestLeftUploads(t *testing.T) {
	dir := t.TempDir()
	a := account{id: images, created: "now"}
	if _, err := openStore(dir, a, slog.Default()); err != nil {
		t.Fatal(err)
	}
	places, err := filepath.Glob(filepath.Join(dir, "*", "uploads"))
	if err != nil || len(places) != 1 {
		t.Fatalf("directories of uploads: %v, %v", places, err)
	}
	left := []string{filepath.Join(places[0], "upload-1"), filepath.Join(filepath.Dir(places[0]), "blobs", "upload-2")}
	for _, file := range left {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openStore(dir, a, slog.Default()); err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
