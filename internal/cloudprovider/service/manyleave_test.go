package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// The deletion of a load balancer takes ten seconds and more. Of many Services that leave it, only the last one waits
// for that with its public IP.
func TestOfManyThatLeaveOneGoesWithTheLoadBalancer(t *testing.T) {
	for name, c := range map[string]struct{ count, before int }{
		"many": {210, 209},
		"few":  {20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1, Seed: 5}, 1)
				w.start(config())
				w.settle()
				names := w.createMany(c.count)
				w.allServed(names)
				w.settle()
				w.Forget()
				for _, name := range names {
					w.remove(name)
				}
				w.allGone(names)
				if began := w.beganBeforeTheBalancerWent(); began != c.before {
					t.Errorf("%d public IPs began to go before the load balancer had gone, want %d", began, c.before)
				}
				if _, there := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer); there {
					t.Error("the load balancer is still there")
				}
				if left := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses); len(left) > 0 {
					t.Errorf("%d public IPs are left", len(left))
				}
			})
		})
	}
}

// beganBeforeTheBalancerWent counts the deletions of public IPs that were asked for before
// the load balancer's was over.
func (w *serviceCluster) beganBeforeTheBalancerWent() int {
	w.t.Helper()
	const goes = 10 * time.Second // by Azure's latency, after the reply
	var went time.Time
	var asked []time.Time
	for _, r := range w.Requests() {
		switch {
		case r.Method != "DELETE":
		case strings.Contains(r.Path, "/loadBalancers/"):
			went = r.At.Add(r.Took + goes)
		case strings.Contains(r.Path, "/publicIPAddresses/"):
			asked = append(asked, r.At)
		}
	}
	before := 0
	for _, at := range asked {
		if at.Before(went) {
			before++
		}
	}
	return before
}
