package localcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/localcluster/image"
	"kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/realnodes"
)

// LoadImages imports an archive with images (tar, OCI or docker) into all running machines of the cluster in dir, and returns their names.
// Machines of real nodes that boot later import it, too.
func LoadImages(ctx context.Context, dir, archive string) ([]string, error) {
	if err := image.CheckArchive(archive); err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	status, err := ReadStatus(dir)
	if err != nil {
		return nil, err
	}
	if status.NodesKind == NodesHollow {
		return nil, fmt.Errorf("the cluster in %s has %s nodes, which are simulated and run no images; start one with --nodes-kind %s",
			dir, NodesHollow, NodesReal)
	}
	var running []string
	for _, m := range status.Machines {
		if m.Running {
			running = append(running, m.Name)
		}
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("no machine of the cluster in %s runs; kaz local status shows them", dir)
	}
	failures := make([]error, len(running))
	var tasks errgroup.Group
	for i, name := range running {
		tasks.Go(func() error {
			if err := machine.ImportImages(ctx, filepath.Join(realnodes.DisksDir(dir), name), archive); err != nil {
				failures[i] = fmt.Errorf("machine %s: %w", name, err)
			}
			return nil
		})
	}
	_ = tasks.Wait() // they return nothing
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	// Only now: a machine does not boot with an archive that it cannot import.
	if status.NodesKind == NodesReal {
		if err := keepLoaded(dir, archive); err != nil {
			return nil, fmt.Errorf("keep %s for later machines: %w", archive, err)
		}
	}
	return running, nil
}

// loadedDir has the archives of [LoadImages]. Their names are the times at which they were loaded, so that the last one with an image
// counts, and the hashes of what they contain.
func loadedDir(dir string) string { return filepath.Join(dir, "loaded-images") }

// loadedImages returns the archives that a machine imports at boot because they were loaded before, in that order.
func loadedImages(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(loadedDir(dir), "*.tar")) // sorted; the pattern is valid
	return files
}

// keepLoaded keeps an archive for machines that boot later. It replaces what it is a copy of.
func keepLoaded(dir, archive string) error {
	if err := os.MkdirAll(loadedDir(dir), 0o755); err != nil {
		return err
	}
	source, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer source.Close()
	partial, err := os.CreateTemp(loadedDir(dir), ".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name()) // fails after the rename
	content := sha256.New()
	_, err = io.Copy(io.MultiWriter(partial, content), source)
	if err := errors.Join(err, partial.Sync(), partial.Close()); err != nil {
		return err
	}
	suffix := "-" + hex.EncodeToString(content.Sum(nil)) + ".tar"
	copies := slices.DeleteFunc(loadedImages(dir), func(file string) bool { return !strings.HasSuffix(file, suffix) })
	now := time.Now().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(partial.Name(), filepath.Join(loadedDir(dir), now+suffix)); err != nil {
		return err
	}
	for _, file := range copies {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
