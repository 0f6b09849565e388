package workload_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/cluster/workload"
)

// TestDialer checks that a connection is made although the load balancer sends the first attempts to a dead member. If no
// member answers, the error comes in time.
func TestDialer(t *testing.T) {
	dead := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	refused := func(context.Context) error { return syscall.ECONNREFUSED }
	answers := func(context.Context) error { return nil }
	missing := &net.DNSError{Name: "api", IsNotFound: true}
	unknown := func(context.Context) error { return missing }
	for _, test := range []struct {
		name     string
		attempts []func(context.Context) error // the last one repeats
		want     error
		took     time.Duration
		canceled bool
	}{
		{name: "at once", attempts: []func(context.Context) error{answers}},
		{name: "a dead member twice", attempts: []func(context.Context) error{dead, dead, answers}, took: 8 * time.Second},
		{name: "a member that starts", attempts: []func(context.Context) error{refused, refused, answers}, took: 2 * time.Second},
		{name: "no member", attempts: []func(context.Context) error{dead}, want: context.DeadlineExceeded, took: 20 * time.Second},
		{name: "none listens", attempts: []func(context.Context) error{refused}, want: syscall.ECONNREFUSED, took: 20 * time.Second},
		{name: "no such name", attempts: []func(context.Context) error{unknown}, want: missing},
		{name: "the command ends", attempts: []func(context.Context) error{dead}, canceled: true,
			want: context.Canceled, took: 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made, mine := 0, &net.TCPConn{}
				d := workload.Dialer{Try: 3 * time.Second, All: 20 * time.Second, Between: time.Second,
					Once: func(ctx context.Context, network, address string) (net.Conn, error) {
						if network != "tcp" || address != "api:6443" {
							t.Errorf("dials %s %s", network, address)
						}
						attempt := test.attempts[min(made, len(test.attempts)-1)]
						made++
						if err := attempt(ctx); err != nil {
							return nil, err
						}
						return mine, nil
					}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.canceled {
					time.AfterFunc(test.took, cancel)
				}
				began := time.Now()
				got, err := d.DialContext(ctx, "tcp", "api:6443")
				if !errors.Is(err, test.want) || test.want == nil && got != mine {
					t.Errorf("got %v, %v", got, err)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
			})
		})
	}
}
