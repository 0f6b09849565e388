package guest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"

	"kaz/internal/emulator/plane/fabric/netns"
)

// device is the host's end of the guest's link.
const device = "tap0"

// networkRange is the addresses of every network of a guest. Each network has a namespace of its own, so they do not meet.
var networkRange = netip.MustParsePrefix("10.77.0.0/24")

var networks atomic.Int32

// Network is a network namespace of the host with the link to one guest. The test runs its servers there.
type Network struct {
	Namespace   string // its name, for package netns
	Host, Guest netip.Addr
}

// NewNetwork makes a network. The caller closes it.
func NewNetwork(ctx context.Context) (*Network, error) {
	host := networkRange.Addr().Next()
	n := &Network{Namespace: fmt.Sprintf("kaz-guest-%d-%d", os.Getpid(), networks.Add(1)), Host: host, Guest: host.Next()}
	if err := netns.Create(n.Namespace); err != nil {
		return nil, &UnavailableError{Reason: err.Error()}
	}
	err := netns.Batch(ctx, n.Namespace, "link set lo up", "tuntap add mode tap name "+device,
		fmt.Sprintf("address add %s dev %s", netip.PrefixFrom(n.Host, networkRange.Bits()), device), "link set "+device+" up")
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close removes the network. Its guest and its servers have ended.
func (n *Network) Close() error { return netns.Remove(n.Namespace) }

// namespace returns the name of the namespace, or "" for the one of this process.
func (n *Network) namespace() string {
	if n == nil {
		return ""
	}
	return n.Namespace
}
