package localcluster

import (
	"context"
	"fmt"
	"path/filepath"

	"kaz/internal/host/process"
)

// Detach starts `kaz local up` with args in a process of its own, copies its progress to Out, and returns when the cluster
// is up. If ctx ends before that, Detach stops the process.
func Detach(ctx context.Context, o UpOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if owner, running := process.Owner(dir); running {
		return fmt.Errorf("directory %s is %w by process %d (%s); stop it with: kaz local down --dir %s", dir, process.ErrInUse,
			owner.PID, owner.Path, dir)
	}
	return process.Detach(ctx, process.Detached{
		What: "the cluster", Path: o.Program, Args: args, LogFile: filepath.Join(dir, "logs", "up.log"), LogsOutput: true,
		Progress: o.Out, Interrupted: errInterrupted,
		Ready: func(pid int) bool {
			s, err := ReadStatus(dir)
			return err == nil && s.UpPID == pid
		},
	})
}
