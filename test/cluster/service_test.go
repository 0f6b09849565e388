package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/testkit"
)

// TestCluster is the first hour with a cluster. Its parts share one cluster, and each leaves it as it
// was.
func TestCluster(t *testing.T) {
	c := startUp(t, newDir(t))
	before := testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)
	for _, part := range []struct {
		name string
		test func(*cluster)
	}{
		{"nodes are initialized", checkNodes},
		{"the printed commands work as printed", printedCommands},
		{"life of external Services", externalServices},
		{"a bad annotation hurts one Service only", badAnnotation},
		{"source ranges", sourceRanges},
		{"many Services at once", manyServices},
		{"the directory is in use", inUse},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(c.in(t)) })
	}
	if d := cmp.Diff(before, testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)); d != "" {
		t.Errorf("Azure is not as it was before the Services (-before +after):\n%s", d)
	}
	t.Run("machines come and go", func(t *testing.T) { machines(c.in(t)) })
	c.stop(interrupt)
}

// checkNodes compares what Kubernetes has of the nodes with their machines.
func checkNodes(c *cluster) {
	t, nodes := c.t, c.nodes()
	if len(nodes) != 3 {
		t.Errorf("%d nodes, want the 3 that are made unless asked otherwise", len(nodes))
	}
	for _, vm := range c.instances() {
		checkNode(c, nodes, vm.ID, strings.ToLower(vm.Properties.OSProfile.ComputerName), vm.Zones)
	}
	for _, n := range nodes {
		if taint(n, "node.cloudprovider.kubernetes.io/uninitialized") || condition(n, corev1.NodeReady) != corev1.ConditionTrue {
			t.Errorf("node %s has the taints %v and the conditions %v", n.Name, n.Spec.Taints, n.Status.Conditions)
		}
	}
}

func checkNode(c *cluster, nodes []corev1.Node, vm azure.ID, name string, zones []string) {
	c.t.Helper()
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
	if i < 0 {
		c.t.Errorf("no node %s for %s", name, vm)
		return
	}
	n := nodes[i]
	if got := azure.ID(strings.TrimPrefix(n.Spec.ProviderID, "azure://")); !got.Equal(vm) {
		c.t.Errorf("node %s has the provider id %s, its machine is %s", name, n.Spec.ProviderID, vm)
	}
	want := map[string]string{
		corev1.LabelInstanceTypeStable: "Standard_D2s_v5",
		corev1.LabelTopologyRegion:     "westeurope",
		corev1.LabelTopologyZone:       "westeurope-" + strings.Join(zones, ""),
	}
	for key, value := range want {
		if n.Labels[key] != value {
			c.t.Errorf("node %s has the label %s=%s, want %s", name, key, n.Labels[key], value)
		}
	}
	var internal, host string
	for _, a := range n.Status.Addresses {
		switch a.Type {
		case corev1.NodeInternalIP:
			internal = a.Address
		case corev1.NodeHostName:
			host = a.Address
		}
	}
	if !strings.HasPrefix(internal, "10.240.0.") || host != name {
		c.t.Errorf("node %s has the addresses %v", name, n.Status.Addresses)
	}
}

// printedCommands runs the commands that `kaz local up` suggests, in a shell without kubectl and kaz
// in its PATH.
func printedCommands(c *cluster) {
	_, after, found := strings.Cut(c.up.out.String(), "The cluster is up.")
	var script []string
	for line := range strings.Lines(after) {
		command, indented := strings.CutPrefix(line, "  ")
		if question, is := strings.CutPrefix(command, "dig "); is { // a program of the machine, which it may lack
			dig, err := exec.LookPath("dig")
			command, indented = dig+" "+question, err == nil
		}
		if indented {
			script = append(script, mayJoinLater(strings.TrimSpace(command)), "\n")
		}
	}
	if !found || len(script) < 10 {
		c.t.Fatalf("nothing to try is printed:\n%s", c.up.out)
	}
	shell := exec.CommandContext(c.t.Context(), "/bin/bash", "-e", "-o", "pipefail", "-c", strings.Join(script, ""))
	shell.Dir = c.t.TempDir()
	shell.Env = []string{"HOME=" + shell.Dir, "PATH=/var/empty"}
	began := time.Now()
	said, err := shell.CombinedOutput()
	if err != nil {
		c.t.Errorf("%v:\n%s\nwrote:\n%s", err, strings.Join(script, ""), said)
	}
	for _, want := range []string{"nodes0-000002", "deployment.apps/web created", "service/web exposed", "EXTERNAL-IP",
		c.service("web").Status.LoadBalancer.Ingress[0].IP, "Service default/web: ", "loadBalancers", "cloud-controller-manager"} {
		if !strings.Contains(string(said), want) {
			c.t.Errorf("%q is missing in:\n%s", want, said)
		}
	}
	c.t.Logf("printed commands: %s", short(time.Since(began)))
	c.must("", "wait", "deployment/web", "--for=condition=Available", "--timeout=1m")
	c.must("", "delete", "deployment,service", "web", "--timeout=1m")
}

