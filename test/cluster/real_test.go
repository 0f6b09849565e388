package cluster_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// workloads are a web server and tools on every node.
const workloads = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: "kaz.local/web:1", imagePullPolicy: Never}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: tools}
spec:
  selector: {matchLabels: {app: tools}}
  template:
    metadata: {labels: {app: tools}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: tools, image: "kaz.local/tools:1", imagePullPolicy: Never}]}
`

// needsReal skips a test where machines cannot be real.
func needsReal(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots machines: not in short mode")
	}
	if os.Geteuid() != 0 {
		t.Skip("real nodes are namespaces, and those need root")
	}
	for _, program := range []string{"containerd", "runc", "nft", "iptables", "ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("real nodes need %s: %v", program, err)
		}
	}
	alone(t)
}

// alone waits until no other test on this machine has real nodes, because public addresses are
// unique.
func alone(t *testing.T) {
	t.Helper()
	lock, err := os.OpenFile("/tmp/kaz-real-nodes.lock", os.O_CREATE|os.O_RDWR, 0o600) // one for all tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() }) // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// Leftovers of a killed test are not part of the machine's initial state.
	t.Log(strings.TrimSpace(runKaz(t, "local", "down", "--dir", newDir(t))))
}

// TestReal starts a cluster with real nodes and checks with packets that Azure does what its
// documents say.
func TestReal(t *testing.T) {
	needsReal(t)
	before := hostState(t)
	c := startUp(t, newDir(t), "--nodes-kind", "real", "--nodes", "3", "--gateway")
	c.must(workloads, "apply", "-f", "-")
	c.routed()
	for _, name := range []string{"web", "tools"} {
		c.must("", "rollout", "status", "daemonset/"+name, "--timeout=2m")
	}
	c.must("", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=2m")
	play := func(s scenario) {
		t.Run(s.name, func(t *testing.T) {
			one := c.in(t)
			defer one.removeOwn()
			s.play(one)
		})
	}
	for _, s := range alonePlayed() {
		play(s)
	}
	// These scenarios mostly wait for probes, so they run in parallel.
	var together sync.WaitGroup
	for _, s := range togetherPlayed() {
		together.Go(func() { play(s) })
	}
	together.Wait()
	c.stop(syscall.SIGTERM)
	for what, had := range before {
		if has := hostState(t)[what]; has != had {
			t.Errorf("%s before:\n%s\nafter:\n%s", what, had, has)
		}
	}
}

// scenario is something that happens in a cluster with real nodes.
type scenario struct {
	name string
	play func(*cluster)
}

// alonePlayed change what other scenarios need.
func alonePlayed() []scenario {
	return []scenario{
		{"pods of different nodes, and the route between them", podsAndRoutes},
		{"out of the virtual network", leaving},
		{"a rule between two machines", ruleBetweenMachines},
		{"metadata", metadataInside},
		{"tokens", managedIdentity},
		{"names", namesInside},
		{"images of a registry", pulledImage},
		{"host ports", hostPorts},
		{"pods for the API server", podsForAPIServer},
		{"a webhook in a pod", webhook},
		{"an aggregated API in a pod", aggregated},
		{"labels that a kubelet may not change", restrictedKubelet},
		{"the commands that README and the guides print", documentedCommands},
		{"the commands of the guide for gateways", gatewayCommands},
		{"a bad Ingress beside a good one", badIngressHurtsNobody},
	}
}

// togetherPlayed need their own Services only.
func togetherPlayed() []scenario {
	return []scenario{
		{"an external Service", external},
		{"an external Service, from a machine behind it", hairpin},
		{"source ranges", sourceRangesByPackets},
		{"service tags", serviceTags},
		{"an internal load balancer", internalBalancer},
		{"an internal load balancer for every port", everyPort},
		{"traffic policy Local", local},
		{"traffic policy Local, and pods that move", drained},
		{"affinity", affinity},
		{"probes of ports", probes},
		{"floating IP off", withoutFloating},
		{"two Services at a user's own address", sharedAddress},
		{"UDP", datagrams},
		{"UDP and TCP", mixedProtocols},
		{"a shell, logs and the status", inspect},
		{"images that are loaded", loadedImage},
	}
}

// hostState returns the state of this machine that a cluster must not change.
func hostState(t *testing.T) map[string]string {
	t.Helper()
	const withoutOthers = `awk '!/\/tmp\/Test/ || /\/tmp\/TestReal/'` // leaves out what tests beside this one have
	state := map[string]string{}
	for what, command := range map[string]string{
		"namespaces": "ls /run/netns 2>/dev/null | grep -vE '^kazm?-t'", // those are of tests beside this one
		"mounts":     "grep -v ' /run/netns' /proc/self/mounts | " + withoutOthers,
		"links":      "ip -br link",
		"routes":     "ip route; ip -6 route", "rules": "nft list ruleset",
		"cgroups":      "ls -d /sys/fs/cgroup/*kaz* /sys/fs/cgroup/*/*kaz* 2>/dev/null",
		"loop devices": "losetup -a | " + withoutOthers,
		"forwarding":   "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
	} {
		out, _ := exec.Command("/bin/sh", "-c", command).Output() // ls of nothing fails
		state[what] = string(out)
	}
	return state
}

// pod is one of the pods of an app.
type pod struct{ name, node, ip string }

func (c *cluster) pods(app string) []pod {
	c.t.Helper()
	var all []pod
	for _, p := range get[corev1.PodList](c, "pods", "-l", "app="+app).Items {
		if p.DeletionTimestamp == nil {
			all = append(all, pod{p.Name, p.Spec.NodeName, p.Status.PodIP})
		}
	}
	slices.SortFunc(all, func(a, b pod) int { return strings.Compare(a.node, b.node) })
	return all
}

// said is what the web server said.
type said struct {
	pod    string
	client netip.Addr
	at     string
}

func (s said) String() string { return fmt.Sprintf("pod %s, client %s, at %s", s.pod, s.client, s.at) }

var sentence = regexp.MustCompile(`pod (\S+) client (\S+) at (\S+) asked`)

func parseSaid(text string) (said, error) {
	m := sentence.FindStringSubmatch(text)
	if m == nil {
		return said{}, fmt.Errorf("no answer of the web server: %q", text)
	}
	client, err := netip.ParseAddrPort(m[2])
	return said{m[1], client.Addr().Unmap(), m[3]}, err
}

// box runs the program box in a pod.
func (c *cluster) box(p pod, args ...string) (string, error) {
	c.t.Helper()
	return c.kubectl("", append([]string{"exec", p.name, "--", "/box"}, args...)...)
}

func (c *cluster) askFrom(p pod, url string) (said, error) {
	c.t.Helper()
	text, err := c.box(p, "get", url)
	if err != nil {
		return said{}, err
	}
	return parseSaid(text)
}

// askFromHere asks from this machine, with a connection of its own.
func askFromHere(ctx context.Context, url string) (said, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return said{}, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return said{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return said{}, err
	}
	return parseSaid(string(text))
}

// reason is an error as [wait] wants it.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// answers waits until this machine gets an answer at an address.
func (c *cluster) answers(url string) said {
	c.t.Helper()
	var last said
	took := wait(c.t, time.Minute, "an answer at "+url, func() string {
		var err error
		last, err = askFromHere(c.t.Context(), url)
		return reason(err)
	})
	c.t.Logf("%s answers this machine after %s", url, short(took))
	return last
}

// removeServices removes all Services that a scenario made.
func (c *cluster) removeServices() {
	c.t.Helper()
	for _, s := range get[corev1.ServiceList](c, "services").Items {
		if s.Name == "kubernetes" {
			continue
		}
		if err := c.remove(s.Name); err != nil {
			c.t.Error(err)
		}
	}
}

// mark is a label's value by which the Services of a scenario are found.
func (c *cluster) mark() string { return fmt.Sprintf("s%08x", crc32.ChecksumIEEE([]byte(c.t.Name()))) }

// removeOwn removes the Services that a scenario has exposed.
func (c *cluster) removeOwn() {
	c.t.Helper()
	for _, s := range get[corev1.ServiceList](c, "services", "-l", "scenario="+c.mark()).Items {
		if err := c.remove(s.Name); err != nil {
			c.t.Error(err)
		}
	}
}

// expose makes a Service of the web servers and returns its address.
func (c *cluster) expose(name, kind string, annotations map[string]string, spec string) string {
	c.t.Helper()
	var notes []string
	for k, v := range annotations {
		notes = append(notes, fmt.Sprintf("%s: %q", k, v))
	}
	c.must(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s, labels: {scenario: %s}, annotations: {%s}}, spec: {type: %s, selector: {app: web}, %s}}`,
		name, c.mark(), strings.Join(notes, ", "), kind, spec), "apply", "-f", "-")
	if kind != "LoadBalancer" {
		return c.service(name).Spec.ClusterIP
	}
	return c.address(name, addressWithin)
}

