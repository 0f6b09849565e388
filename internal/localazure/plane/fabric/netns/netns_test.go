package netns_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

func TestPathOfNames(t *testing.T) {
	for name, want := range map[string]string{"": "", "kaz-x": netns.Dir + "/kaz-x", "/proc/1/ns/net": "/proc/1/ns/net"} {
		if got := netns.Path(name); got != want {
			t.Errorf("path of %q: %q, want %q", name, got, want)
		}
	}
}

// The error for a missing namespace names it.
func TestMissingNamespace(t *testing.T) {
	err := netns.Do("kaz-missing", func() error { return nil })
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "kaz-missing") {
		t.Errorf("error %v", err)
	}
}

func TestCheckWithoutRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this is about other users than root")
	}
	if err := netns.Check(t.Context(), "user", ""); err == nil || !strings.Contains(err.Error(), "need root") {
		t.Errorf("error %v", err)
	}
}

// Lines after a failed line are executed, and the error names the failed one.
func TestBatchAfterFailedLine(t *testing.T) {
	name := made(t)
	err := netns.Batch(t.Context(), name, "link set lo up", "addr add 10.0.0.1/32 dev nothing", "addr add 10.0.0.2/32 dev lo")
	if err == nil || !strings.Contains(err.Error(), "10.0.0.1/32 dev nothing") || strings.Contains(err.Error(), "10.0.0.2") {
		t.Errorf("error %v", err)
	}
	text, err := netns.Run(t.Context(), name, "", "ip", "-o", "-4", "addr", "show", "dev", "lo")
	if err != nil || !strings.Contains(text, "10.0.0.2") {
		t.Errorf("addresses %q %v", text, err)
	}
}

// Apply repeats what failed, and removes what is no longer wanted.
func TestApplyAfterFailure(t *testing.T) {
	name := made(t)
	var k netns.Kernel
	prefix := wiring.Prefix("again")
	t.Cleanup(func() {
		if err := netns.Sweep(context.WithoutCancel(t.Context()), "again", name); err != nil {
			t.Error(err)
		}
	})
	net := func(device string) wiring.Net {
		docs := wiring.NewDocuments()
		n := wiring.Compile(docs, wiring.State{Instance: "again", Outside: netns.Path(name)})
		for i := range n.Namespaces {
			if !n.Namespaces[i].Own {
				n.Namespaces[i].Addresses = append(n.Namespaces[i].Addresses,
					wiring.Address{Device: device, Prefix: n.Namespaces[i].Addresses[0].Prefix})
			}
		}
		return n
	}
	if err := k.Apply(t.Context(), net("later")); err == nil || !strings.Contains(err.Error(), "later") {
		t.Fatalf("error %v, want one about the device", err)
	}
	if err := netns.Batch(t.Context(), name, "link add name later type veth peer name end"); err != nil {
		t.Fatal(err)
	}
	if err := k.Apply(t.Context(), net("later")); err != nil {
		t.Fatal(err)
	}
	show := func() string {
		text, err := netns.Run(t.Context(), name, "", "ip", "-o", "-4", "addr")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if text := show(); !strings.Contains(text, "later") || !strings.Contains(text, prefix) {
		t.Errorf("addresses %q", text)
	}
	if err := k.Apply(t.Context(), net(prefix)); err != nil {
		t.Fatal(err)
	}
	if text := show(); strings.Contains(text, "later") {
		t.Errorf("addresses %q", text)
	}
}

// made returns an empty namespace.
func made(t *testing.T) string {
	t.Helper()
	if err := netns.Check(t.Context(), "nstest", ""); err != nil && !strings.Contains(err.Error(), "are in use on this machine") {
		t.Skipf("namespaces are not tested here: %v", err)
	}
	name := "kazn-" + strings.ToLower(t.Name())
	if err := netns.Create(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Remove(name); err != nil {
			t.Error(err)
		}
	})
	return name
}
