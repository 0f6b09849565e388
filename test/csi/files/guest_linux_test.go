// Package files checks file shares with real clients: the kernel's cifs and nfs, in a guest, on servers of the host.
package files

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kaz/internal/testkit/guest"
)

// facts are what the host tells the tests.
type facts struct {
	Dir string // of the host
}

func TestMain(m *testing.M) { os.Exit(guest.Main(m, serve)) }

func serve(ctx context.Context, h *guest.Host) (facts, error) {
	return facts{Dir: h.Dir}, serveAzure(ctx, h)
}

func TestTheKernelIsThatOfTheGuest(t *testing.T) {
	guest.Facts[facts](t)
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cifs", "nfs4"} {
		if !strings.Contains(string(filesystems), want+"\n") {
			t.Errorf("kernel %s has no %s", unix.ByteSliceToString(name.Release[:]), want)
		}
	}
}