const httpPort = `ports: [{name: http, port: 80, targetPort: 8080}]`

// podsAndRoutes checks that pods reach pods of other nodes with their own addresses, only by Azure's
// routes, and that the controller restores a deleted route.
func podsAndRoutes(c *cluster) {
	tools, web := c.pods("tools")[0], c.pods("web")[1]
	url := "http://" + web.ip + ":8080/"
	got, err := c.askFrom(tools, url)
	if err != nil || got.pod != web.name || got.client.String() != tools.ip {
		c.t.Fatalf("%+v, %v, want pod %s and client %s", got, err, web.name, tools.ip)
	}
	c.expose("inside", "ClusterIP", nil, httpPort)
	wait(c.t, time.Minute, "the Service by its name", func() string {
		_, err := c.askFrom(tools, "http://inside.default.svc.cluster.local/")
		return reason(err)
	})
	// The controller may restore the route before the pod notices: then delete it again.
	wait(c.t, machineGone, "a pod that is cut off", func() string {
		c.removeRoute(netip.MustParseAddr(web.ip))
		if got, err := c.askFrom(tools, url); err == nil {
			return fmt.Sprintf("without a route the pod is reached: %+v", got)
		}
		return ""
	})
	took := wait(c.t, routeBack, "the route's return", func() string {
		_, err := c.askFrom(tools, url)
		return reason(err)
	})
	c.t.Logf("the route is back %s after the pod was cut off", short(took))
}

