package cluster_test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/testkit"
)

// dualStack are the options of a cluster with both families.
func dualStack() []string { return []string{"--ip-families", "IPv4,IPv6"} }

// The ranges of such a cluster.
var (
	subnet4, subnet6 = netip.MustParsePrefix("10.240.0.0/16"), netip.MustParsePrefix("fd00:10:240::/64")
	pods4, pods6     = netip.MustParsePrefix("10.244.0.0/14"), netip.MustParsePrefix("fd00:10:244::/48")
	public4, public6 = netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("2001:db8::/32")
)

// TestDualStack starts a cluster with nodes, pods and Services that have addresses of both
// families, and continues it.
func TestDualStack(t *testing.T) {
	dir := newDir(t)
	c := startUp(t, dir, append(dualStack(), "--nodes", "2")...)
	c.routed()
	before := testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)
	for _, part := range []struct {
		name string
		test func(*cluster)
	}{
		{"nodes and pods have both", bothOnNodes},
		{"a Service gets what it asks for", bothOnServices},
		{"IPv6 waits for IPv4", sixWaits},
		{"an internal Service", bothInside},
		{"source ranges", bothRanges},
		{"the manifests of the docs", bothExamples},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(c.in(t)) })
	}
	if d := cmp.Diff(before, testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)); d != "" {
		t.Errorf("Azure is not as it was before the Services (-before +after):\n%s", d)
	}
	c.exposeTo("kept", "RequireDualStack", "IPv4", "IPv6")
	had := c.publicAddresses("kept", public4, public6)
	c.grow(3)
	c.poolsHave(3)
	c.routed()
	c.stop(interrupt)
	refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "up", "--dir", dir, "--ip-families", "IPv4"), "--ip-families IPv4", dir,
		"IPv4,IPv6")
	c = startDetached(t, dir)
	c.routed()
	if has := c.publicAddresses("kept", public4, public6); !slices.Equal(had, has) {
		t.Errorf("the Service has the addresses %v, it had %v", has, had)
	}
}

// bothOnNodes checks that every node has an address and a pod CIDR of each family, and its pods an
// address in each.
func bothOnNodes(c *cluster) {
	c.must(deployment, "apply", "-f", "-")
	c.must("", "rollout", "status", "deployment/web", "--timeout=1m")
	cidrs := map[string][]netip.Prefix{}
	for _, n := range c.nodes() {
		for i, within := range []netip.Prefix{subnet4, subnet6} {
			if a, err := netip.ParseAddr(internalIP(n, i == 1)); err != nil || !within.Contains(a) {
				c.t.Errorf("node %s has the addresses %v, want one in %s", n.Name, n.Status.Addresses, within)
			}
		}
		for _, text := range n.Spec.PodCIDRs {
			cidrs[n.Name] = append(cidrs[n.Name], netip.MustParsePrefix(text))
		}
		if got := cidrs[n.Name]; len(got) != 2 || got[0].Bits() != 24 || !pods4.Overlaps(got[0]) || got[1].Bits() != 64 ||
			!pods6.Overlaps(got[1]) {
			c.t.Errorf("node %s has the pod CIDRs %v, want a /24 of %s and a /64 of %s", n.Name, got, pods4, pods6)
		}
	}
	for _, p := range get[corev1.PodList](c, "pods", "-l", "app=web").Items {
		ranges := cidrs[p.Spec.NodeName]
		if len(p.Status.PodIPs) != len(ranges) {
			c.t.Errorf("pod %s has the addresses %v", p.Name, p.Status.PodIPs)
			continue
		}
		for i, ip := range p.Status.PodIPs {
			if !ranges[i].Contains(netip.MustParseAddr(ip.IP)) {
				c.t.Errorf("pod %s has the address %s, its node has %s", p.Name, ip.IP, ranges[i])
			}
		}
	}
	c.must("", "delete", "deployment", "web", "--timeout=1m")
}

