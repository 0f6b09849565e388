package localcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"kaz/internal/host/process"
)

// Down stops everything that runs for the cluster in dir, including the leftovers of a killed Up, and returns the names
// of what it stopped. The state of the cluster stays for the next Up.
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
	r, err := readRecord(dir)
	if err != nil {
		return stopped, err
	}
	return stopped, r.sweep(ctx)
}
