package localcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/localcluster/boot"
	vm "kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/realnodes"
)

// Shell returns a process that runs a command, or a shell without one, in the machine of a node.
func Shell(ctx context.Context, dir, node string, command ...string) (*exec.Cmd, error) {
	if _, err := ReadStatus(dir); err != nil {
		return nil, err
	}
	disks, err := realnodes.Disks(dir)
	if err != nil {
		return nil, err
	}
	if len(disks) == 0 {
		return nil, fmt.Errorf("machine %q: the cluster in %s has no machines; only real nodes are machines", node, dir)
	}
	if !slices.Contains(disks, node) {
		return nil, errUnknown("machine", node, disks, dir)
	}
	if len(command) == 0 {
		command = []string{"/bin/sh", "-i"}
	}
	return vm.Enter(ctx, filepath.Join(realnodes.DisksDir(dir), node), command...)
}

// errUnknown returns an error for a name that is not in a list.
func errUnknown(what, name string, known []string, dir string) error {
	if len(known) == 0 {
		return fmt.Errorf("%s %q: %s has none", what, name, dir)
	}
	return fmt.Errorf("%s %q: want one of %s", what, name, strings.Join(known, ", "))
}

// Logs returns the log files of a component, or of the programs of a node.
func Logs(dir, name string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, errDown(dir)
	}
	components, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		return nil, err
	}
	var known []string
	for _, file := range components {
		component := strings.TrimSuffix(filepath.Base(file), ".log")
		if component == name {
			return []string{file}, nil
		}
		if !realnodes.IsMachine(component) {
			known = append(known, component)
		}
	}
	disks, err := realnodes.Disks(dir)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(disks, name) {
		return nil, errUnknown("log", name, slices.Concat(known, disks), dir)
	}
	var files []string
	// A machine that boots has its own files in upper, and a console.
	for _, pattern := range []string{"var/log/*.log", "upper/var/log/*.log", boot.ConsoleLog} {
		found, err := filepath.Glob(filepath.Join(realnodes.DisksDir(dir), name, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}
