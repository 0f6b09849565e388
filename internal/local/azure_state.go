package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kaz/internal/emulator"
)

// saveDelay is how long a change waits for others before the state is saved: what
// a killed program loses at most, as long as saving itself is quick.
const saveDelay = time.Second

// keepSaving saves the state after changes until ctx is done.
func (a *Azure) keepSaving(ctx context.Context) {
	changed := make(chan struct{}, 1)
	poke(changed) // for what changes before the watch begins
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.emulator.Changes(ctx, func([]emulator.Change) { poke(changed) })
	}()
	defer func() { <-watched }()
	delay := saveDelay
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		begin := time.Now()
		if err := a.emulator.SaveFile(a.state); err != nil {
			a.log.Error("state not saved", "file", a.state, "error", err)
			poke(changed) // so that it is tried again
		}
		// A large state must not keep the program busy with saving it.
		const share = 5
		delay = max(saveDelay, share*time.Since(begin))
	}
}

// poke wakes who waits on the channel, which holds one token.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// makePlaceFor makes the directory of a state file, and none above it: what is missing there is
// more likely mistyped.
func makePlaceFor(state string) error {
	if state == "" {
		return nil
	}
	dir := filepath.Dir(state)
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil, errors.Is(err, os.ErrExist):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("--state %s: the directory %s is not there, and only one is made: make it, or correct the path", state, filepath.Dir(dir))
	}
	return fmt.Errorf("--state %s: %w", state, err)
}
