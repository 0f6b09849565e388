package service_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// The zones of the region are asked for when there is a Service to serve, and not before.
func TestZonesAreAskedForWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		c := config()
		c.LoadBalancer.Zones = nil
		var asked atomic.Int32
		w.startWithZones(c, func(context.Context) ([]string, error) {
			asked.Add(1)
			return []string{"1", "2"}, nil
		})
		w.settle()
		if asked.Load() > 0 {
			t.Error("asked for without a Service")
		}
		w.create(w.newService("web", 80))
		w.served("web")
		ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
		if len(ips) != 1 || !slices.Equal(ips[0].Zones, []string{"1", "2"}) {
			t.Errorf("public IPs %+v", ips)
		}
	})
}

// startWithZones runs a controller that asks for zones until the test ends.
func (w *serviceCluster) startWithZones(c service.Config, zones func(context.Context) ([]string, error)) {
	w.t.Helper()
	w.startAs(c, func(d *service.Deps) { d.Zones = zones })
}

// While the zones are not known, no new address is made, because it would never get zones. Services that need no
// zones are served, and the others when the zones are known.
func TestNewAddressesWaitForZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		c := config()
		stop := w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		c.LoadBalancer.Zones = nil
		var known atomic.Bool
		w.startWithZones(c, func(context.Context) ([]string, error) {
			if !known.Load() {
				return nil, &azure.Error{Kind: azure.Unavailable, Status: 503, Code: "ServerTimeout"}
			}
			return []string{"1", "2"}, nil
		})
		w.settle()
		given := w.newService("given", 82)
		annotated("pip-name", "mine")(given)
		inner := w.newService("inner", 83)
		annotated("load-balancer-internal", "true")(inner)
		for _, s := range []*corev1.Service{w.newService("new", 81), given, inner} {
			w.create(s)
		}
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 })
		w.served("given")
		w.settle()
		lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
		if !slices.ContainsFunc(lb.Properties.LoadBalancingRules,
			func(r azure.Child[network.LoadBalancingRule]) bool { return r.Properties.FrontendPort == 8080 }) {
			t.Error("a Service that needs no zones waits for them")
		}
		for _, name := range []string{"new", "inner"} {
			if w.address(name) != "" {
				t.Errorf("%s has an address without zones", name)
			}
			if reported := w.events.list(name); !slices.ContainsFunc(reported, func(e string) bool {
				return strings.HasPrefix(e, "SyncLoadBalancerFailed") && strings.Contains(e, "zones") &&
					strings.Contains(e, "ServerTimeout")
			}) {
				t.Errorf("%s got %q", name, reported)
			}
		}
		known.Store(true)
		w.allServed([]string{"new", "inner"})
		for _, ip := range testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses) {
			if strings.HasPrefix(ip.Name, testkit.ClusterName+"-a") && len(ip.Zones) < 2 {
				t.Errorf("public IP %s has the zones %q", ip.Name, ip.Zones)
			}
		}
		internal := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer+"-internal")
		for _, fe := range internal.Properties.FrontendIPConfigurations {
			if !slices.Equal(fe.Zones, []string{"1", "2"}) {
				t.Errorf("frontend %s has the zones %q", fe.Name, fe.Zones)
			}
		}
	})
}

// A Service that waits for the zones is not served a second time at once: another read of Azure does not show them.
func TestWaitingForZonesIsNoReasonToReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		c := config()
		c.LoadBalancer.Zones = nil
		var asked atomic.Int32
		w.startWithZones(c, func(context.Context) ([]string, error) {
			asked.Add(1)
			return nil, &azure.Error{Kind: azure.Unavailable, Status: 503, Code: "ServerTimeout"}
		})
		w.settle()
		asked.Store(0)
		w.create(w.newService("new", 81))
		<-time.After(4 * time.Second) // the first repetition is after 5 s
		if n := asked.Load(); n != 2 {
			t.Errorf("the zones were asked for %d times, want 2: for the address, and for the load balancer", n)
		}
	})
}
