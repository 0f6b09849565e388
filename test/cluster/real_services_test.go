package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/plane/fabric/netns"
)

// note is the prefix of Service annotations.
const note = "service.beta.kubernetes.io/"

// outside serves on this machine, which is outside the virtual network, and returns the client's
// address like the web server.
func (c *cluster) outside() string { return c.outsideIn(publicRange) }

// outsideIn is outside at the address that this machine has for a range of public ones.
func (c *cluster) outsideIn(public netip.Prefix) string {
	c.t.Helper()
	own := c.ownAddress(public.Addr().Next().Next().Next().String())
	l, err := net.Listen("tcp", netip.AddrPortFrom(own, 0).String())
	if err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "pod outside client %s at %s asked %s\n", r.RemoteAddr, l.Addr(), r.URL.Path)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	c.t.Cleanup(func() {
		if err := server.Close(); err != nil {
			c.t.Error(err)
		}
		<-done
	})
	return "http://" + l.Addr().String() + "/"
}

// publicRange is that of public addresses.
var publicRange = netip.MustParsePrefix("198.18.0.0/15")

// leaving checks that pods send to the Internet from the public address of their machine, and not at
// all without one.
func leaving(c *cluster) {
	url, tools := c.outside(), c.pods("tools")[0]
	got, err := c.askFrom(tools, url)
	if err != nil || !publicRange.Contains(got.client) {
		c.t.Fatalf("outside sees %v, %v, want an address that Azure lends", got, err)
	}
	lent := got.client
	seenAs := func(what string, want func(netip.Addr) bool) {
		c.t.Helper()
		took := wait(c.t, time.Minute, what, func() string {
			got, err := c.askFrom(tools, url)
			if err == nil && !want(got.client) {
				return fmt.Sprintf("outside sees %s", got.client)
			}
			return reason(err)
		})
		c.t.Logf("%s: after %s", what, short(took))
	}
	ip := netip.MustParseAddr(c.expose("lender", "LoadBalancer", nil, httpPort))
	if ip == lent {
		c.t.Errorf("the Service has the address %s that was lent", ip)
	}
	seenAs("the load balancer's address", func(a netip.Addr) bool { return a == ip })
	c.update(c.group().Resource(network.LoadBalancers, "kaz"), func(properties map[string]any) {
		for _, rule := range properties["loadBalancingRules"].([]any) {
			rule.(map[string]any)["properties"].(map[string]any)["disableOutboundSnat"] = true
		}
	})
	wait(c.t, time.Minute, "the end of the way out", func() string {
		if got, err := c.askFrom(tools, url); err == nil {
			return fmt.Sprintf("outside sees %+v", got)
		}
		return ""
	})
	c.answers("http://" + ip.String() + "/") // which goes on
	if err := c.remove("lender"); err != nil {
		c.t.Fatal(err)
	}
	seenAs("an address that is lent", func(a netip.Addr) bool { return publicRange.Contains(a) })
}

// update changes the properties of a resource as its owner does, by hand.
func (c *cluster) update(id azure.ID, change func(properties map[string]any)) {
	c.t.Helper()
	doc, err := c.azure.Get(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(doc, &body); err != nil {
		c.t.Fatal(err)
	}
	change(body["properties"].(map[string]any))
	c.put(id, body)
}

// mover is a web server that can be moved between nodes. A terminating pod keeps serving until the
// probes noticed, as pods behind load balancers must.
const mover = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: mover}
spec:
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: mover}}
  template:
    metadata: {labels: {app: mover}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %s}
      terminationGracePeriodSeconds: 30
      containers:
      - name: web
        image: kaz.local/web:1
        imagePullPolicy: Never
        readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 15}}}
