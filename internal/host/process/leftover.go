package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// leftoverGrace is the time that a leftover process of a killed program gets for its shutdown.
	leftoverGrace = 5 * time.Second
	// leftoverPoll is the interval at which it is checked: the kernel reports the end of a process only to its parent.
	leftoverPoll = 20 * time.Millisecond
)

// StopRecorded stops everything that runs for dir. It first stops the program that owns the directory, which stops its
// children in order. It then stops the processes that still run. It returns the names of the running processes that it
// found.
func StopRecorded(ctx context.Context, dir string, grace time.Duration) ([]string, error) {
	records, err := Recorded(dir)
	if err != nil {
		return nil, err
	}
	var running []string
	for _, r := range records {
		if r.Alive() {
			running = append(running, r.Name)
		}
	}
	if o, ok := Owner(dir); ok && o.PID != os.Getpid() {
		running = append(running, OwnerName)
		if err := end(ctx, o, grace); err != nil {
			return running, err
		}
		removeRecord(dir, o)
	}
	return running, stopLeftovers(ctx, dir, leftoverGrace)
}

// stopLeftovers stops the recorded processes, the last started first, and removes their records.
func stopLeftovers(ctx context.Context, dir string, grace time.Duration) error {
	records, err := Recorded(dir)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(records) {
		if err := end(ctx, r, grace); err != nil {
			return err
		}
		removeRecord(dir, r)
	}
	return nil
}

// end stops a process that is no child of this program. The handle of FindProcess stays with its process. The identity is
// checked after taking the handle, so that a signal cannot reach another process with the same pid.
func end(ctx context.Context, r Record, grace time.Duration) error {
	handle, err := os.FindProcess(r.PID)
	if err != nil || !r.Alive() {
		return nil
	}
	defer func() { _ = handle.Release() }()
	for _, try := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, leftoverGrace}} {
		if err := handle.Signal(try.signal); err != nil && r.Alive() {
			return fmt.Errorf("stop %s (process %d): %w", r.Name, r.PID, err)
		}
		if gone(ctx, r, try.wait) {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("stop %s (process %d): %w", r.Name, r.PID, err)
		}
	}
	return fmt.Errorf("stop %s (process %d): it did not end after SIGKILL", r.Name, r.PID)
}

func gone(ctx context.Context, r Record, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(leftoverPoll)
	defer tick.Stop()
	for {
		if !r.Alive() {
			return true
		}
		select {
		case <-ctx.Done():
			return !r.Alive()
		case <-tick.C:
		}
	}
}
