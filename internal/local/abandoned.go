package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
	vm "kaz/internal/local/machine"
	"kaz/internal/local/process"
)

// instancesDir has a file for each instance whose real nodes are on this machine, locked
// by its kaz. A file without a lock is that of a kaz which was killed.
const instancesDir = "/run/kaz"

const instanceFile = ".lock"

// hold marks an instance as one that runs, until the lock is removed or this process
// ends. Nil is that another process holds it.
func hold(instance string) (*process.Lock, error) { return process.TryLock(lockOf(instance)) }

func lockOf(instance string) string { return filepath.Join(instancesDir, instance+instanceFile) }

// holdAlone is hold where only who sweeps can hold the instance, which is a matter of a moment.
func holdAlone(ctx context.Context, instance string) (*process.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := process.WaitLock(ctx, lockOf(instance), func() {})
	if err != nil {
		return nil, fmt.Errorf("real nodes of %s, which another kaz has: %w", wiring.Prefix(instance), err)
	}
	return l, nil
}

// sweepInstance removes what is on this machine of an instance that the caller holds,
// and gives it up.
func sweepInstance(ctx context.Context, instance string, held *process.Lock) error {
	if err := errors.Join(netns.Sweep(ctx, instance, ""), vm.RemoveCgroups(wiring.Prefix(instance))); err != nil {
		held.Release() // the file stays for who tries again
		return err
	}
	return held.Remove()
}

// SweepAbandoned removes what every kaz with real nodes that was killed left on this
// machine, whichever directory its cluster has: the public addresses of the local Azure
// are there once, and nobody else would give them up. It returns under which names that
// was. Who may not look finds nothing.
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
		instance, ok := strings.CutSuffix(e.Name(), instanceFile)
		if !ok {
			continue
		}
		held, err := hold(instance)
		if held != nil {
			swept = append(swept, wiring.Prefix(instance))
			err = sweepInstance(ctx, instance, held)
		}
		problems = append(problems, err)
	}
	return swept, errors.Join(problems...)
}
