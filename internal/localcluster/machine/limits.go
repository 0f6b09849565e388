package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RaiseLimits raises limits of the kernel that machines share. Each kubelet, systemd and container runtime needs instances of inotify,
// of which the kernel allows root 128 by default. The limits stay raised.
func RaiseLimits() error {
	const instances = 8192
	return raise("/proc/sys/fs/inotify/max_user_instances", instances)
}

// raise writes a number to a file if the number in it is lower.
func raise(file string, least int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	had, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || had >= least {
		return err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(least)), 0o644); err != nil {
		return fmt.Errorf("raise the limit from %d to %d: %w", had, least, err)
	}
	return nil
}
