package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is the interval at which WaitLock tries a held lock.
const lockPoll = 100 * time.Millisecond

// Lock is a locked file. The kernel unlocks it when the program that holds it ends.
type Lock struct{ file *os.File }

// TryLock locks a file. It returns nil if another program holds the lock.
func TryLock(path string) (*Lock, error) { return tryLock(path, false) }

func tryLock(path string, shared bool) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	held, err := lockFile(f.Fd(), shared)
	if held && !isAt(f, path) {
		_ = f.Close()
		return tryLock(path, shared) // the earlier holder has removed the file
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

// WaitLock locks a file as soon as it is free. It calls busy once if it has to wait.
func WaitLock(ctx context.Context, path string, busy func()) (*Lock, error) {
	return waitLock(ctx, path, false, busy)
}

// ShareLock locks a file together with others that share it, as soon as no program has it alone. It calls busy once if it has to wait.
func ShareLock(ctx context.Context, path string, busy func()) (*Lock, error) {
	return waitLock(ctx, path, true, busy)
}

func waitLock(ctx context.Context, path string, shared bool, busy func()) (*Lock, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for waited := false; ; {
		l, err := tryLock(path, shared)
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

// isAt reports whether path is the path of the open file.
func isAt(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}

// Release unlocks the file, which stays for the next holder.
func (l *Lock) Release() { _ = l.file.Close() }

// Remove removes the file and unlocks it. TryLock does not succeed with a file that was opened before.
func (l *Lock) Remove() error {
	err := os.Remove(l.file.Name())
	l.Release()
	return err
}