// exposeTo makes a Service for some families.
func (c *cluster) exposeTo(name, policy string, families ...string) {
	c.t.Helper()
	c.must(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {type: LoadBalancer, ipFamilyPolicy: %s, ipFamilies: [%s], selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}`,
		name, policy, strings.Join(families, ", ")), "apply", "-f", "-")
}

// publicAddresses waits until a Service has exactly one address in each range, and returns them.
func (c *cluster) publicAddresses(name string, within ...netip.Prefix) []netip.Addr {
	c.t.Helper()
	var all []netip.Addr
	wait(c.t, addressWithin, "the addresses of Service "+name, func() string {
		all = nil
		for _, i := range c.service(name).Status.LoadBalancer.Ingress {
			all = append(all, netip.MustParseAddr(i.IP))
		}
		if !slices.EqualFunc(within, all, netip.Prefix.Contains) {
			return fmt.Sprintf("%v, want one in each of %v", all, within)
		}
		return ""
	})
	return all
}

// bothOnServices adds and removes one family of a Service at a time. The address of the other family
// does not change.
func bothOnServices(c *cluster) {
	c.exposeTo("both", "RequireDualStack", "IPv4", "IPv6")
	both := c.publicAddresses("both", public4, public6)
	// Azure requires an IPv4 frontend next to IPv6 frontends, and the Service "both" has one.
	c.exposeTo("six", "SingleStack", "IPv6")
	six := c.publicAddresses("six", public6)
	if six[0] == both[1] {
		c.t.Errorf("two Services have the address %s", six)
	}
	c.familiesOfRules(map[string]int{"IPv4": 1, "IPv6": 2})
	c.poolsHave(2)
	c.must("", "patch", "service", "both", "-p", `{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}}`)
	if left := c.publicAddresses("both", public4); left[0] != both[0] {
		c.t.Errorf("without IPv6 the Service has %s, it had %s", left[0], both[0])
	}
	c.familiesOfRules(map[string]int{"IPv4": 1, "IPv6": 1})
	c.must("", "patch", "service", "both", "-p", `{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}}`)
	if again := c.publicAddresses("both", public4, public6); again[0] != both[0] {
		c.t.Errorf("with IPv6 again the Service has %s, it had %s", again[0], both[0])
	}
	c.removeAll("six", "both")
}

// sixWaits checks that an IPv6-only Service reports that it needs an IPv4 frontend, and gets its
// address together with the first Service with IPv4.
func sixWaits(c *cluster) {
	c.exposeTo("six", "SingleStack", "IPv6")
	c.needsFour("six")
	c.exposeTo("four", "SingleStack", "IPv4")
	c.publicAddresses("four", public4)
	c.publicAddresses("six", public6)
	c.must("", "delete", "service", "four", "--wait=false")
	c.needsFour("four")
	c.removeAll("six")
	c.must("", "wait", "service/four", "--for=delete", "--timeout="+addressWithin.String())
}

// needsFour waits for an event about the missing IPv4 frontend.
func (c *cluster) needsFour(service string) {
	c.t.Helper()
	wait(c.t, time.Minute, "an event that says what is missing", func() string {
		events := c.events("Service", service, "SyncLoadBalancerFailed")
		for _, e := range events {
			if strings.Contains(e.Message, "IPv6 frontends alone") {
				return ""
			}
		}
		return fmt.Sprintf("events: %+v", events)
	})
}

// familiesOfRules waits until the load balancer has so many rules of each family.
func (c *cluster) familiesOfRules(want map[string]int) {
	c.t.Helper()
	wait(c.t, addressWithin, "rules of each family", func() string {
		lb := read[network.LoadBalancer](c, c.group().Resource(network.LoadBalancers, "kaz"))
		family := map[string]string{}
		for _, f := range lb.Properties.FrontendIPConfigurations {
			ip := read[network.PublicIPAddress](c, f.Properties.PublicIPAddress.ID)
			family[f.ID.Key()] = ip.Properties.PublicIPAddressVersion
		}
		got := map[string]int{}
		for _, r := range lb.Properties.LoadBalancingRules {
			got[family[r.Properties.FrontendIPConfiguration.ID.Key()]]++
		}
		return cmp.Diff(want, got)
	})
}

// poolsHave: each family has a pool, with so many members.
func (c *cluster) poolsHave(members int) {
	c.t.Helper()
	c.members(members)
	if pools := read[network.LoadBalancer](c,
		c.group().Resource(network.LoadBalancers, "kaz")).Properties.BackendAddressPools; len(pools) != 2 {
		c.t.Errorf("%d pools, want one for each family", len(pools))
	}
}

// bothInside: an internal Service has addresses of the subnet.
func bothInside(c *cluster) {
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: inside, annotations: {service.beta.kubernetes.io/azure-load-balancer-internal: "true"}},
		spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80}]}}`, "apply", "-f", "-")
	c.publicAddresses("inside", subnet4, subnet6)
	c.removeAll("inside")
}

// bothRanges: each range is for the address of its family.
func bothRanges(c *cluster) {
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: office},
		spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, loadBalancerSourceRanges: [203.0.113.0/24, "2001:db8:1::/64"], selector: {app: web}, ports: [{port: 80}]}}`, "apply", "-f", "-")
	addresses := c.publicAddresses("office", public4, public6)
	for i, want := range []string{"203.0.113.0/24", "2001:db8:1::/64"} {
		wait(c.t, addressWithin, "sources allowed to reach "+addresses[i].String(), func() string {
			return cmp.Diff([]string{want}, c.allowed(addresses[i].String()))
		})
	}
	c.removeAll("office")
}

// bothExamples are the manifests that [examples] cannot play.
func bothExamples(c *cluster) {
	played := 0
	for _, e := range testkit.Examples(c.t, filepath.Join("..", "..", "docs", "example-manifests", "service")) {
		if !e.DualStack() {
			continue
		}
		played++
		c.must(e.Manifest, "apply", "-f", "-")
		for _, s := range e.Services {
			c.publicAddresses(s.Name, public4, public6)
		}
		c.t.Run(e.Name, func(t *testing.T) { c.in(t).servedAs(e) })
		for _, s := range e.Services {
			c.removeAll(s.Name)
		}
	}
	if played == 0 {
		c.t.Error("there is no example for both families")
	}
}
