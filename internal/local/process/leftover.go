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
	// leftoverGrace is how long a process that a killed program left behind may take to end by itself.
	leftoverGrace = 5 * time.Second
	// leftoverPoll is how often it is looked at: the kernel tells only a parent when a process ends.
	leftoverPoll = 20 * time.Millisecond
)

// StopRecorded ends everything that runs for dir: first the program that owns the directory, which stops its children
// in order, then whatever is still there. It returns the names of what it found running, and is content when nothing is.
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

// stopLeftovers ends the recorded processes, the last started first, and forgets them.
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

// end stops one process that is not a child of ours. The handle that FindProcess returns stays with the process it was
// made for, so checking the identity after taking it leaves no gap in which the pid could become another's.
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
