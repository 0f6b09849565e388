package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// TestRealDualStack starts a cluster with real nodes and both families, and asks with
// packets of both.
func TestRealDualStack(t *testing.T) {
	needsReal(t)
	before := hostState(t)
	c := startUp(t, newDir(t), append(dualStack(), "--nodes-kind", "real", "--nodes", "2")...)
	c.must(workloads, "apply", "-f", "-")
	c.routed()
	for _, name := range []string{"web", "tools"} {
		c.must("", "rollout", "status", "daemonset/"+name, "--timeout=2m")
	}
	c.must("", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=2m")
	for _, s := range []struct {
		name string
		play func(*cluster)
	}{
		{"pods of different nodes, and the IPv6 route between them", podsAndIPv6Routes},
		{"a Service inside", bothByClusterIP},
		{"the health of a node", healthOfNodes},
		{"an external Service by TCP and UDP", bothByPackets},
		{"a Service with IPv6 alone beside it", sixByPackets},
		{"source ranges", bothRangesByPackets},
		{"an internal load balancer", bothInsideByPackets},
		{"traffic policy Local", bothLocal},
		{"probes where the only pod is", probesBesideThePod},
		{"out of the virtual network", leavingByIPv6},
	} {
		t.Run(s.name, func(t *testing.T) {
			one := c.in(t)
			defer one.removeServices()
			s.play(one)
		})
	}
	c.stop(syscall.SIGTERM)
	for what, had := range before {
		if has := hostState(t)[what]; has != had {
			t.Errorf("%s before:\n%s\nafter:\n%s", what, had, has)
		}
	}
}

// ipv6Of is the IPv6 address of a pod.
func (c *cluster) ipv6Of(p pod) netip.Addr {
	c.t.Helper()
	for _, ip := range get[corev1.Pod](c, "pod", p.name).Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is6() {
			if !pods6.Contains(a) {
				c.t.Errorf("pod %s has the address %s, want one in %s", p.name, a, pods6)
			}
			return a
		}
	}
	c.t.Fatalf("pod %s has no IPv6 address", p.name)
	return netip.Addr{}
}

func urlOf(a netip.Addr, port uint16) string {
	return "http://" + netip.AddrPortFrom(a, port).String() + "/"
}

// podsAndIPv6Routes deletes the route of one family: the pod is then reached by the other family
// only, until the controller restores the route.
func podsAndIPv6Routes(c *cluster) {
	tools, web := c.pods("tools")[0], c.pods("web")[1]
	from, to := c.ipv6Of(tools), c.ipv6Of(web)
	url4, url6 := "http://"+web.ip+":8080/", urlOf(to, 8080)
	got, err := c.askFrom(tools, url6)
	if err != nil || got.pod != web.name || got.client != from {
		c.t.Fatalf("%+v, %v, want pod %s and client %s", got, err, web.name, from)
	}
	// The controller may bring the route back while the pod still asks.
	wait(c.t, machineGone, "the end of the way by IPv6", func() string {
		c.removeRoute(to)
		if got, err := c.askFrom(tools, url6); err == nil {
			return fmt.Sprintf("without a route the pod is reached: %+v", got)
		}
		return ""
	})
	if _, err := c.askFrom(tools, url4); err != nil {
		c.t.Errorf("without the IPv6 route the pod is not reached by IPv4: %v", err)
	}
	took := wait(c.t, routeBack, "the IPv6 route's return", func() string {
		_, err := c.askFrom(tools, url6)
		return reason(err)
	})
	c.t.Logf("the route is back %s after the pod was cut off", short(took))
}

// removeRoute takes the route to an address out of Azure's table.
func (c *cluster) removeRoute(to netip.Addr) {
	c.t.Helper()
	table := c.group().Resource(network.RouteTables, "kaz-routes")
	for _, r := range read[network.RouteTable](c, table).Properties.Routes {
		if netip.MustParsePrefix(r.Properties.AddressPrefix).Contains(to) {
			if err := c.azure.Delete(c.t.Context(), table.Child("routes", r.Name)); err != nil && !azure.IsNotFound(err) {
				c.t.Fatal(err)
			}
		}
	}
}

