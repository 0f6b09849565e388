package freeport_test

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kaz/internal/host/freeport"
)

// The kernel gives no outgoing connection a port that was chosen.
func TestKernelDoesNotGiveThem(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skipf("the range of the kernel: %v", err)
	}
	first, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil || first < 32768 {
		t.Skipf("this machine has a range of its own: %s", text)
	}
	chosen, err := freeport.Choose(slices.Repeat([]string{"127.0.0.1:0"}, 3)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range chosen {
		host, text, err := net.SplitHostPort(address)
		if err != nil || host != "127.0.0.1" {
			t.Fatalf("chose %q: %v", address, err)
		}
		if port, err := strconv.Atoi(text); err != nil || port >= 30000 || port < 1024 {
			t.Errorf("chose port %s: %v", text, err)
		}
	}
	slices.Sort(chosen)
	if len(slices.Compact(chosen)) < 3 {
		t.Errorf("chose one twice: %v", chosen)
	}
}

// A free address is kept, and one that is taken is replaced.
func TestWanted(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if got, err := freeport.Choose(address); err != nil || got[0] == address {
		t.Errorf("chose %q for %q, which is taken: %v", got, address, err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := freeport.Choose(address); err != nil || got[0] != address {
		t.Errorf("chose %q, want %q: %v", got, address, err)
	}
}

func TestNoAddress(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1", "192.0.2.1:0", "127.0.0.1:0:0"} {
		if got, err := freeport.Choose(address); err == nil {
			t.Errorf("chose %q for %q", got, address)
		}
	}
}
