package windows

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHost checks what Windows is asked for without PowerShell and without a disk.
func TestHost(t *testing.T) {
	if total, available, err := (host{}).Usage(t.TempDir()); err != nil || total <= 0 || available <= 0 || available > total {
		t.Errorf("%d bytes, %d available, %v", total, available, err)
	}
	if have := (host{}).Path(`/var/lib/kubelet`); have != `c:\var\lib\kubelet` {
		t.Errorf("path %q", have)
	}
}

// TestLinks checks that a link is made, seen and removed.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "pod", "mount")
	if err := os.Mkdir(source, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := s.Bind(source, target, nil); err != nil {
		t.Fatal(err)
	}
	if mounted, err := s.MountedWell(target); !mounted || err != nil {
		t.Errorf("the link is no link: %v", err)
	}
	if err := s.Unmount(t.Context(), target); err != nil {
		t.Error(err)
	}
	if mounted, err := s.Mounted(target); mounted || err != nil {
		t.Errorf("the link is still there: %v", err)
	}
}