// hostPort is a Pod with a port of its node.
const hostPort = `
apiVersion: v1
kind: Pod
metadata: {name: host-port}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers:
  - {name: web, image: "kaz.local/web:1", imagePullPolicy: Never, ports: [{containerPort: 8080, hostPort: 8099}]}
`

// hostPorts checks that a pod answers at the address of its node: pods of other nodes and of its own, and programs on the
// node.
func hostPorts(c *cluster) {
	tools := c.pods("tools")
	node, other := tools[0], tools[1]
	c.must(fmt.Sprintf(hostPort, node.node), "apply", "-f", "-")
	c.must("", "wait", "--for=condition=Ready", "pod/host-port", "--timeout=1m")
	at := func(address string) string { return "http://" + net.JoinHostPort(address, "8099") + "/" }
	address := c.nodeAddress(node.node)
	got, err := c.askFrom(other, at(address))
	if err != nil || got.pod != "host-port" || got.client.String() != other.ip {
		c.t.Errorf("from another node: %+v, %v, want client %s", got, err, other.ip)
	}
	if got, err := c.askFrom(node, at(address)); err != nil || got.pod != "host-port" {
		c.t.Errorf("from the same node: %+v, %v", got, err)
	}
	for _, own := range []string{address, "127.0.0.1"} {
		if got, err := c.askFromNode(node.node, at(own)); err != nil || got.pod != "host-port" {
			c.t.Errorf("from the node itself, at %s: %+v, %v", own, got, err)
		}
	}
	c.must("", "delete", "pod", "host-port")
	// Without a grace period the API server forgets the pod before the kubelet stops it.
	wait(c.t, machineGone, "the end of a deleted pod's port", func() string {
		if got, err := c.askFrom(other, at(address)); err == nil {
			return fmt.Sprintf("the port of a deleted pod answers: %+v", got)
		}
		return ""
	})
}

func (c *cluster) nodeAddress(name string) string {
	c.t.Helper()
	n, ok := c.node(name)
	if !ok {
		c.t.Fatalf("there is no node %s", name)
	}
	return internalIP(n, false)
}

