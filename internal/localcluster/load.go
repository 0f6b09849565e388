package localcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"kaz/internal/localcluster/image"
	"kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/realnodes"
)

// LoadImages imports an archive with images (tar, OCI or docker) into all running machines of the cluster in dir, and returns their names.
// Machines of real nodes that boot later import it, too.
func LoadImages(ctx context.Context, dir, archive string) ([]string, error) {
	if err := image.CheckArchive(archive); err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	status, err := ReadStatus(dir)
	if err != nil {
		return nil, err
	}
	if status.NodesKind == NodesHollow {
		return nil, fmt.Errorf("the cluster in %s has %s nodes, which are simulated and run no images; start one with --nodes-kind %s",
			dir, NodesHollow, NodesReal)
	}
	var running []string
	for _, m := range status.Machines {
		if m.Running {
			running = append(running, m.Name)
		}
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("no machine of the cluster in %s runs; kaz local status shows them", dir)
	}
	failures := make([]error, len(running))
	var tasks errgroup.Group
	for i, name := range running {
		tasks.Go(func() error {
			if err := machine.ImportImages(ctx, filepath.Join(realnodes.DisksDir(dir), name), archive); err != nil {
				failures[i] = fmt.Errorf("machine %s: %w", name, err)
			}
			return nil
		})
	}
	_ = tasks.Wait() // they return nothing
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	// Only now: a machine does not boot with an archive that it cannot import.
	if status.NodesKind == NodesReal {
		if err := image.Keep(dir, archive); err != nil {
			return nil, fmt.Errorf("keep %s for later machines: %w", archive, err)
		}
	}
	return running, nil
}
