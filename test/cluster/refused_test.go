package cluster_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRefused checks that invalid options are rejected before anything starts, with an error that
// names the option, the value and what is allowed.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ args, says []string }{
		"no nodes":       {[]string{"--nodes", "0"}, []string{"--nodes 0", "at least 1"}},
		"negative nodes": {[]string{"--nodes=-1"}, []string{"--nodes -1", "1 to 1000"}},
		"too many nodes": {[]string{"--nodes", "1001"}, []string{"--nodes 1001", "1 to 1000"}},
		"no scale sets":  {[]string{"--scale-sets", "0"}, []string{"--scale-sets 0", "at least 1"}},
		"nodes in words": {[]string{"--nodes", "three"}, []string{"--nodes", "three"}},
		"no such part": {[]string{"--without", "nonsense"},
			[]string{"--without nonsense", "cloud-controller-manager", "kube-scheduler"}},
		"latency in words": {[]string{"--latency", "soon"}, []string{"--latency soon", "azure, off or a factor"}},
		"throttle":         {[]string{"--throttle", "maybe"}, []string{"--throttle maybe", "azure or off"}},
		"no such flag":     {[]string{"--nods", "3"}, []string{"--nods"}},
		"no such argument": {[]string{"please"}, []string{"please"}},
		"all at once": {[]string{"--nodes", "1001", "--without", "nonsense", "--latency", "soon"},
			[]string{"--nodes 1001", "--without nonsense", "--latency soon"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, detached := range [][]string{nil, {"--detach"}} {
				dir := newDir(t)
				args := append(append([]string{"local", "up", "--dir", dir}, detached...), c.args...)
				refuses(t, exec.CommandContext(t.Context(), kaz(), args...), c.says...)
				if _, err := os.Stat(filepath.Join(dir, "azure-state.json")); err == nil {
					t.Error("something was begun all the same")
				}
			}
		})
	}
}

// TestStateRefused checks that an unreadable state is rejected and kept.
func TestStateRefused(t *testing.T) {
	dir := newDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, corrupt := filepath.Join(dir, "azure-state.json"), []byte(`{"resources": [{"id": "/subscr`)
	if err := os.WriteFile(file, corrupt, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "up", "--dir", dir), file, "the file is unchanged")
	if now := readFile(t, file); !bytes.Equal(now, corrupt) {
		t.Errorf("the file is %q now", now)
	}
	if left := running(t, dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

// TestPortTaken checks that the error names a port in use.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	for _, flag := range []string{"--address", "--http-address", "--proxy-address"} {
		refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "azure", flag, address), flag, address, "taken")
	}
}
