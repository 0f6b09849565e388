package workload

import (
	"context"
	"errors"
	"net"
	"time"

	"kaz/internal/pause"
)

// Dialer connects to an API server behind a load balancer. When a member of the control plane dies, the load balancer sends connections
// to it until its probes fail. Another attempt may lead to another member.
type Dialer struct {
	// Once makes one attempt.
	Once func(ctx context.Context, network, address string) (net.Conn, error)
	// Try bounds one attempt, and All bounds all.
	Try, All time.Duration
	// Between is the time between two attempts.
	Between time.Duration
}

// DialContext connects. Its error is that of the last attempt. A name that does not exist is not tried again.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	all, done := context.WithTimeout(ctx, d.All)
	defer done()
	for {
		connection, err := d.attempt(all, network, address)
		if err == nil {
			return connection, nil
		}
		missing, ok := errors.AsType[*net.DNSError](err)
		if ok && missing.IsNotFound || pause.For(all, d.Between) != nil {
			return nil, err
		}
	}
}

func (d Dialer) attempt(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, done := context.WithTimeout(ctx, d.Try)
	defer done()
	return d.Once(ctx, network, address)
}