`

// probeTime is how long the default probes need to detect an unhealthy node.
const probeTime = 2 * 5 * time.Second

// drained checks that, with policy Local, only nodes with pods get traffic, and that a drain loses no
// requests.
func drained(c *cluster) {
	nodes := c.nodes()
	from, to := nodes[0].Name, nodes[1].Name
	move := func(to string) {
		c.t.Helper()
		c.must(fmt.Sprintf(mover, to), "apply", "-f", "-")
		c.must("", "rollout", "status", "deployment/mover", "--timeout=2m")
	}
	move(from)
	defer c.must("", "delete", "deployment/mover", "--wait=false")
	c.must(`{apiVersion: v1, kind: Service, metadata: {name: moving, labels: {scenario: `+c.mark()+`}},
		spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: mover}, `+httpPort+`}}`, "apply", "-f", "-")
	ip := c.address("moving", addressWithin)
	url := "http://" + ip + "/"
	c.receivers("tcp", ip+":80", from)
	first := c.answers(url)

	load := c.keepAsking(url)
	began := time.Now()
	move(to)
	moved := time.Since(began)
	c.receivers("tcp", ip+":80", to)
	c.t.Logf("the pod is on the other node after %s, the first node is drained after %s", short(moved), short(time.Since(began)))
	wait(c.t, time.Minute, "an answer of the pod on the other node", func() string {
		got, err := askFromHere(c.t.Context(), url)
		if err == nil && got.pod == first.pod {
			return "the first pod answers"
		}
		return reason(err)
	})
	r := load()
	c.t.Logf("%d requests meanwhile, %d failed, for %s at most", r.requests, r.failed, short(r.longest))
	if r.longest > probeTime+time.Second {
		c.t.Errorf("requests failed for %s, want no longer than probes need, %s; the last: %v", short(r.longest), probeTime, r.last)
	}
}

// requests are the results of consecutive requests.
type requests struct {
	requests, failed int
	longest          time.Duration // in which none succeeded
	last             error
}

// keepAsking requests a URL, with a new connection for each request, until stop is called.
func (c *cluster) keepAsking(url string) (stop func() requests) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan requests, 1)
	go func() {
		var r requests
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		well := time.Now() // when a request last was
		for {
			_, err := askFromHere(ctx, url)
			if ctx.Err() != nil {
				done <- r
				return
			}
			r.requests++
			if err != nil {
				r.failed, r.last, r.longest = r.failed+1, err, max(r.longest, time.Since(well))
			} else {
				well = time.Now()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() requests {
		cancel()
		return <-done
	}
}

// balancer is a load balancer's rule in `kaz local status -o json`.
type balancer struct {
	Frontend, Protocol string
	Backends, Healthy  []string
}

// receivers waits until the healthy receivers of a frontend are these nodes.
func (c *cluster) receivers(protocol, frontend string, nodes ...string) {
	c.t.Helper()
	var want []string
	for _, n := range c.nodes() {
		if !slices.Contains(nodes, n.Name) {
			continue
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				want = append(want, a.Address)
			}
		}
	}
	slices.Sort(want)
	wait(c.t, time.Minute, "the receivers of "+frontend, func() string {
		var status struct{ Balancers []balancer }
		if err := json.Unmarshal([]byte(runKaz(c.t, "local", "status", "--dir", c.dir, "-o", "json")), &status); err != nil {
			return err.Error()
		}
		for _, b := range status.Balancers {
			if b.Frontend != frontend || !strings.EqualFold(b.Protocol, protocol) {
				continue
			}
			slices.Sort(b.Healthy)
			if len(b.Backends) > 0 && slices.Equal(b.Healthy, want) {
				return ""
			}
			return fmt.Sprintf("healthy are %v of %v, want %v", b.Healthy, b.Backends, want)
		}
		return fmt.Sprintf("there is no such frontend among %+v", status.Balancers)
	})
}

// everyNode are the names of all nodes.
func (c *cluster) everyNode() []string {
	c.t.Helper()
	var names []string
	for _, n := range c.nodes() {
		names = append(names, n.Name)
	}
	return names
}

// affinity: a client always meets the same pod.
func affinity(c *cluster) {
	ip := c.expose("sticky", "LoadBalancer", nil, httpPort+`, sessionAffinity: ClientIP`)
	c.receivers("tcp", ip+":80", c.everyNode()...)
	first := c.answers("http://" + ip + "/")
	for range 15 {
		wait(c.t, time.Minute, "the next answer", func() string {
			got, err := askFromHere(c.t.Context(), "http://"+ip+"/")
			if err == nil && got.pod != first.pod {
				c.t.Fatalf("pod %s answers, before it was %s", got.pod, first.pod)
			}
			return reason(err)
		})
	}
}

// probes: each port has its own, and one that fails keeps traffic from its port only.
func probes(c *cluster) {
	path := note + "port_81_health-probe_request-path"
	ip := c.expose("probed", "LoadBalancer", map[string]string{
		note + "port_81_health-probe_protocol": "http", path: "/slow", // which is refused without a duration
	}, `ports: [{name: http, port: 80, targetPort: 8080}, {name: sick, port: 81, targetPort: 8080}]`)
	c.receivers("tcp", ip+":80", c.everyNode()...)
	c.receivers("tcp", ip+":81")
	c.answers("http://" + ip + "/")
	if got, err := askFromHere(c.t.Context(), "http://"+ip+":81/"); err == nil {
		c.t.Errorf("a port without a healthy receiver answers: %+v", got)
	}
	c.must("", "annotate", "--overwrite", "service", "probed", path+"=/well")
	c.answers("http://" + ip + ":81/")
}

// withoutFloating: packets come to the node's own address and node port.
func withoutFloating(c *cluster) {
	ip := c.expose("fixed", "LoadBalancer", map[string]string{note + "azure-disable-load-balancer-floating-ip": "true"}, httpPort+
		`, externalTrafficPolicy: Local`)
	port, rules := c.service("fixed").Spec.Ports[0].NodePort, c.rulesOf("kaz", "fixed")
	if len(rules) != 1 || rules[0].EnableFloatingIP != nil && *rules[0].EnableFloatingIP || rules[0].BackendPort != port {
		c.t.Errorf("the rules are %+v, want one without floating IP, to node port %d", rules, port)
	}
	got := c.answers("http://" + ip + "/")
	if own := c.ownAddress(ip); got.client != own {
		c.t.Errorf("the pod sees %s, this machine is %s", got.client, own)
	}
}

// rulesOf are the rules of a load balancer that are a Service's.
func (c *cluster) rulesOf(balancer, service string) []network.LoadBalancingRule {
	c.t.Helper()
	var all []network.LoadBalancingRule
	prefix := "a" + strings.ReplaceAll(string(c.service(service).UID), "-", "")[:31]
	for _, r := range read[network.LoadBalancer](c, c.group().Resource(network.LoadBalancers, balancer)).Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, prefix) {
			all = append(all, r.Properties)
		}
	}
	return all
}

// serviceTags checks that only clients in an allowed service tag can connect.
func serviceTags(c *cluster) {
	tags := note + "azure-allowed-service-tags"
	ip := c.expose("tagged", "LoadBalancer", map[string]string{tags: "Storage"}, httpPort)
	c.receivers("tcp", ip+":80", c.everyNode()...)
	if got, err := askFromHere(c.t.Context(), "http://"+ip+"/"); err == nil {
		c.t.Errorf("this machine, which is not Azure Storage, was served: %+v", got)
	}
	c.must("", "annotate", "--overwrite", "service", "tagged", tags+"=Storage,AzureCloud")
	c.answers("http://" + ip + "/")
}

// sharedAddress has two Services with one public IP of the user, which is kept when they are deleted.
func sharedAddress(c *cluster) {
	own := c.group().Resource(network.PublicIPAddresses, "mine")
	c.put(own, map[string]any{
		"location": "westeurope", "sku": map[string]any{"name": "Standard"},
		"properties": map[string]any{"publicIPAllocationMethod": "Static"},
	})
	want := read[network.PublicIPAddress](c, own).Properties.IPAddress
	one := c.expose("by-name", "LoadBalancer", map[string]string{note + "azure-pip-name": "mine"}, httpPort)
	two := c.expose("by-address", "LoadBalancer", map[string]string{note + "azure-load-balancer-ipv4": one},
		`ports: [{name: other, port: 81, targetPort: 8080}]`)
	if one != want || two != one {
		c.t.Fatalf("the addresses are %s and %s", one, two)
	}
	c.answers("http://" + one + "/")
	c.answers("http://" + one + ":81/")
	if err := c.remove("by-name"); err != nil {
		c.t.Fatal(err)
	}
	c.answers("http://" + one + ":81/")
	// Packets follow a change of Azure's documents a moment later.
	wait(c.t, time.Minute, "the end of the port of a deleted Service", func() string {
		if got, err := askFromHere(c.t.Context(), "http://"+one+"/"); err == nil {
			return fmt.Sprintf("the port of a Service that is gone answers: %+v", got)
		}
		return ""
	})
	if err := c.remove("by-address"); err != nil {
		c.t.Fatal(err)
	}
	if err := c.azure.Delete(c.t.Context(), own); err != nil {
		c.t.Errorf("the user's own address: %v", err)
	}
}

// insideNode is the network namespace of a node's machine.
func (c *cluster) insideNode(node string) string {
	c.t.Helper()
	var memory struct{ Instance string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "cluster.json")), &memory); err != nil {
		c.t.Fatal(err)
	}
	return "kaz-" + memory.Instance + "-vm-" + node
}

// pastProxy makes a node's own packets to an address bypass kube-proxy, which would answer in place
// of the load balancer. Untracked connections match no rule of kube-proxy.
func (c *cluster) pastProxy(node, address string) {
	c.t.Helper()
	run := func(rules string) {
		c.t.Helper()
		nft := exec.CommandContext(context.WithoutCancel(c.t.Context()), "nft", "-f", "-")
		nft.Stdin = strings.NewReader(rules)
		err := netns.Do(c.insideNode(node), func() error {
			text, err := nft.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			return nil
		})
		if err != nil {
			c.t.Fatalf("nft in %s: %v", node, err)
		}
	}
	table := "past_" + strings.ReplaceAll(address, ".", "_")
	run(fmt.Sprintf(`table ip %[2]s {
  chain out { type filter hook output priority raw; ip daddr %[1]s notrack; }
  chain in { type filter hook prerouting priority raw; ip saddr %[1]s notrack; }
}`, address, table))
	c.t.Cleanup(func() { run("delete table ip " + table) })
}

// askFromNode asks as a program on a node would.
func (c *cluster) askFromNode(node, url string) (said, error) {
	c.t.Helper()
	var got said
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	client := http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = netns.Do(c.insideNode(node), func() error {
				conn, err = dialer.DialContext(ctx, network, address)
				return err
			})
			return conn, err
		},
	}}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return got, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return got, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return got, err
	}
	return parseSaid(string(text))
}

// nodeIsAnswered waits until a program on a node is answered, and returns what it is
// told.
func (c *cluster) nodeIsAnswered(node, url string) said {
	c.t.Helper()
	var got said
	took := wait(c.t, time.Minute, url+" answers "+node, func() string {
		var err error
		got, err = c.askFromNode(node, url)
		return reason(err)
	})
	c.t.Logf("%s answers %s after %s", url, node, short(took))
	return got
}

// hairpin checks that packets of a machine to a public address of its own network leave and return
// with a public source address.
func hairpin(c *cluster) {
	node := c.nodes()[0].Name
	ip := c.expose("hairpin", "LoadBalancer", nil, httpPort+`, externalTrafficPolicy: Local`)
	c.answers("http://" + ip + "/")
	c.pastProxy(node, ip)
	if got := c.nodeIsAnswered(node, "http://"+ip+"/"); !publicRange.Contains(got.client) {
		c.t.Errorf("the pod sees %s, want the public address that the node leaves with", got.client)
	}
}

// everyPort checks that HA ports carry all ports with one rule, for clients inside the virtual
// network only.
func everyPort(c *cluster) {
	node := c.nodes()[0].Name
	ip := c.expose("every-port", "LoadBalancer", map[string]string{
		note + "azure-load-balancer-internal": "true", note + "azure-load-balancer-enable-high-availability-ports": "true",
	}, `externalTrafficPolicy: Local, ports: [{name: one, port: 80, targetPort: 8080}, {name: two, port: 81, targetPort: 8080}]`)
	if rules := c.rulesOf("kaz-internal", "every-port"); len(rules) != 1 || rules[0].Protocol != "All" {
		c.t.Errorf("the rules are %+v, want one of all protocols", rules)
	}
	c.pastProxy(node, ip)
	own := ""
	for _, a := range c.nodes()[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			own = a.Address
		}
	}
	for _, url := range []string{"http://" + ip + "/", "http://" + ip + ":81/"} {
		if got := c.nodeIsAnswered(node, url); got.client.String() != own {
			c.t.Errorf("the pod sees %s, want the node's %s", got.client, own)
		}
		if got, err := askFromHere(c.t.Context(), url); err == nil {
			c.t.Errorf("this machine is served by an internal load balancer: %+v", got)
		}
	}
}

// askDatagram asks a web server over UDP.
func askDatagram(address string) (said, error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return said{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return said{}, err
	}
	if _, err := io.WriteString(conn, "who\n"); err != nil {
		return said{}, err
	}
	buffer := make([]byte, 1024)
	n, err := conn.Read(buffer)
	if err != nil {
		return said{}, err
	}
	return parseSaid(string(buffer[:n]))
}

// answersDatagrams waits until this machine gets an answer over UDP.
func (c *cluster) answersDatagrams(address string) said {
	c.t.Helper()
	var got said
	wait(c.t, time.Minute, "an answer over UDP at "+address, func() string {
		var err error
		got, err = askDatagram(address)
		return reason(err)
	})
	return got
}

// datagrams: UDP with the client's address, for those in the source ranges.
func datagrams(c *cluster) {
	ip := c.expose("datagrams", "LoadBalancer", nil, `externalTrafficPolicy: Local, loadBalancerSourceRanges: [203.0.113.0/24],
		ports: [{name: dns, protocol: UDP, port: 53, targetPort: 8080}]`)
	c.receivers("udp", ip+":53", c.everyNode()...)
	if got, err := askDatagram(ip + ":53"); err == nil {
		c.t.Errorf("a foreign client was served: %+v", got)
	}
	own := c.ownAddress(ip)
	c.must("", "patch", "service", "datagrams", "-p", fmt.Sprintf(`{"spec":{"loadBalancerSourceRanges":["%s/32"]}}`, own))
	if got := c.answersDatagrams(ip + ":53"); got.client != own {
		c.t.Errorf("the pod sees %s, this machine is %s", got.client, own)
	}
}

// mixedProtocols: one Service has a port for TCP and the same one for UDP.
func mixedProtocols(c *cluster) {
	ip := c.expose("mixed", "LoadBalancer", nil,
		`ports: [{name: tcp, port: 80, targetPort: 8080}, {name: udp, protocol: UDP, port: 80, targetPort: 8080}]`)
	c.answers("http://" + ip + "/")
	c.answersDatagrams(ip + ":80")
}

// managedIdentity checks that pods get tokens of their machine's identity, and none without an
// identity.
func managedIdentity(c *cluster) {
	tools := c.pods("tools")[0]
	const url = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"
	if text, err := c.box(tools, "get", url); err == nil || !strings.Contains(text, "Identity not found") {
		c.t.Errorf("a machine without an identity: %v: %s", err, text)
	}
	identity, take := c.assign("kubelets")
	defer take()
	text, err := c.box(tools, "get", url)
	var token struct {
		ClientID    string `json:"client_id"`
		AccessToken string `json:"access_token"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &token)
	}
	if err != nil || identity.ClientID == "" || token.ClientID != identity.ClientID || strings.Count(token.AccessToken, ".") != 2 {
		c.t.Errorf("the token of %s: %v: %s", identity.ClientID, err, text)
	}
}

