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

// cgroupRoot is where the kernel's cgroup hierarchies are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the mounted cgroup hierarchies: one of version 2, or one for each controller of version 1.
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

// cgroup is a machine's place in the hierarchies.
type cgroup struct {
	roots []string
	path  string
}

// system is the cgroup of what runs in a machine beside the pods; in version 2 a cgroup that has children cannot have
// processes.
const system = "system"

// enterCgroup makes a machine's cgroups and puts this process, and so all that it starts, into them.
func enterCgroup(path string) (*cgroup, error) {
	version, roots, err := hierarchies()
	if err != nil {
		return nil, err
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

// delegate gives the cgroups on the way to path the controllers that their parents have.
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

// inherit fills in what version 1 wants to have said before a process can enter: the processors and memory nodes.
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

// everywhere adds to hierarchies of version 1 the one of version 2 that may be beside them: software in a machine makes
// cgroups there too.
func everywhere(roots []string) []string {
	var s unix.Statfs_t
	beside := filepath.Join(cgroupRoot, "unified")
	if unix.Statfs(beside, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC {
		return append(slices.Clone(roots), beside)
	}
	return roots
}

// leave takes this process out of the machine's cgroups and removes them.
func (g *cgroup) leave() error {
	var problems []error
	for _, root := range everywhere(g.roots) {
		if _, err := os.Stat(filepath.Join(root, g.path)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		problems = append(problems, err, removeCgroup(filepath.Join(root, g.path)))
	}
	return errors.Join(problems...)
}

// removeCgroup ends what is left in a cgroup and its children and removes them.
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
	// A process that was just killed leaves its cgroup a moment later, and there is nothing to wait on.
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

// RemoveCgroups ends and removes all cgroups below a top one, which a crash may have left.
func RemoveCgroups(top string) error {
	_, roots, err := hierarchies()
	if err != nil {
		return nil // then there is none
	}
	var problems []error
	for _, root := range everywhere(roots) {
		problems = append(problems, removeCgroup(filepath.Join(root, top)))
	}
	return errors.Join(problems...)
}
