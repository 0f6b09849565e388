package process

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Run runs a command and waits for its end. The end of the command's context kills the command and its children. The end of
// this program kills the command.
func Run(cmd *exec.Cmd) error {
	// The parent-death signal belongs to the thread, which must not end before the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = attributes()
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGKILL) }
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}
