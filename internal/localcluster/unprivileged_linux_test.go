package localcluster

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kaz/internal/host/process"
)

// TestEngineWithoutRoot checks that --engine tells a user without root what is missing, also if another user's cluster was here.
func TestEngineWithoutRoot(t *testing.T) {
	group, err := process.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close(context.WithoutCancel(t.Context()), stopGrace) })
	loseRoot(t)
	for name, had := range map[string]startRecord{"new": {}, "existing": {NodesKind: NodesBooted, Instance: "a1b2c3"}} {
		c := &cluster{UpOptions: UpOptions{Engine: true}, group: group, progress: newProgress(io.Discard), record: had}
		err := c.choose(t.Context())
		if err == nil || !strings.Contains(err.Error(), "--engine: machines cannot boot here: not root") ||
			strings.Contains(err.Error(), "another kaz process") {
			t.Errorf("%s cluster: %v", name, err)
		}
	}
}

// loseRoot takes root's rights from the thread of a test, until it ends.
func loseRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const keep, nobody = ^uintptr(0), 65534
	runtime.LockOSThread()
	set := func(user uintptr) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, user, keep); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(nobody)
	t.Cleanup(func() {
		set(0)
		runtime.UnlockOSThread()
	})
}

// TestAddressesInUse checks that another local Azure with machines on this machine is named before an image is made.
func TestAddressesInUse(t *testing.T) {
	if os.Geteuid() == 0 {
		elsewhere(t, "link set lo up", "route add 198.18.0.0/16 dev lo")
	}
	o := MachinesOptions{Dir: t.TempDir(), Say: func(line string) { t.Error("said", line) }}
	want := "the addresses 198.18.0.0/15 of the local Azure are in use on this machine"
	if os.Geteuid() != 0 {
		want = "not root"
	}
	_, err := PrepareMachines(t.Context(), o)
	if err == nil || !strings.HasPrefix(err.Error(), "--machines-dir: machines cannot run here: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// elsewhere moves the thread of a test to a network of its own, and runs ip there.
func elsewhere(t *testing.T, commands ...string) {
	t.Helper()
	runtime.LockOSThread() // without an unlock: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if text, err := exec.CommandContext(t.Context(), "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", command, err, text)
		}
	}
}
