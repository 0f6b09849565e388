package controlplane

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/host/process"
)

// node has a Node as a kubelet with an external cloud provider registers it, and a Deployment that needs the node.
const node = `
apiVersion: v1
kind: Node
metadata:
  name: simulated-0
  labels: {` + SimulatedLabel + `: "true", kubernetes.io/hostname: simulated-0}
spec:
  taints:
  - {key: node.cloudprovider.kubernetes.io/uninitialized, value: "true", effect: NoSchedule}
status:
  capacity: {cpu: "4", memory: 16Gi, pods: "110"}
  allocatable: {cpu: 3860m, memory: 14Gi, pods: "110"}
  nodeInfo: {architecture: amd64, operatingSystem: linux, kubeletVersion: v1.36.3, bootID: "", machineID: "",
    systemUUID: "", kernelVersion: "", osImage: "", containerRuntimeVersion: "", kubeProxyVersion: ""}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example/web}]}
`

// cluster is a control plane with its kubectl.
type cluster struct {
	*ControlPlane
	t       *testing.T
	kubectl string
}

// started runs a control plane in dir until the returned function stops it.
func started(t *testing.T, dir, egress string, binaries Binaries) (*cluster, func()) {
	t.Helper()
	g, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	stop := func() { g.Close(context.WithoutCancel(t.Context()), 20*time.Second) }
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	cp, err := Start(ctx, Config{Processes: g, Binaries: binaries, Egress: egress, Started: func(name string, took time.Duration) {
		t.Logf("%s is ready after %s", name, took.Round(time.Millisecond))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the control plane is ready after %s", time.Since(began).Round(time.Millisecond))
	return &cluster{ControlPlane: cp, t: t, kubectl: binaries[Kubectl]}, stop
}

// run runs kubectl with standard input and returns what it prints.
func (c *cluster) run(input string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Env = []string{"HOME=" + c.t.TempDir()}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// await waits for a condition with kubectl wait.
func (c *cluster) await(condition string, what ...string) {
	c.t.Helper()
	c.run("", slices.Concat([]string{"wait", "--timeout=60s", "--for=" + condition}, what)...)
}

func (c *cluster) field(path string, what ...string) string {
	c.t.Helper()
	return c.run("", slices.Concat([]string{"get", "-o", "jsonpath=" + path}, what)...)
}

// becomes waits until a field has a value. A failure reports the last value.
func (c *cluster) becomes(want, path string, what ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	args := slices.Concat([]string{"--kubeconfig", c.Kubeconfig, "get", "--watch", "-o", `jsonpath=` + path + `{"\n"}`}, what)
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Env = []string{"HOME=" + c.t.TempDir()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed: what it says is not of interest
	}()
	var got []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == want {
			return
		}
		got = append(got, lines.Text())
	}
	c.t.Fatalf("%s of %s is not %q but was in turn %q", path, what, want, got)
}

// TestCluster builds and runs the real control plane with a simulated node. The first build takes minutes.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a real control plane: not in short mode")
	}
	binaries, err := Build(t.Context(), BuildOptions{Progress: func(s Step) {
		t.Logf("%s %s %s %s", s.Program, s.Version, s.State, s.Took.Round(100*time.Millisecond))
	}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	way, authority := startEgress(t)
	c, stop := started(t, dir, way.socket, binaries)
	versions := c.run("", "version")
	for _, want := range []string{"Client Version: v1.36.3", "Server Version: v1.36.3"} {
		if !strings.Contains(versions, want) {
			t.Errorf("kubectl version lacks %q:\n%s", want, versions)
		}
	}
	if got := c.run("", "get", "--raw", "/.well-known/openid-configuration"); !strings.Contains(got,
		`"jwks_uri":"https://kubernetes.default.svc.cluster.local/openid/v1/jwks"`) {
		t.Errorf("the issuer's configuration is %s", got)
	}
	c.reachesServices(way, authority)
	c.registersAndRuns()
	c.holdsNodePrograms()
	c.givesUpAndComesBack()
	admin, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	stop()

	again, _ := started(t, dir, way.socket, binaries)
	kept, err := os.ReadFile(again.Kubeconfig)
	if err != nil || string(kept) != string(admin) {
		t.Errorf("the second start wrote another kubeconfig (%v)", err)
	}
	again.continues()
}

// registersAndRuns checks that KWOK makes a new node Ready, and leaves the taint and the addresses to the cloud provider.
func (c *cluster) registersAndRuns() {
	c.t.Helper()
	c.run(node, "apply", "-f", "-")
	c.await("condition=Ready", "node/simulated-0")
	// Kubernetes removes its own taint some time after the node is Ready.
	c.becomes("node.cloudprovider.kubernetes.io/uninitialized  ", "{.spec.taints[*].key} {.spec.providerID} {.status.addresses}",
		"node/simulated-0")
	c.run("", "patch", "node", "simulated-0", "--subresource=status", "-p",
		`{"status":{"addresses":[{"type":"InternalIP","address":"10.240.0.4"}]}}`)
	c.run("", "taint", "node", "simulated-0", "node.cloudprovider.kubernetes.io/uninitialized-")
	c.await("condition=Available", "deployment/web")
	c.differentAddresses(2)
	if got := c.field("{.items[*].status.hostIP}", "pods"); got != "10.240.0.4 10.240.0.4" {
		c.t.Errorf("the pods run on %s", got)
	}
}

// givesUpAndComesBack removes the label of a node, as a power-off does, and restores it.
func (c *cluster) givesUpAndComesBack() {
	c.t.Helper()
	began := time.Now()
	c.run("", "label", "node", "simulated-0", SimulatedLabel+"-")
	c.await("condition=Ready=Unknown", "node/simulated-0")
	c.t.Logf("the node is NotReady after %s", time.Since(began).Round(100*time.Millisecond))
	c.await("condition=Ready=False", "pods", "--all")
	began = time.Now()
	c.run("", "label", "node", "simulated-0", SimulatedLabel+"=true")
	c.await("condition=Ready", "node/simulated-0")
	c.t.Logf("the node is Ready again after %s", time.Since(began).Round(100*time.Millisecond))
	c.await("condition=Ready", "pods", "--all")
	if got := c.field("{.status.addresses[*].address}", "node/simulated-0"); got != "10.240.0.4" {
		c.t.Errorf("the node's addresses are now %s", got)
	}
}

// continues checks a restarted cluster: it has its objects, and new pods start at once.
func (c *cluster) continues() {
	c.t.Helper()
	if got := c.field("{.status.addresses[*].address}", "node/simulated-0"); got != "10.240.0.4" {
		c.t.Errorf("the node's addresses are now %s", got)
	}
	c.run("", "scale", "deployment/web", "--replicas=5")
	c.await("jsonpath={.status.readyReplicas}=5", "deployment/web")
	c.differentAddresses(5)

	file, err := c.IssueKubeconfig("viewer", "alice", "viewers")
	if err != nil {
		c.t.Fatal(err)
	}
	if got := c.run("", "--kubeconfig", file, "auth", "whoami", "-o",
		"jsonpath={.status.userInfo.username} {.status.userInfo.groups}"); got != `alice ["viewers","system:authenticated"]` {
		c.t.Errorf("the issued kubeconfig is for %s", got)
	}
}

func (c *cluster) differentAddresses(pods int) {
	c.t.Helper()
	addresses := strings.Fields(c.field("{.items[*].status.podIP}", "pods"))
	slices.Sort(addresses)
	if len(slices.Compact(slices.Clone(addresses))) != pods {
		c.t.Errorf("%d pods have addresses %v", pods, addresses)
	}
}
