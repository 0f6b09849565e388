package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"kaz/internal/localazure/core"
)

// download gets what a deployment links to: from a storage account of this local Azure without a connection, and from public addresses.
func (a *Server) download(ctx context.Context, uri string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("download %q: %w", uri, err)
	}
	for _, plane := range []hosted{a.blobs, a.files} {
		if !plane.Answers(r.URL.Host) {
			continue
		}
		if r.URL.Scheme == "https" {
			r.TLS = &tls.ConnectionState{}
		}
		w := &download{header: http.Header{}, status: http.StatusOK}
		plane.ServeHTTP(w, r)
		return w.content()
	}
	return core.Download(ctx, uri)
}

// mostDownloaded is how large a linked template may be.
const mostDownloaded = 4 << 20

// download is the reply of a data plane.
type download struct {
	header http.Header
	status int
	body   bytes.Buffer
	large  bool
}

func (d *download) Header() http.Header    { return d.header }
func (d *download) WriteHeader(status int) { d.status = status }

// Write implements io.Writer. What is too large is dropped.
func (d *download) Write(b []byte) (int, error) {
	if d.large = d.large || d.body.Len()+len(b) > mostDownloaded; !d.large {
		d.body.Write(b)
	}
	return len(b), nil
}

func (d *download) content() ([]byte, error) {
	switch {
	case d.status != http.StatusOK:
		return nil, fmt.Errorf("%d %s", d.status, http.StatusText(d.status))
	case d.large:
		return nil, errors.New("it is larger than 4 MB")
	}
	return d.body.Bytes(), nil
}
