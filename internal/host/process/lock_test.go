package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kaz/internal/host/process"
)

func TestALockIsHeldByOneAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some", "lock")
	held, err := process.TryLock(file)
	if held == nil || err != nil {
		t.Fatalf("a free lock: %v, %v", held, err)
	}
	if second, err := process.TryLock(file); second != nil || err != nil {
		t.Fatalf("a held lock: %v, %v", second, err)
	}
	waits := 0
	got, err := process.WaitLock(t.Context(), file, func() {
		waits++
		held.Release()
	})
	if err != nil || waits != 1 {
		t.Fatalf("waited %d times: %v", waits, err)
	}
	got.Release()
}

// A waiter does not get the lock of a removed file while another program holds the lock of the new file.
func TestALockThatIsRemoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	held, err := process.TryLock(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
	for range 20 { // all at once, and each removes it
		var all sync.WaitGroup
		var holders atomic.Int32
		for range 8 {
			all.Go(func() {
				l, err := process.WaitLock(t.Context(), file, func() {})
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				holders.Add(-1)
				if err := l.Remove(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func TestWaitingForALockEndsWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	held, err := process.TryLock(file)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := process.WaitLock(ctx, file, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// The shell's own child holds the output open: only the end of the whole group lets Run return at once.
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 600; true")
	began := time.Now()
	if err := process.Run(cmd); err == nil {
		t.Error("a killed command gives no error")
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
}
