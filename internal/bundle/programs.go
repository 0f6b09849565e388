package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
)

// programs adds the programs of Kubernetes that machines install. Their checksums must be known before they are read.
func (w *writer) programs(ctx context.Context) error {
	for _, version := range w.options.Kubernetes {
		known := checksumsOf(definition.ReleasedChecksums(version) + w.options.Checksums)
		for _, platform := range w.options.Platforms {
			_, architecture, _ := strings.Cut(platform, "/")
			for _, program := range fields.Programs() {
				at := definition.ArtifactPath(version, architecture, program)
				if known[at] == "" {
					return fmt.Errorf("%s: this kaz has no checksum of it: give it with --checksums", at)
				}
				if err := w.program(ctx, at, "sha256:"+known[at]); err != nil {
					return fmt.Errorf("%s: %w", at, err)
				}
			}
		}
		w.manifest.Kubernetes = append(w.manifest.Kubernetes, version)
	}
	return nil
}

// checksumsOf reads lines with a checksum and a path, as sha256sum prints them. Later lines count before earlier ones.
func checksumsOf(lines string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(lines) {
		if words := strings.Fields(line); len(words) == 2 {
			all[strings.TrimPrefix(words[1], "*")] = words[0]
		}
	}
	return all
}

// program adds a program of a folder or of a URL.
func (w *writer) program(ctx context.Context, at, digest string) error {
	from := w.options.Programs
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		file := filepath.Join(from, filepath.FromSlash(at))
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		w.addProgram(at, digest, info.Size(), func() (io.ReadCloser, error) { return os.Open(file) })
		return nil
	}
	url := strings.TrimSuffix(from, "/") + "/" + at
	answer, err := request(ctx, w.options.Transport, http.MethodHead, url)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.ContentLength <= 0 {
		return fmt.Errorf("%s: the server does not say its size", url)
	}
	w.addProgram(at, digest, answer.ContentLength, func() (io.ReadCloser, error) {
		answer, err := request(ctx, w.options.Transport, http.MethodGet, url)
		if err != nil {
			return nil, err
		}
		return answer.Body, nil
	})
	return nil
}

func (w *writer) addProgram(at, digest string, size int64, open func() (io.ReadCloser, error)) {
	w.manifest.Files = append(w.manifest.Files, File{Path: at, Digest: digest, Size: size})
	w.add(digest, size, open)
}

func request(ctx context.Context, transport http.RoundTripper, method, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, answer.Status), answer.Body.Close())
	}
	return answer, nil
}
