package netns_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"kaz/internal/localazure/plane/fabric/netns"
)

// ownRun is the argument of the process that has its own /run.
const ownRun = "own-run"

// Namespaces of `ip netns add` beside the namespaces of kaz hide none of them.
func TestNamespacesBesideThoseOfIP(t *testing.T) {
	if flag.Arg(0) == ownRun {
		besideIP(t)
		return
	}
	made(t) // which skips the test where there are no namespaces
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", ownRun)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// besideIP runs in a mount namespace where /run/netns does not exist yet, as after the boot of a computer.
func besideIP(t *testing.T) {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	const before, after, foreign = "kazn-before", "kazn-after", "kazn-foreign"
	// Other clusters of this computer remove namespaces meanwhile, and their mounts vanish here too. Only the mounts of this test count.
	mounts := func() int {
		text, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, name := range []string{"", "/" + before, "/" + after, "/" + foreign} {
			found += strings.Count(string(text), " "+netns.Dir+name+" ")
		}
		return found
	}
	had := mounts()
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	if err := netns.Create(before); err != nil {
		t.Fatal(err)
	}
	ip("netns", "add", foreign)
	if err := netns.Create(after); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{before, after, foreign} {
		if err := netns.Batch(t.Context(), name, "link set lo up"); err != nil {
			t.Error(err)
		}
	}
	ip("netns", "exec", before, "true")
	for _, name := range []string{before, after} {
		if err := netns.Remove(name); err != nil {
			t.Error(err)
		}
		if err := netns.Create(name); err != nil { // as a machine that boots again
			t.Error(err)
		}
		ip("netns", "delete", name)
	}
	ip("netns", "delete", foreign)
	if has := mounts(); has != had+1 { // that of the directory
		t.Errorf("%d mounts, then %d", had, has)
	}
}
