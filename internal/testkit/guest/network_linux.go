package guest

import (
	"context"
	"fmt"

	"kaz/internal/localazure/plane/fabric/netns"
)

// The link between host and guest. Each is in a network namespace of its own, so links with the same addresses do not meet.
const (
	HostAddress  = "10.77.0.1"
	Address      = "10.77.0.2" // of the guest
	prefixLength = "/24"
	device       = "tap0" // the host's end
)

// Link makes the host's end of the link in the network namespace of the caller.
func Link(ctx context.Context) error {
	err := netns.Batch(ctx, "", "link set lo up", "tuntap add mode tap name "+device,
		"address add "+HostAddress+prefixLength+" dev "+device, "link set "+device+" up")
	if err != nil {
		return fmt.Errorf("link to a guest: %w", err)
	}
	return nil
}