// namesInside: machines and pods find each other and Azure's own hosts by name.
func namesInside(c *cluster) {
	tools, node := c.pods("tools")[0], c.nodes()[1]
	own := ""
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			own = a.Address
		}
	}
	for _, name := range []string{node.Name, node.Name + ".internal.cloudapp.net"} {
		text := runKaz(c.t, "local", "ssh", "--dir", c.dir, tools.node, "--", "getent", "ahostsv4", name)
		if fields := strings.Fields(text); len(fields) == 0 || fields[0] != own {
			c.t.Errorf("the address of %s is %q, want %s", name, text, own)
		}
	}
	// By way of the cluster's name server.
	const health = ":10256/healthz"
	wait(c.t, time.Minute, "kube-proxy of a machine by name, from a pod", func() string {
		_, err := c.box(tools, "get", "http://"+node.Name+".internal.cloudapp.net"+health)
		return reason(err)
	})
	if text, err := c.box(tools, "get", "http://unknown.internal.cloudapp.net"+health); err == nil {
		c.t.Errorf("a host without a listener answers %q", text)
	}
	label := map[string]string{note + "azure-dns-label-name": "shop"}
	c.expose("shop", "LoadBalancer", label, httpPort)
	wait(c.t, time.Minute, "a Service by its public name", func() string {
		_, err := c.askFrom(tools, "http://shop.westeurope.cloudapp.azure.com/")
		return reason(err)
	})
	c.zones(c.address("shop", time.Minute), own)
	wait(c.t, time.Minute, "a Service by its name in a public zone", func() string {
		_, err := c.askFrom(tools, "http://www.shop.example/")
		return reason(err)
	})
	wait(c.t, time.Minute, "a machine by its name in a private zone", func() string {
		_, err := c.box(tools, "get", "http://node.inside.example"+health)
		return reason(err)
	})
}