// bothByClusterIP: pods reach a Service at both addresses, and by its name.
func bothByClusterIP(c *cluster) {
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: inner}, spec: {ipFamilyPolicy: RequireDualStack, selector: {app: web}, `+
		httpPort+`}}`, "apply", "-f", "-")
	targets := []string{"http://inner.default.svc.cluster.local/"}
	for _, ip := range c.service("inner").Spec.ClusterIPs {
		targets = append(targets, urlOf(netip.MustParseAddr(ip), 80))
	}
	if len(targets) != 3 {
		c.t.Fatalf("the Service has the addresses %v", targets[1:])
	}
	for _, url := range targets {
		wait(c.t, time.Minute, "an answer at "+url, func() string {
			_, err := c.askFrom(c.pods("tools")[0], url)
			return reason(err)
		})
	}
}

// healthOfNodes checks that kube-proxy reports the health of its node by both families. Shared probes ask for it.
func healthOfNodes(c *cluster) {
	node, tools := c.nodes()[0], c.pods("tools")[1]
	for _, six := range []bool{false, true} {
		url := "http://" + netip.AddrPortFrom(netip.MustParseAddr(internalIP(node, six)), 10256).String() + "/healthz"
		if text, err := c.box(tools, "get", url); err != nil {
			c.t.Errorf("%s: %v: %s", url, err, text)
		}
	}
}

// exposeBoth makes a Service of the web servers with both families, and returns its
// addresses, IPv4 first.
func (c *cluster) exposeBoth(name, annotations, spec string, within ...netip.Prefix) []netip.Addr {
	c.t.Helper()
	c.must(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s, annotations: {%s}}, spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv6], selector: {app: web}, %s}}`,
		name, annotations, spec), "apply", "-f", "-")
	return c.publicAddresses(name, within...)
}

// bothByPackets: this machine is answered over TCP and UDP at both addresses, by every
// pod, and so is a pod.
func bothByPackets(c *cluster) {
	addresses := c.exposeBoth("both", "",
		`ports: [{name: tcp, port: 80, targetPort: 8080}, {name: udp, protocol: UDP, port: 80, targetPort: 8080}]`, public4, public6)
	for _, a := range addresses {
		c.answers(urlOf(a, 80))
		c.saysByUDP(netip.AddrPortFrom(a, 80))
		seen := map[string]bool{}
		wait(c.t, time.Minute, "an answer of every pod at "+a.String(), func() string {
			got, err := askFromHere(c.t.Context(), urlOf(a, 80))
			seen[got.pod] = err == nil || seen[got.pod]
			if delete(seen, ""); len(seen) < len(c.pods("web")) {
				return fmt.Sprintf("only %v, %v", seen, err)
			}
			return ""
		})
		if got, err := c.askFrom(c.pods("tools")[0], urlOf(a, 80)); err != nil {
			c.t.Errorf("a pod asks %s: %+v, %v", a, got, err)
		}
	}
}

// saysByUDP waits until this machine gets an answer over UDP.
func (c *cluster) saysByUDP(at netip.AddrPort) said {
	c.t.Helper()
	var got said
	ask := func() error {
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "who\n"); err != nil {
			return err
		}
		buffer := make([]byte, 1024)
		n, err := conn.Read(buffer)
		if err == nil {
			got, err = parseSaid(string(buffer[:n]))
		}
		return err
	}
	wait(c.t, time.Minute, "an answer over UDP at "+at.String(), func() string { return reason(ask()) })
	return got
}

