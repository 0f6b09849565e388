// Package driver serves a CSI driver to the tests of csi-sanity. Each driver has a package of its own: ginkgo, in which
// csi-sanity is written, runs one suite in a process.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/csi"
)

// Serve serves a driver until the test ends.
func Serve(t *testing.T, endpoint string, services csi.Services, log *slog.Logger) {
	t.Helper()
	listener, err := csi.Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- csi.Serve(ctx, listener, services, log) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the driver does not end")
		}
	})
}

// Log returns a logger that writes to the test.
func Log(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(&lines{t}, nil))
}

// lines writes a log to the test.
type lines struct{ t *testing.T }

func (l *lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// Write writes a file of parameters for csi-sanity and returns its path.
func Write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Exists waits for the directory of a share, which the local Azure creates after the share's document.
func Exists(ctx context.Context, path string) error {
	const patience, pause = 20 * time.Second, 5 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("directory %s of a share: %w", path, ctx.Err())
		case <-time.After(pause):
		}
	}
}
