package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keptDir has the archives of [Keep]. Their names are the times at which they were loaded, so that the last one with an image
// counts, and the hashes of what they contain.
func keptDir(dir string) string { return filepath.Join(dir, "loaded-images") }

// Kept returns the archives that a machine imports at boot because they were loaded before, in that order.
func Kept(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(keptDir(dir), "*.tar")) // sorted; the pattern is valid
	return files
}

// Keep keeps an archive for machines that boot later. It replaces what it is a copy of.
func Keep(dir, archive string) error {
	if err := os.MkdirAll(keptDir(dir), 0o755); err != nil {
		return err
	}
	source, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer source.Close()
	partial, err := os.CreateTemp(keptDir(dir), ".partial-*")
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
	copies := slices.DeleteFunc(Kept(dir), func(file string) bool { return !strings.HasSuffix(file, suffix) })
	now := time.Now().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(partial.Name(), filepath.Join(keptDir(dir), now+suffix)); err != nil {
		return err
	}
	for _, file := range copies {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
