package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"kaz/internal/local/process"
)

// Down stops everything that runs for the cluster in dir, also what a killed Up
// left behind, and returns the names of what it stopped. The cluster's state stays
// for the next Up.
func Down(ctx context.Context, dir string) ([]string, error) {
	stopped, err := process.StopRecorded(ctx, dir, stopGrace)
	for i, name := range stopped {
		if name == process.OwnerName {
			stopped[i] = "kaz local up"
		}
	}
	if err != nil {
		return stopped, err
	}
	if err := os.Remove(filepath.Join(dir, statusFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return stopped, err
	}
	m, err := recall(filepath.Join(dir, memoryFile))
	if err != nil {
		return stopped, err
	}
	return stopped, sweep(ctx, m)
}

// sweep removes what a killed Up left of real nodes: their processes have ended with
// it.
func sweep(ctx context.Context, m memory) error {
	if m.NodesKind != NodesReal || m.Instance == "" {
		return nil
	}
	held, err := holdAlone(ctx, m.Instance)
	if err != nil {
		return err
	}
	return sweepInstance(ctx, m.Instance, held)
}
