package realnodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/block"
	vm "kaz/internal/localcluster/machine"
)

// CheckDisks returns the reason why machines here cannot have managed disks, nil if they can.
func CheckDisks() error {
	const control = "/dev/loop-control"
	f, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("disks are loop devices: %w; modprobe loop may help", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, program := range []string{"mkfs.ext4", "resize2fs", "blkid"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("disks need file systems: %w; install e2fsprogs and util-linux", err)
		}
	}
	return nil
}

// startDisks starts the physical side of the managed disks. Their content is in the cluster's directory, beside the
// machines, so that it outlives them.
func startDisks(ctx context.Context, c Config) (*block.Block, error) {
	machines, err := Disks(c.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range machines { // links of a killed kaz process
		err = errors.Join(err, os.RemoveAll(filepath.Join(DisksDir(c.Dir), name, vm.DevicesDir, "azure")))
	}
	if err != nil {
		return nil, err
	}
	return block.Start(ctx, block.Options{
		Azure: c.Azure.Emulator(), Dir: filepath.Join(c.Dir, "disks"), Log: c.Log,
		Root: func(_ azure.ID, doc behaviour.Object) (string, bool) {
			name := inventory.Name(doc)
			return filepath.Join(DisksDir(c.Dir), name), name != ""
		},
	})
}
