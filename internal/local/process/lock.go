package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is how often a held lock is tried again.
const lockPoll = 100 * time.Millisecond

// Lock is a file that one program at a time holds. The kernel releases it when that program ends, however it ends.
type Lock struct{ file *os.File }

// TryLock takes the lock, or returns nil when another program has it.
func TryLock(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	held, err := lockFile(f.Fd())
	if held && !isAt(f, path) {
		_ = f.Close()
		return TryLock(path) // whoever had it removed the file meanwhile
	}
	if held {
		return &Lock{file: f}, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, nil
}

// WaitLock takes the lock as soon as it is free. It calls busy once if it has to wait.
func WaitLock(ctx context.Context, path string, busy func()) (*Lock, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for waited := false; ; {
		l, err := TryLock(path)
		if l != nil || err != nil {
			return l, err
		}
		if !waited {
			waited = true
			busy()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// isAt reports whether the file is the one that has the path now.
func isAt(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}

// Release gives the lock up. The file stays, for the next who takes the lock.
func (l *Lock) Release() { _ = l.file.Close() }

// Remove removes the file and gives the lock up. Who has opened the file before does not get a lock by it.
func (l *Lock) Remove() error {
	err := os.Remove(l.file.Name())
	l.Release()
	return err
}
