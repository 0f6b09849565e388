package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRealRefused checks that each missing requirement of real nodes is one line of error that says what to do. The error
// comes before anything starts, and offers simulated nodes.
func TestRealRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes away what only root has")
	}
	for _, program := range []string{"containerd", "runc", "nft", "ip", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("real nodes need %s: %v", program, err)
		}
	}
	if err := os.Chmod(programs, 0o755); err != nil { // for another user
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		less func(t *testing.T, cmd *exec.Cmd) // takes something away
		want []string                          // in one line
	}{
		"another user": {nil, func(_ *testing.T, cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}, []string{"not root", "run as root"}},
		"without nft": {nil, func(t *testing.T, cmd *exec.Cmd) {
			t.Helper()
			cmd.Env = append(cmd.Environ(), "PATH="+pathWithout(t, "nft"))
		}, []string{"programs are missing", "install nftables"}},
		"without two programs": {nil, func(t *testing.T, cmd *exec.Cmd) {
			t.Helper()
			cmd.Env = append(cmd.Environ(), "PATH="+pathWithout(t, "containerd", "runc"))
		}, []string{"programs are missing", "install containerd runc"}},
		"nftables that cannot": {nil, func(t *testing.T, cmd *exec.Cmd) {
			t.Helper()
			path := pathWithout(t, "nft")
			write(t, filepath.Join(path, "nft"), "#!/bin/sh\necho 'Error: Could not process rule: Operation not supported' >&2\nexit 1\n")
			if err := os.Chmod(filepath.Join(path, "nft"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Environ(), "PATH="+path)
		}, []string{"the kernel refuses nftables", "Operation not supported"}},
		"no cgroups": {nil, func(_ *testing.T, cmd *exec.Cmd) {
			behind(cmd, "unshare", "--mount", "sh", "-c", `umount -l /sys/fs/cgroup && exec "$@"`, "sh")
		}, []string{"no cgroup", "mount them at /sys/fs/cgroup"}},
		"little memory": {[]string{"--nodes", "1000"}, func(*testing.T, *exec.Cmd) {},
			[]string{"MB of memory are free, 1000 machines need about", "start fewer"}},
		"addresses in use": {nil, func(t *testing.T, cmd *exec.Cmd) {
			t.Helper()
			name := fmt.Sprintf("kaz-refused-%d", os.Getpid())
			must(t, "ip", "netns", "add", name)
			t.Cleanup(func() { must(t, "ip", "netns", "delete", name) })
			must(t, "ip", "-n", name, "link", "add", "taken", "type", "veth", "peer", "name", "end")
			must(t, "ip", "-n", name, "link", "set", "taken", "up")
			must(t, "ip", "-n", name, "link", "set", "end", "up")
			must(t, "ip", "-n", name, "route", "add", "198.18.4.0/24", "dev", "taken")
			behind(cmd, "nsenter", "--net=/run/netns/"+name)
		}, []string{"198.18.0.0/15", "in use on this machine", "198.18.4.0/24 by taken", "remove it"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openDir(t)
			cmd := exec.CommandContext(t.Context(), kaz(),
				append([]string{"local", "up", "--nodes-kind", "real", "--dir", dir}, c.args...)...)
			c.less(t, cmd)
			said, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("it ended well:\n%s", said)
			}
			found := false
			for line := range strings.Lines(string(said)) {
				found = found || containsAll(line, c.want)
			}
			if !found || !strings.Contains(string(said), "--nodes-kind hollow simulates nodes") || bytes.Contains(said, []byte("etcd")) {
				t.Errorf("want one line with %q, an offer of simulated nodes, and nothing started:\n%s", c.want, said)
			}
			nothingRuns(t, dir, time.Minute)
		})
	}
	t.Run("without a request", func(t *testing.T) {
		cmd := exec.Command(kaz(), "local", "up", "--dir", openDir(t))
		cmd.Env = append(cmd.Environ(), "PATH="+pathWithout(t, "nft"))
		up := start(t, cmd)
		up.says("nodes are hollow", time.Minute)
		up.says("install nftables", time.Minute)
	})
}

func containsAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// openDir is a directory for a cluster that every user may write to.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777} {
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "kaz")
}

// pathWithout is a PATH with all programs of this machine's but some.
func pathWithout(t *testing.T, missing ...string) string {
	t.Helper()
	dir := t.TempDir()
	path, err := exec.Command("sh", "-c", `printf %s "$PATH"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range filepath.SplitList(string(path)) {
		entries, err := os.ReadDir(from)
		if err != nil {
			continue // as a shell does
		}
		for _, e := range entries {
			// The first one of a name is the one that counts.
			if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	for _, m := range missing {
		if err := os.Remove(filepath.Join(dir, m)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// behind makes a command run by another program.
func behind(cmd *exec.Cmd, program ...string) {
	path, err := exec.LookPath(program[0])
	if err != nil {
		cmd.Err = err
		return
	}
	cmd.Args = append(program, cmd.Args...)
	cmd.Path = path
}

func must(t *testing.T, program string, args ...string) {
	t.Helper()
	// Also in a cleanup, when the test's context has ended.
	if said, err := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, said)
	}
}