// mayJoinLater is a command that succeeds also if nodes join the pool a moment later: then kaz explain says so and exits
// with 2.
func mayJoinLater(command string) string {
	if strings.HasPrefix(command, "kaz explain") {
		return command + " || test $? = 2"
	}
	return command
}

func (c *cluster) env() testkit.Env {
	return testkit.Env{
		Azure: c.azure, Group: c.group(), ClusterName: "kaz",
		SecurityGroup: c.group().Resource(network.SecurityGroups, "kaz-nsg"),
		ScaleSets:     c.scaleSets(),
		Serve:         func(_ context.Context, s *corev1.Service) (*corev1.Service, error) { return c.apply(s) },
		Remove:        func(_ context.Context, s *corev1.Service) error { return c.remove(s.Name) },
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web}]}
`

func externalServices(c *cluster) {
	c.must(deployment, "apply", "-f", "-")
	c.must("", "rollout", "status", "deployment/web", "--timeout=1m")
	testkit.ExternalService(c.t, c.env())
	c.must("", "delete", "deployment", "web", "--timeout=1m")
}

// badAnnotation checks that an invalid annotation causes an event on its Service and does not affect
// other Services.
func badAnnotation(c *cluster) {
	const key, value = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout", "soon"
	bad := testkit.NewService("bad", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
	bad.Annotations = map[string]string{key: value}
	text, err := manifest(bad)
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(text, "apply", "-f", "-")
	wait(c.t, time.Minute, "an event that names the annotation", func() string {
		events := c.events("Service", "bad", "SyncLoadBalancerFailed")
		for _, e := range events {
			if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, key) && strings.Contains(e.Message, value) &&
				strings.Contains(e.Message, "allowed is") {
				c.t.Logf("event: %s", e.Message)
				return ""
			}
		}
		return fmt.Sprintf("events: %+v", events)
	})
	good := testkit.NewService("good", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
	if _, err := c.apply(good); err != nil {
		c.t.Error(err)
	}
	if got := c.service("bad").Status.LoadBalancer.Ingress; len(got) > 0 {
		c.t.Errorf("the Service with the bad annotation has the address %v", got)
	}
	// It is served as soon as the value is allowed.
	bad.Annotations[key] = "10"
	served, err := c.apply(bad)
	if err != nil {
		c.t.Fatal(err)
	}
	lb := read[network.LoadBalancer](c, c.group().Resource(network.LoadBalancers, "kaz"))
	timeouts := map[int32]int{}
	for _, r := range lb.Properties.LoadBalancingRules {
		timeouts[*r.Properties.IdleTimeoutInMinutes]++
	}
	if d := cmp.Diff(map[int32]int{4: 1, 10: 1}, timeouts); d != "" {
		c.t.Errorf("rules by idle timeout, with %s at 10:\n%s", served.Name, d)
	}
	c.removeAll("bad", "good")
}

func (c *cluster) removeAll(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := c.remove(name); err != nil {
			c.t.Error(err)
		}
	}
}

// sourceRanges checks that only the given ranges are allowed, also after a change.
func sourceRanges(c *cluster) {
	s := testkit.NewService("office", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
	for _, ranges := range [][]string{{"203.0.113.0/24", "198.51.100.7/32"}, {"192.0.2.0/24"}} {
		s.Spec.LoadBalancerSourceRanges = ranges
		served, err := c.apply(s)
		if err != nil {
			c.t.Fatal(err)
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(ranges)), c.allowed(served.Status.LoadBalancer.Ingress[0].IP)); d != "" {
			c.t.Errorf("sources allowed to reach the Service:\n%s", d)
		}
	}
	c.removeAll("office")
}

// allowed are the sources that may reach an address.
func (c *cluster) allowed(address string) []string {
	c.t.Helper()
	var sources []string
	for _, r := range read[network.SecurityGroup](c, c.group().Resource(network.SecurityGroups, "kaz-nsg")).Properties.SecurityRules {
		p := r.Properties
		to := p.DestinationAddressPrefixes
		if p.DestinationAddressPrefix != nil {
			to = append(to, *p.DestinationAddressPrefix)
		}
		if p.Access != "Allow" || !slices.Contains(to, address) {
			continue
		}
		sources = append(sources, p.SourceAddressPrefixes...)
		if p.SourceAddressPrefix != nil {
			sources = append(sources, *p.SourceAddressPrefix)
		}
	}
	slices.Sort(sources)
	return sources
}

// manyServices checks that Services that are applied together share the writes of shared resources.
func manyServices(c *cluster) {
	const count = 100
	var all strings.Builder
	for i := range count {
		s := testkit.NewService(fmt.Sprintf("many-%d", i), corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
		text, err := manifest(s)
		if err != nil {
			c.t.Fatal(err)
		}
		all.WriteString("---\n" + text)
	}
	log, began := c.requestLog(), time.Now()
	c.must(all.String(), "apply", "-f", "-")
	applied := time.Since(began)
	var addresses []string
	wait(c.t, 2*time.Minute, "an address for each Service", func() string {
		if addresses = c.addresses(); len(addresses) == count {
			return ""
		}
		return fmt.Sprintf("%d of %d have one", len(addresses), count)
	})
	took := time.Since(began)
	if different := len(slices.Compact(addresses)); different != count {
		c.t.Errorf("%d addresses for %d Services", different, count)
	}
	_, writes := log.since(c.t)
	balancer, group := 0, 0
	for _, w := range writes {
		if strings.HasPrefix(w, "PUT ") && strings.Contains(w, "/loadBalancers/") {
			balancer++
		}
		if strings.HasPrefix(w, "PUT ") && strings.Contains(w, "/networkSecurityGroups/") {
			group++
		}
	}
	if balancer == 0 || balancer >= count || group == 0 || group >= count {
		c.t.Errorf("%d writes of the load balancer and %d of the security group for %d Services", balancer, group, count)
	}
	c.t.Logf("%d Services: applied in %s, all served after %s, with %d writes of the load balancer and %d of the security group",
		count, short(applied), short(took), balancer, group)
	began = time.Now()
	// kubectl would wait for one Service after the other.
	c.must("", "delete", "service", "--field-selector=spec.type=LoadBalancer", "--wait=false")
	wait(c.t, 2*time.Minute, "the end of the Services", func() string {
		left := get[corev1.ServiceList](c, "services", "--field-selector=spec.type=LoadBalancer").Items
		if len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("%d are left", len(left))
	})
	c.t.Logf("%d Services deleted in %s", count, short(time.Since(began)))
}

// addresses are those of all Services of type LoadBalancer, in order.
func (c *cluster) addresses() []string {
	c.t.Helper()
	var all []string
	for _, s := range get[corev1.ServiceList](c, "services", "--field-selector=spec.type=LoadBalancer").Items {
		for _, i := range s.Status.LoadBalancer.Ingress {
			all = append(all, i.IP)
		}
	}
	slices.Sort(all)
	return all
}

// inUse checks that a second `up` does not affect the first.
func inUse(c *cluster) {
	pid := fmt.Sprintf("process %d", c.status.UpPID)
	refuses(c.t, exec.Command(kaz(), "local", "up", "--dir", c.dir), c.dir, "in use", pid)
	refuses(c.t, exec.Command(kaz(), "local", "up", "--detach", "--dir", c.dir), c.dir, "in use", pid)
	if again := attach(c.t, c.dir); again.status.UpPID != c.status.UpPID {
		c.t.Errorf("process %d runs the cluster now, it was %d", again.status.UpPID, c.status.UpPID)
	}
	for _, name := range []string{"azure.json", "env.sh", "kubeconfig", "azure-state-running.json"} {
		info, err := os.Stat(filepath.Join(c.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			c.t.Errorf("%s: %v %v, want it to be its owner's alone", name, info, err)
		}
	}
}
