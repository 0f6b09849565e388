package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is the directory of the mounted cgroup hierarchies.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchies returns the mounted cgroup hierarchies: one of version 2, or one for each controller of version 1.
func hierarchies() (version int, roots []string, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &s); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", cgroupRoot, err)
	}
	if s.Type == unix.CGROUP2_SUPER_MAGIC {
		return 2, []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		root := filepath.Join(cgroupRoot, e.Name())
		if unix.Statfs(root, &s) == nil && s.Type == unix.CGROUP_SUPER_MAGIC {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return 0, nil, fmt.Errorf("no cgroup hierarchy is mounted below %s", cgroupRoot)
	}
	return 1, roots, nil
}

// cgroup is the cgroup of a machine in each hierarchy.
type cgroup struct {
	roots []string
	path  string
}

// system is the child cgroup of the processes outside pods. In version 2 a cgroup with children cannot have processes.
const system = "system"

// enterCgroup creates a machine's cgroups and moves this process into them, with the processes that it will start. If
// unified is true and the host has a version 2 hierarchy beside version 1, the machine has a cgroup there, too. In a
// machine, systemd uses it.
func enterCgroup(path string, unified bool) (*cgroup, error) {
	version, roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	if unified {
		roots = withUnified(roots)
	}
	g := &cgroup{roots, path}
	for _, root := range roots {
		own := filepath.Join(root, path, system)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return nil, errors.Join(err, g.leave())
		}
		if version == 2 {
			err = delegate(root, path)
		} else {
			err = inherit(root, filepath.Join(path, system))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		}
		if err != nil {
			return nil, errors.Join(err, g.leave())
		}
	}
	return g, nil
}

// delegate enables the controllers of the root in each cgroup on the way to path.
func delegate(root, path string) error {
	at := root
	for _, name := range append(strings.Split(path, "/"), "") {
		text, err := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
		if err != nil {
			return err
		}
		for c := range strings.FieldsSeq(string(text)) {
			if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
				return fmt.Errorf("controller %s for the children of %s: %w", c, at, err)
			}
		}
		at = filepath.Join(at, name)
	}
	return nil
}

// inherit copies processors and memory nodes from the parents: version 1 requires both before a process can enter.
func inherit(root, path string) error {
	at := root
	for name := range strings.SplitSeq(path, "/") {
		parent := at
		at = filepath.Join(at, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			have, err := os.ReadFile(filepath.Join(at, file))
			if errors.Is(err, fs.ErrNotExist) || len(strings.TrimSpace(string(have))) > 0 {
				continue
			}
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(at, file), value, 0)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// withUnified adds the hierarchy of version 2 that can exist beside the hierarchies of version 1. Programs in a machine create
// cgroups in it too.
func withUnified(roots []string) []string {
	var s unix.Statfs_t
	beside := filepath.Join(cgroupRoot, "unified")
	if unix.Statfs(beside, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC {
		return append(slices.Clone(roots), beside)
	}
	return roots
}

// leave moves this process out of the machine's cgroups and removes them.
func (g *cgroup) leave() error {
	var problems []error
	for _, root := range slices.Compact(slices.Sorted(slices.Values(withUnified(g.roots)))) {
		if _, err := os.Stat(filepath.Join(root, g.path)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		problems = append(problems, err, removeCgroup(filepath.Join(root, g.path)))
	}
	return errors.Join(problems...)
}

// removeCgroup kills the processes of a cgroup and its children, and removes all of them.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// A killed process leaves its cgroup a moment later. The kernel has no event for that.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(began) > 10*time.Second {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// RemoveCgroups kills the processes of a cgroup and its children, and removes all of them, in every hierarchy.
func RemoveCgroups(top string) error {
	_, roots, err := hierarchies()
	if err != nil {
		return nil // without hierarchies no cgroup exists
	}
	var problems []error
	for _, root := range withUnified(roots) {
		problems = append(problems, removeCgroup(filepath.Join(root, top)))
	}
	return errors.Join(problems...)
}
