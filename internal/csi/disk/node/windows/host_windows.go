package windows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	syswindows "golang.org/x/sys/windows"
	mountutils "k8s.io/mount-utils"
)

// Open returns this machine.
func Open() (*System, error) { return New(host{}, mountutils.New("")), nil }

type host struct{}

// Run runs a script in Windows PowerShell, which all versions of Windows have.
func (host) Run(ctx context.Context, script string, variables map[string]string) ([]byte, error) {
	const end = 10 * time.Second // for PowerShell to end after ctx
	cmd := exec.CommandContext(ctx, "powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script)
	cmd.WaitDelay = end
	cmd.Env = os.Environ()
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	output, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("powershell: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return output, err
}

// Read reads a part of a disk.
func (host) Read(disk int, offset int64, data []byte) error {
	f, err := os.Open(fmt.Sprintf(`\\.\PhysicalDrive%d`, disk))
	if err != nil {
		return err
	}
	_, err = f.ReadAt(data, offset)
	return errors.Join(err, f.Close())
}

// Usage returns the bytes of the volume at a path.
func (host) Usage(path string) (total, available int64, err error) {
	name, err := syswindows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var free, all, allFree uint64
	err = syswindows.GetDiskFreeSpaceEx(name, &free, &all, &allFree)
	return int64(all), int64(free), err
}

// Path returns a path with backslashes and its drive, which is C: unless the path names one.
func (host) Path(path string) string { return mountutils.NormalizeWindowsPath(path) }
