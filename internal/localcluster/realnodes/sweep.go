package realnodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kaz/internal/host/process"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
	vm "kaz/internal/localcluster/machine"
)

// instancesDir has a lock file for each instance with real nodes on this machine. A file without a lock belongs to a
// killed kaz process.
const instancesDir = "/run/kaz"

const lockSuffix = ".lock"

func lockFile(instance string) string { return filepath.Join(instancesDir, instance+lockSuffix) }

// waitInstance locks an instance that only a sweep, which is short, can hold.
func waitInstance(ctx context.Context, instance string) (*process.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := process.WaitLock(ctx, lockFile(instance), func() {})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("real nodes of %s, which another kaz process holds: %w", wiring.Prefix(instance), err)
	}
	if err != nil {
		return nil, fmt.Errorf("real nodes of %s: %w", wiring.Prefix(instance), err)
	}
	return l, nil
}

// sweepInstance removes everything of a locked instance from this machine, and unlocks it.
func sweepInstance(ctx context.Context, instance string, lock *process.Lock) error {
	if err := errors.Join(netns.Sweep(ctx, instance, ""), vm.RemoveCgroups(wiring.Prefix(instance))); err != nil {
		lock.Release() // the file stays, so that the next sweep tries again
		return err
	}
	return lock.Remove()
}

// Sweep removes everything of an instance after its processes have ended.
func Sweep(ctx context.Context, instance string) error {
	lock, err := waitInstance(ctx, instance)
	if err != nil {
		return err
	}
	return sweepInstance(ctx, instance, lock)
}

// SweepAbandoned removes what killed kaz processes left of real nodes on this machine, of all clusters. The public
// addresses of the local Azure exist once per machine, so leftovers of one cluster block the others. It returns the
// names of what it removed. Without the permission to look it finds nothing.
func SweepAbandoned(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(instancesDir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var swept []string
	var problems []error
	for _, e := range entries {
		instance, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok {
			continue
		}
		lock, err := process.TryLock(lockFile(instance))
		if lock != nil {
			swept = append(swept, wiring.Prefix(instance))
			err = sweepInstance(ctx, instance, lock)
		}
		problems = append(problems, err)
	}
	return swept, errors.Join(problems...)
}

// CheckMachine returns the reasons why this machine cannot run a number of real nodes. dir is the directory of the cluster.
func CheckMachine(ctx context.Context, instance, dir string, nodes int) []error {
	problems := vm.Check(DisksDir(dir), nodes)
	if os.Geteuid() != 0 {
		return problems // a network can only be tried as root
	}
	if err := netns.Check(ctx, instance, ""); err != nil {
		problems = append(problems, err)
	}
	return problems
}
