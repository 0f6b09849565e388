package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/pause"
)

// saveDelay is the time from a change until the state is saved. Until then the change is in the journal.
const saveDelay = time.Second

// saver saves the state of an emulator after changes.
type saver struct {
	emulator *core.Emulator
	file     string
	log      *slog.Logger
	stop     context.CancelFunc
	tasks    sync.WaitGroup
}

// startSaver saves the state after each change until close.
func startSaver(e *core.Emulator, file string, log *slog.Logger) *saver {
	ctx, cancel := context.WithCancel(context.Background())
	s := &saver{emulator: e, file: file, log: log, stop: cancel}
	changed := make(chan struct{}, 1)
	notify(changed) // for changes before the subscription begins
	s.tasks.Go(func() { e.Changes(ctx, func([]core.Change) { notify(changed) }) })
	s.tasks.Go(func() { s.run(ctx, changed) })
	return s
}

// close stops the saver and saves the state once more.
func (s *saver) close() error {
	s.stop()
	s.tasks.Wait()
	return s.emulator.SaveFile(s.file)
}

func (s *saver) run(ctx context.Context, changed chan struct{}) {
	delay := saveDelay
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if pause.For(ctx, delay) != nil {
			return
		}
		began := time.Now()
		if err := s.emulator.SaveFile(s.file); err != nil {
			s.log.Error("state not saved", "file", s.file, "error", err)
			notify(changed) // to try again
		}
		// Saving a large state takes at most a fifth of the time.
		const share = 5
		delay = max(saveDelay, share*time.Since(began))
	}
}

// notify puts a value into a channel of capacity one, unless a value is already in it.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// makeStateDir creates the directory of a state file. It creates no parent directory: a missing parent is more likely a
// mistyped path.
func makeStateDir(state string) error {
	if state == "" {
		return nil
	}
	dir := filepath.Dir(state)
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil, errors.Is(err, os.ErrExist):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("--state %s: the directory %s does not exist; create it, or correct the path", state, filepath.Dir(dir))
	}
	return fmt.Errorf("--state %s: %w", state, err)
}
