package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kaz/internal/emulator/behaviour"
)

// Downloader gets the content at a URI that a request names, such as the URI of a linked template.
type Downloader func(ctx context.Context, uri string) ([]byte, error)

// The limits of a download.
const (
	downloadTimeout = 15 * time.Second
	mostDownloads   = 100 // of a request
)

// download is the [Downloader] of a server.
func download(ctx context.Context, uri string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", uri, err)
	}
	reply, err := http.DefaultClient.Do(hr)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", uri, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("download %s: %s", uri, reply.Status)
	}
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	if err == nil && len(text) > maxBody {
		err = errors.New("it is larger than 4 MB")
	}
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", uri, err)
	}
	return text, nil
}

// downloaded is what a request got from a URI.
type downloaded struct {
	text []byte
	err  error
}

// download returns what was got for the request from a URI, or asks the core to get it.
func (r *request) download(uri string) ([]byte, error) {
	if got, ok := r.downloads[uri]; ok {
		return got.text, got.err
	}
	return nil, &behaviour.NotDownloaded{URI: uri}
}

// withDownloads calls f until it needs no further download.
func (f *front) withDownloads(r *request, do func() error) error {
	for {
		err := do()
		missing, ok := errors.AsType[*behaviour.NotDownloaded](err)
		if !ok {
			return err
		}
		if r.downloads == nil {
			r.downloads = map[string]downloaded{}
		}
		var got downloaded
		switch {
		case len(r.downloads) >= mostDownloads:
			return fmt.Errorf("a request needs more than %d downloads", mostDownloads)
		case !strings.HasPrefix(missing.URI, "http://") && !strings.HasPrefix(missing.URI, "https://"):
			got.err = fmt.Errorf("download %s: the URI is not one of HTTP", missing.URI)
		default:
			got.text, got.err = f.download(r.http.Context(), missing.URI)
		}
		r.downloads[missing.URI] = got
	}
}