// zones makes a public zone, shop.example, and a private one of the network, inside.example, with a name each.
func (c *cluster) zones(www, node string) {
	c.t.Helper()
	global := map[string]any{"location": "global"}
	public, private := c.group().Resource(network.DNSZones, "shop.example"), c.group().Resource(network.PrivateDNSZones, "inside.example")
	c.put(public, global)
	c.put(public.Child("A", "www"), map[string]any{"properties": map[string]any{
		"TTL": 60, "ARecords": []any{map[string]any{"ipv4Address": www}},
	}})
	c.put(private, global)
	c.put(private.Child("virtualNetworkLinks", "nodes"), map[string]any{"location": "global", "properties": map[string]any{
		"virtualNetwork": map[string]any{"id": c.group().Resource("Microsoft.Network/virtualNetworks", "kaz-vnet")}, "registrationEnabled": false,
	}})
	c.put(private.Child("A", "node"), map[string]any{"properties": map[string]any{
		"ttl": 60, "aRecords": []any{map[string]any{"ipv4Address": node}},
	}})
}

// assign gives the machines an identity, and returns what takes it.
func (c *cluster) assign(name string) (identity struct{ ClientID, PrincipalID string }, take func()) {
	c.t.Helper()
	id := c.group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", name)
	c.put(id, map[string]any{"location": "westeurope"})
	identity = read[struct{ ClientID, PrincipalID string }](c, id).Properties
	patch := func(body string) {
		c.t.Helper()
		if _, err := c.azure.Patch(c.t.Context(), azure.Write{ID: c.scaleSet(), Body: azure.Document(body)}); err != nil {
			c.t.Fatal(err)
		}
	}
	patch(fmt.Sprintf(`{"identity":{"type":"UserAssigned","userAssignedIdentities":{%q:{}}}}`, id))
	return identity, func() { patch(`{"identity":{"type":"None"}}`) }
}

