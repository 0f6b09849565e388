package process_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kaz/internal/local/process"
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