// sixByPackets checks an IPv6-only Service next to an IPv4 frontend of another Service.
func sixByPackets(c *cluster) {
	c.exposeBoth("beside", "", httpPort, public4, public6)
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: six}, spec: {type: LoadBalancer, ipFamilyPolicy: SingleStack, ipFamilies: [IPv6], selector: {app: web}, `+httpPort+`}}`, "apply", "-f", "-")
	c.answers(urlOf(c.publicAddresses("six", public6)[0], 80))
	c.removeAll("six") // before the one that it stands beside
}

// bothRangesByPackets checks that a source range applies to the address of its family only.
func bothRangesByPackets(c *cluster) {
	ranges := func(v4, v6 string) string {
		return fmt.Sprintf(`loadBalancerSourceRanges: [%q, %q], `, v4, v6) + httpPort
	}
	addresses := c.exposeBoth("office", "", ranges("203.0.113.0/24", "2001:db8:ffff::/64"), public4, public6)
	for _, a := range addresses {
		c.allWell(a)
		if got, err := askFromHere(c.t.Context(), urlOf(a, 80)); err == nil {
			c.t.Errorf("a foreign client was served: %+v", got)
		}
	}
	own := c.ownAddress(addresses[1].String())
	c.exposeBoth("office", "", ranges("203.0.113.0/24", netip.PrefixFrom(own, 128).String()), public4, public6)
	c.answers(urlOf(addresses[1], 80))
	if got, err := askFromHere(c.t.Context(), urlOf(addresses[0], 80)); err == nil {
		c.t.Errorf("a foreign client by IPv4 was served: %+v", got)
	}
}

// bothInsideByPackets checks that an internal load balancer answers pods at both addresses, and no
// client outside.
func bothInsideByPackets(c *cluster) {
	addresses := c.exposeBoth("internal", `service.beta.kubernetes.io/azure-load-balancer-internal: "true"`, httpPort, subnet4, subnet6)
	for _, a := range addresses {
		wait(c.t, time.Minute, "an answer of the internal load balancer at "+a.String(), func() string {
			_, err := c.askFrom(c.pods("tools")[0], urlOf(a, 80))
			return reason(err)
		})
		if got, err := askFromHere(c.t.Context(), urlOf(a, 80)); err == nil {
			c.t.Errorf("this machine is served by an internal load balancer at %s: %+v", a, got)
		}
	}
}

// alonePod is a web server on one node.
const alonePod = `
apiVersion: v1
kind: Pod
metadata: {name: alone, labels: {app: alone}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: web, image: "kaz.local/web:1", imagePullPolicy: Never}]
`

// bothLocal checks that packets reach the only pod of a Service and that it sees the client.
func bothLocal(c *cluster) {
	c.must(fmt.Sprintf(alonePod, c.nodes()[1].Name), "apply", "-f", "-")
	defer c.must("", "delete", "pod", "alone", "--timeout=1m")
	c.must("", "wait", "pod/alone", "--for=condition=Ready", "--timeout=1m")
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: local}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ipFamilyPolicy: RequireDualStack, selector: {app: alone},
		ports: [{name: tcp, port: 80, targetPort: 8080}, {name: udp, protocol: UDP, port: 80, targetPort: 8080}]}}`, "apply", "-f", "-")
	for _, a := range c.publicAddresses("local", public4, public6) {
		own := c.ownAddress(a.String())
		if got := c.answers(urlOf(a, 80)); got.client != own || got.pod != "alone" {
			c.t.Errorf("pod %s sees %s over TCP, want alone and this machine, %s", got.pod, got.client, own)
		}
		if got := c.saysByUDP(netip.AddrPortFrom(a, 80)); got.client != own || got.pod != "alone" {
			c.t.Errorf("pod %s sees %s over UDP, want alone and this machine, %s", got.pod, got.client, own)
		}
	}
}

// probesBesideThePod checks that with policy Cluster every node is healthy by both families, also the node with the only pod.
// IPv6 probes come from a link-local address, which Linux forwards to no pod.
func probesBesideThePod(c *cluster) {
	c.must(fmt.Sprintf(alonePod, c.nodes()[1].Name), "apply", "-f", "-")
	defer c.must("", "delete", "pod", "alone", "--timeout=1m")
	c.must("", "wait", "pod/alone", "--for=condition=Ready", "--timeout=1m")
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: probed}, spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, selector: {app: alone}, `+httpPort+`}}`, "apply", "-f", "-")
	for _, a := range c.publicAddresses("probed", public4, public6) {
		c.allWell(a)
		c.answers(urlOf(a, 80))
	}
}

// allWell waits until all nodes answer the probes of an address.
func (c *cluster) allWell(a netip.Addr) {
	c.t.Helper()
	var want []string
	for _, n := range c.nodes() {
		want = append(want, internalIP(n, a.Is6()))
	}
	slices.Sort(want)
	frontend := netip.AddrPortFrom(a, 80).String()
	wait(c.t, time.Minute, "all nodes well behind "+frontend, func() string {
		for _, b := range c.balancers() {
			if b.Frontend == frontend {
				slices.Sort(b.Healthy)
				return cmp.Diff(want, b.Healthy)
			}
		}
		return "there is no such frontend"
	})
}

// rule is that of a load balancer in the status.
type rule struct {
	Frontend string
	Healthy  []string
}

// balancers are the rules of load balancers, as packets meet them.
func (c *cluster) balancers() []rule {
	c.t.Helper()
	var s struct{ Balancers []rule }
	if err := json.Unmarshal([]byte(runKaz(c.t, "local", "status", "--dir", c.dir, "-o", "json")), &s); err != nil {
		c.t.Fatal(err)
	}
	return s.Balancers
}

// leavingByIPv6: what pods send out of the virtual network has the address of their
// load balancer. Without one there is no way out: Azure lends no IPv6 address.
func leavingByIPv6(c *cluster) {
	url, tools := c.outsideIn(public6), c.pods("tools")[0]
	wait(c.t, time.Minute, "no way out", func() string {
		if got, err := c.askFrom(tools, url); err == nil {
			return fmt.Sprintf("outside sees %+v", got)
		}
		return ""
	})
	lender := c.exposeBoth("lender", "", httpPort, public4, public6)[1]
	wait(c.t, time.Minute, "the load balancer's address", func() string {
		got, err := c.askFrom(tools, url)
		if err == nil && got.client != lender {
			return fmt.Sprintf("outside sees %s", got.client)
		}
		return reason(err)
	})
}