// pulledImage checks that a node with an identity pulls an image from a registry of the local Azure,
// and a node without one does not.
func pulledImage(c *cluster) {
	nodes := c.nodes()
	from, to := nodes[0].Name, nodes[1].Name
	registry := c.group().Resource("Microsoft.ContainerRegistry/registries", "kaztest")
	c.put(registry, map[string]any{"location": "westeurope", "sku": map[string]any{"name": "Basic"}})
	// An image that no other pod uses: a kubelet does not share an image that was pulled with a
	// credential.
	const source, image = "kaz.local/pause:1", "kaztest.azurecr.io/app:1"
	var info struct{ ClientID, ClientSecret string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "azure-state-running.json")), &info); err != nil {
		c.t.Fatal(err)
	}
	ctr := func(node string, args ...string) {
		c.t.Helper()
		runKaz(c.t, append([]string{"local", "ssh", "--dir", c.dir, node, "--", "ctr", "--namespace", "k8s.io", "images"}, args...)...)
	}
	ctr(from, "tag", source, image)
	ctr(from, "push", "--user", info.ClientID+":"+info.ClientSecret, image)
	run := func(name string) {
		c.t.Helper()
		c.must(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeName: %s, terminationGracePeriodSeconds: 0,
			containers: [{name: app, image: %q, imagePullPolicy: Always}]}}`, name, to, image), "apply", "-f", "-")
	}
	run("refused")
	defer c.must("", "delete", "pod/refused", "pod/pulled", "--ignore-not-found", "--wait=false")
	wait(c.t, time.Minute, "the refusal", func() string {
		for _, e := range c.events("Pod", "refused", "Failed") {
			if strings.Contains(e.Message, image) && strings.Contains(strings.ToLower(e.Message), "unauthorized") {
				return ""
			}
		}
		return fmt.Sprintf("%+v", c.events("Pod", "refused", "Failed"))
	})
	_, take := c.assign("pullers")
	defer take()
	run("pulled") // the other one waits longer and longer between attempts
	c.must("", "wait", "pod/pulled", "--for=condition=Ready", "--timeout=2m")
	for _, e := range c.events("Pod", "pulled", "Pulled") {
		c.t.Log(e.Message)
	}
}
