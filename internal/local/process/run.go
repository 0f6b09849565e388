package process

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Run runs a command to its end. When the context of the command is done, or when this program dies, the command and
// (in the first case) everything it has started are killed.
func Run(cmd *exec.Cmd) error {
	// The parent-death signal belongs to the thread: it must not end while the command runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = attributes()
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGKILL) }
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}
