// Package content stores the content of file shares as directories. A snapshot of a share is a copy of its directory, which shares
// the blocks of the files where the file system can. Layer L2.
package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Store has the directories of shares and snapshots. It is safe for concurrent use.
type Store struct {
	dir string

	mu sync.Mutex // of the creation and removal of directories
	// writes is locked for reading by a change of content through this program, and for writing by a copy. Clients of SMB
	// and NFS do not take the lock. A snapshot has what they write before it, and may have a part of what they write
	// meanwhile.
	writes sync.RWMutex
}

// Open opens the store in a directory, which it creates.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of file shares: %w", err)
	}
	return &Store{dir: dir}, nil
}

// snapshotForm is the form of times in the names of directories. It has only characters that the share servers allow.
const snapshotForm = "20060102T150405.0000000Z"

// Path returns the directory of a share, or of its snapshot at a time that is not zero.
func (s *Store) Path(content string, snapshot time.Time) string {
	if snapshot.IsZero() {
		return filepath.Join(s.dir, content)
	}
	return filepath.Join(s.dir, content+"@"+snapshot.UTC().Format(snapshotForm))
}

// Ensure creates the directories of a share and of its snapshots that are missing, and removes the directories of deleted snapshots.
func (s *Store) Ensure(ctx context.Context, content string, snapshots []time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.Path(content, time.Time{})
	if err := os.MkdirAll(share, 0o777); err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, at := range snapshots {
		path := s.Path(content, at)
		keep[path] = true
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := s.copy(ctx, share, path); err != nil {
			return fmt.Errorf("snapshot of a share: %w", err)
		}
	}
	all, err := filepath.Glob(share + "@*")
	if err != nil {
		return err
	}
	for _, path := range all {
		if !keep[path] {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// copy copies a directory with the attributes of its files and without their holes.
func (s *Store) copy(ctx context.Context, from, to string) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	partial := to + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", "--sparse=always", "--", from, partial)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.Rename(partial, to)
}

// Write calls f while no snapshot is taken.
func (s *Store) Write(f func() error) error {
	s.writes.RLock()
	defer s.writes.RUnlock()
	return f()
}

// Sweep removes the directories of shares that do not exist any more. keep has the names of the content of existing shares.
func (s *Store) Sweep(keep map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, _, _ := strings.Cut(e.Name(), "@")
		if !keep[content] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// Usage returns the bytes that the files of a share occupy.
func (s *Store) Usage(content string) (int64, error) {
	const blockSize = 512
	var sum int64
	err := filepath.WalkDir(s.Path(content, time.Time{}), func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
			sum += stat.Blocks * blockSize
		}
		return nil
	})
	return sum, err
}

// ignoreMissing ignores that a file was removed meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
