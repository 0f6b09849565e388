// Package helmchart renders Helm charts to manifests with Helm's library: the same chart, values and version of Kubernetes give the
// same bytes. It asks no cluster, and only a chart at a URL needs a network, once. Layer L3.
package helmchart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"kaz/internal/cluster/definition"
)

// mostArchive is the size of the greatest archive that is read.
const mostArchive = 32 << 20

// patience is how long a download may take.
const patience = 2 * time.Minute

// Renderer renders charts.
type Renderer struct {
	// Cache is the folder for archives of URLs, by their checksums, "" for none.
	Cache string
	// Client gets archives, nil for the default client.
	Client *http.Client
}

// load reads a chart.
func (r Renderer) load(ctx context.Context, c definition.Chart, layer string) (*chart.Chart, error) {
	if c.URL != "" {
		text, err := r.fetch(ctx, c.URL, c.SHA256)
		if err != nil {
			return nil, err
		}
		return fromArchive("url", text)
	}
	path := c.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(layer), path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, wrong("path", err)
	case info.IsDir() && c.SHA256 != "":
		return nil, wrong("sha256", fmt.Errorf("%s is a folder, and only an archive has a checksum: want it removed", path))
	case info.IsDir():
		loaded, err := loader.LoadDir(path)
		return loaded, wrong("path", err)
	case info.Size() > mostArchive:
		return nil, wrong("path", fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), mostArchive))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, wrong("path", err)
	}
	if c.SHA256 != "" {
		if err := check(text, c.SHA256, path); err != nil {
			return nil, err
		}
	}
	return fromArchive("path", text)
}

// wrong is an error about a field, nil for none.
func wrong(field string, err error) error {
	if err == nil {
		return nil
	}
	return &definition.FieldError{Field: field, Err: err}
}

// check compares the checksum of an archive.
func check(text []byte, want, from string) error {
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != want {
		return wrong("sha256", fmt.Errorf("%s has the checksum %s: want another file, or this checksum if you trust it", from, got))
	}
	return nil
}

// fromArchive reads a chart of an archive. field is where it came from.
func fromArchive(field string, text []byte) (*chart.Chart, error) {
	files, err := archive.LoadArchiveFiles(bytes.NewReader(text))
	if err != nil {
		return nil, wrong(field, fmt.Errorf("no archive of a chart (.tgz): %w", err))
	}
	loaded, err := loader.LoadFiles(files)
	return loaded, wrong(field, err)
}

// fetch returns the archive with a checksum: that of the cache, or that at a URL.
func (r Renderer) fetch(ctx context.Context, url, sum string) ([]byte, error) {
	kept := filepath.Join(r.Cache, sum+".tgz")
	if r.Cache != "" {
		if text, err := os.ReadFile(kept); err == nil && check(text, sum, kept) == nil {
			return text, nil
		}
	}
	text, err := r.download(ctx, url)
	if err != nil {
		return nil, wrong("url", err)
	}
	if err := check(text, sum, url); err != nil {
		return nil, err
	}
	if r.Cache != "" {
		// Without a cache the next command downloads it again.
		if err := keep(r.Cache, kept, text); err != nil && !errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("cache of charts: %w", err)
		}
	}
	return text, nil
}

func (r Renderer) download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := r.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostArchive+1))
	if err == nil && len(text) > mostArchive {
		err = fmt.Errorf("%s has more than %d bytes", url, mostArchive)
	}
	return text, err
}

// keep writes an archive into the cache as a whole.
func keep(folder, path string, text []byte) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "download-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