// podsForAPIServer checks that the API server reaches a pod by the pod's own address, as it calls webhooks and aggregated
// APIs. It also checks that both kinds of endpoints tell pods the address of the API server.
func podsForAPIServer(c *cluster) {
	web := c.pods("web")[1]
	got, err := parseSaid(c.must("", "get", "--raw", "/api/v1/namespaces/default/pods/"+web.name+":8080/proxy/"))
	if err != nil || got.pod != web.name {
		c.t.Errorf("%+v, %v, want pod %s", got, err, web.name)
	}
	for kind, path := range map[string]string{
		"endpoints": "{.subsets[*].addresses[*].ip}", "endpointslices": "{.endpoints[*].addresses[*]}",
	} {
		if got := c.must("", "get", kind, "kubernetes", "-o", "jsonpath="+path); got != "168.63.129.16" {
			c.t.Errorf("%s of the API server: %q", kind, got)
		}
	}
	all := c.must("", "get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", "jsonpath={.items[*].metadata.name}")
	if all != "kubernetes" {
		c.t.Errorf("endpoint slices of the API server: %s", all)
	}
}

// restrictedKubelet checks that the identity of a kubelet changes its own Node, but no label by which others keep pods off
// nodes.
func restrictedKubelet(c *cluster) {
	node := c.nodes()[0].Name
	label := func(label string) error {
		_, err := c.kubectl("", "label", "node", node, label, "--overwrite", "--as=system:node:"+node, "--as-group=system:nodes")
		return err
	}
	if err := label("checked=yes"); err != nil {
		c.t.Error(err)
	}
	const refused = "is not allowed to modify labels"
	if err := label("node-restriction.kubernetes.io/checked=yes"); err == nil || !strings.Contains(err.Error(), refused) {
		c.t.Errorf("a restricted label: %v, want %q", err, refused)
	}
}

// external checks that clients outside and pods reach the Service.
func external(c *cluster) {
	ip := c.expose("external", "LoadBalancer", nil, httpPort)
	c.answers("http://" + ip + "/")
	wait(c.t, time.Minute, "an answer for a pod", func() string {
		_, err := c.askFrom(c.pods("tools")[0], "http://"+ip+"/")
		return reason(err)
	})
	seen := map[string]bool{}
	wait(c.t, time.Minute, "an answer of every pod", func() string {
		got, err := askFromHere(c.t.Context(), "http://"+ip+"/")
		if err != nil {
			return err.Error()
		}
		seen[got.pod] = true
		if len(seen) < len(c.pods("web")) {
			return fmt.Sprint("only ", seen)
		}
		return ""
	})
}

// sourceRangesByPackets checks that clients outside the ranges get no answer, and that a change
// applies once Azure has it.
func sourceRangesByPackets(c *cluster) {
	ip := c.expose("office", "LoadBalancer", nil, httpPort+`, loadBalancerSourceRanges: [203.0.113.0/24]`)
	if got, err := askFromHere(c.t.Context(), "http://"+ip+"/"); err == nil {
		c.t.Errorf("a foreign client was served: %+v", got)
	}
	admit := func(source string) {
		c.must("", "patch", "service", "office", "-p", fmt.Sprintf(`{"spec":{"loadBalancerSourceRanges":[%q]}}`, source))
	}
	admit(c.ownAddress(ip).String() + "/32")
	c.answers("http://" + ip + "/")
	admit("203.0.113.0/24")
	wait(c.t, time.Minute, "a client that is refused", func() string {
		if got, err := askFromHere(c.t.Context(), "http://"+ip+"/"); err == nil {
			return fmt.Sprintf("it was served: %+v", got)
		}
		return ""
	})
}

// ownAddress is the address of this machine towards another.
func (c *cluster) ownAddress(to string) netip.Addr {
	c.t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(to, "9"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
}

// internalBalancer checks that an internal load balancer answers inside the virtual network only.
func internalBalancer(c *cluster) {
	ip := c.expose("internal", "LoadBalancer",
		map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}, httpPort)
	if !netip.MustParsePrefix("10.240.0.0/16").Contains(netip.MustParseAddr(ip)) {
		c.t.Errorf("an internal address is %s", ip)
	}
	wait(c.t, time.Minute, "an answer of the internal load balancer", func() string {
		_, err := c.askFrom(c.pods("tools")[0], "http://"+ip+"/")
		return reason(err)
	})
	// kube-proxy answered the request above itself; this one passes the load balancer.
	node := c.nodes()[2].Name
	c.pastProxy(node, ip)
	c.nodeIsAnswered(node, "http://"+ip+"/")
	if got, err := askFromHere(c.t.Context(), "http://"+ip+"/"); err == nil {
		c.t.Errorf("this machine is served by an internal load balancer: %+v", got)
	}
}

