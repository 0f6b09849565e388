// Package freeport chooses TCP ports for servers that another process opens later.
//
// The kernel gives outgoing connections ports from a range of its own. If a server's port is of that range, it can be in use when the
// server opens it. The ports of this package are below that range, and below the node ports of Kubernetes.
//
// Layer L4.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// lowest and highest are the ports to choose from. By default the kernel's range begins at 32768, the range of node ports at 30000.
const lowest, highest = 12000, 29999

// Choose returns each address (IP:PORT) if it is free, else one with another port of the same IP. Port 0 is any. The caller's servers are
// to open them soon.
func Choose(wanted ...string) ([]string, error) {
	chosen := make([]string, 0, len(wanted))
	for _, address := range wanted {
		l, err := listen(address)
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are open until the last one is chosen, so that none is chosen twice
		chosen = append(chosen, l.Addr().String())
	}
	return chosen, nil
}

func listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port != "0" {
		if l, err := net.Listen("tcp", address); err == nil {
			return l, nil
		}
	}
	for range highest - lowest {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(lowest+rand.IntN(highest-lowest+1)))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s: %w", host, err)
}