// local checks that pods see the client's address and only nodes with pods get requests.
func local(c *cluster) {
	ip := c.expose("local", "LoadBalancer", nil, httpPort+`, externalTrafficPolicy: Local`)
	got := c.answers("http://" + ip + "/")
	if own := c.ownAddress(ip); got.client != own {
		c.t.Errorf("the pod sees %s, this machine is %s", got.client, own)
	}
}

// metadataInside checks that pods can read the metadata of their machine.
func metadataInside(c *cluster) {
	for _, p := range c.pods("tools") {
		text, err := c.box(p, "get", "http://169.254.169.254/metadata/instance/compute?api-version=2021-10-01")
		if err != nil || !strings.Contains(text, fmt.Sprintf("%q", p.node)) {
			c.t.Errorf("metadata on %s: %v: %s", p.node, err, text)
		}
	}
}

// ruleBetweenMachines separates two machines of a subnet by a rule of its security group.
func ruleBetweenMachines(c *cluster) {
	web, tools := c.pods("web")[0], c.pods("tools")[2]
	url := "http://" + web.ip + ":8080/"
	if _, err := c.askFrom(tools, url); err != nil {
		c.t.Fatal(err)
	}
	rule := c.group().Resource(network.SecurityGroups, "kaz-nsg").Child("securityRules", "apart")
	body := azure.Document(fmt.Sprintf(`{"properties":{"priority":100,"direction":"Inbound","access":"Deny","protocol":"Tcp",
		"sourceAddressPrefix":"%s","sourcePortRange":"*","destinationAddressPrefix":"%s","destinationPortRange":"8080"}}`,
		tools.ip, web.ip))
	if _, err := c.azure.Put(c.t.Context(), azure.Write{ID: rule, Body: body}); err != nil {
		c.t.Fatal(err)
	}
	took := wait(c.t, time.Minute, "the rule in force", func() string {
		if _, err := c.askFrom(tools, url); err == nil {
			return "the pod is reached"
		}
		return ""
	})
	c.t.Logf("seen to be in force after %s, with the 5 s that the asking pod is patient", short(took))
	if err := c.azure.Delete(c.t.Context(), rule); err != nil {
		c.t.Fatal(err)
	}
	wait(c.t, time.Minute, "the end of the rule", func() string {
		_, err := c.askFrom(tools, url)
		return reason(err)
	})
}

// inspect checks the commands for inspection.
func inspect(c *cluster) {
	node := c.nodes()[0].Name
	if got := runKaz(c.t, "local", "ssh", "--dir", c.dir, node, "--", "hostname"); strings.TrimSpace(got) != node {
		c.t.Errorf("the host name in the machine is %q", got)
	}
	if got := runKaz(c.t, "local", "logs", "--dir", c.dir, node, "--program", "kubelet", "--tail", "2000"); !strings.Contains(got,
		"Successfully registered node") {
		c.t.Errorf("the kubelet's log:\n%s", got)
	}
	ip := c.expose("status", "LoadBalancer", nil, httpPort)
	wait(c.t, time.Minute, "healthy backends in the status", func() string {
		text := runKaz(c.t, "local", "status", "--dir", c.dir)
		for _, want := range []string{"real", node, "tcp " + ip + ":80", "3 of 3"} {
			if !strings.Contains(text, want) {
				return fmt.Sprintf("%q is missing in\n%s", want, text)
			}
		}
		return ""
	})
	refuses(c.t, exec.Command(kaz(), "local", "ssh", "--dir", c.dir, "unknown"), "unknown", node)
	refuses(c.t, exec.Command(kaz(), "local", "logs", "--dir", c.dir, "unknown"), "unknown", node, "cloud-controller-manager")
	if files, err := filepath.Glob(filepath.Join(c.dir, "machines", node, "var/log/*.log")); err != nil || len(files) < 4 {
		c.t.Errorf("logs of %s: %v, %v", node, files, err)
	}
}
