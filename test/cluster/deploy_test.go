package cluster_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/testkit"
)

// TestDeploy installs the chart. The API server accepts its objects. Its commands run as processes
// with the chart's arguments, with the rights of its service accounts and of deploy/roles. The
// cluster must reach the same state as with `kaz local up`.
func TestDeploy(t *testing.T) {
	want := reference(t)
	identities := filepath.Join(t.TempDir(), "identities.yaml")
	write(t, identities, "managedIdentities:\n- {name: cluster, clientId: "+clusterIdentity+", objectId: "+clusterPrincipal+
		", system: true}\n")
	args := []string{"--access-control", "on", "--identities", identities, "--without", "cloud-controller-manager"}
	if leavesOutNodeManager(t) {
		args = append(args, "--without", "cloud-node-manager")
	}
	c := startUp(t, newDir(t), args...)
	c.grantRoles(clusterPrincipal)
	d := c.install()
	d.run()

	wait(t, installedWithin, "the state that kaz local up brings a cluster to", func() string {
		d.alive(t)
		return cmp.Diff(want, c.state())
	})
	c.routed()
	t.Run("life of external Services", func(t *testing.T) { testkit.ExternalService(t, c.in(t).env()) })
	t.Run("machines come and go", func(t *testing.T) { machines(c.in(t)) })
	t.Run("a bad annotation hurts one Service only", func(t *testing.T) { badAnnotation(c.in(t)) })
	t.Run("metrics with authorization", func(t *testing.T) { d.metrics(t) })
	t.Run("a machine that is another", func(t *testing.T) { d.contradiction(t) })
	t.Run("several load balancers, by a change of the Secret", func(t *testing.T) { d.severalBalancers(t) })
	t.Run("rights in Kubernetes are used, all of them", func(t *testing.T) {
		for program, o := range d.observers {
			c.in(t).narrow(program, o)
		}
	})
	for _, p := range d.programs {
		select {
		case <-p.ended:
		default:
			stopped(t, p, syscall.SIGTERM)
		}
	}
	c.stop(syscall.SIGTERM)
}

// installedWithin is long enough for a busy machine.
const installedWithin = 3 * time.Minute

// The managed identity of the cluster.
const (
	clusterIdentity  = "cccccccc-0000-4000-8000-000000000001"
	clusterPrincipal = "cccccccc-0000-4000-8000-000000000002"
)

// reference returns the state of a cluster with `kaz local up`.
func reference(t *testing.T) map[string]nodeState {
	t.Helper()
	dir := newDir(t)
	c := startUp(t, dir)
	c.routed()
	state := c.finalState()
	c.stop(syscall.SIGTERM)
	return state
}

// leavesOutNodeManager reports whether kaz local up runs no cloud-node-manager.
func leavesOutNodeManager(t *testing.T) bool {
	t.Helper()
	return strings.Contains(runKaz(t, "local", "up", "--help"), "cloud-node-manager")
}

// nodeState is the final state of a node, independent of the order of nodes.
type nodeState struct {
	ProviderID string
	Labels     map[string]string
	Addresses  []string
	Taints     []string
	Conditions map[string]string
}

// state returns the states of all nodes, without pod CIDRs: their order is random. Another test
// compares the routes with them.
func (c *cluster) state() map[string]nodeState {
	c.t.Helper()
	all := map[string]nodeState{}
	for _, n := range c.nodes() {
		s := nodeState{ProviderID: n.Spec.ProviderID, Labels: maps.Clone(n.Labels), Conditions: map[string]string{}}
		// Only the machine's metadata has these labels, and without a node manager they are missing.
		maps.DeleteFunc(s.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "topology.kubernetes.azure.com/") })
		for _, a := range n.Status.Addresses {
			s.Addresses = append(s.Addresses, string(a.Type)+" "+a.Address)
		}
		slices.Sort(s.Addresses)
		for _, taint := range n.Spec.Taints {
			s.Taints = append(s.Taints, taint.ToString())
		}
		for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeNetworkUnavailable} {
			s.Conditions[string(kind)] = string(condition(n, kind))
		}
		all[n.Name] = s
	}
	return all
}

// finalState returns the states of all nodes once they are ready and have no taint. The node lifecycle controller removes the taint
// not-ready of a node only after the node says that it is ready.
func (c *cluster) finalState() map[string]nodeState {
	c.t.Helper()
	var all map[string]nodeState
	wait(c.t, installedWithin, "nodes that are ready and have no taint", func() string {
		all = c.state()
		for name, s := range all {
			if s.Conditions[string(corev1.NodeReady)] != string(corev1.ConditionTrue) || len(s.Taints) > 0 {
				return fmt.Sprintf("%s: taints %v, conditions %v", name, s.Taints, s.Conditions)
			}
		}
		return ""
	})
	return all
}

// role is a file of deploy/roles.
type role struct {
	Name, Description string
	Actions           []string
}

// grantRoles creates the roles of deploy/roles and assigns them to an identity. One role is assigned at the resource group of
// the cluster, the other at the subscription.
func (c *cluster) grantRoles(principal string) {
	c.t.Helper()
	subscription := azure.SubscriptionID(c.status.Subscription)
	for i, at := range []struct {
		file  string
		scope azure.ID
	}{
		{"cloud-controller-manager.json", c.group()},
		{"cloud-controller-manager-subscription.json", subscription},
	} {
		var r role
		if err := json.Unmarshal(readFile(c.t, filepath.Join("..", "..", "deploy", "roles", at.file)), &r); err != nil {
			c.t.Fatalf("%s: %v", at.file, err)
		}
		definition := subscription.Resource("Microsoft.Authorization/roleDefinitions", fmt.Sprintf("dddddddd-0000-4000-8000-%012d", i))
		c.put(definition, map[string]any{"properties": map[string]any{
			"roleName": r.Name, "description": r.Description, "assignableScopes": []any{subscription},
			"permissions": []any{map[string]any{"actions": r.Actions}},
		}})
		c.put(at.scope.Resource("Microsoft.Authorization/roleAssignments", fmt.Sprintf("eeeeeeee-0000-4000-8000-%012d", i)), map[string]any{
			"properties": map[string]any{"roleDefinitionId": definition, "principalId": principal, "principalType": "ServicePrincipal"},
		})
	}
}

func (c *cluster) put(id azure.ID, body any) {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.azure.Put(c.t.Context(), azure.Write{ID: id, Body: text}); err != nil {
		c.t.Fatal(err)
	}
}

// installation is an installed chart.
type installation struct {
	c         *cluster
	health    string // host:port of the cloud-controller-manager's health and metrics
	observers map[string]*observer
	programs  []*program
	// nodeManager starts a pod of the DaemonSet.
	nodeManager func(node string, vm azure.ID) *program
}

// install renders the chart for the cluster and gives it to the API server.
func (c *cluster) install() *installation {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	d := &installation{c: c, health: l.Addr().String(), observers: map[string]*observer{}}
	if err := l.Close(); err != nil {
		c.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(d.health)
	values := filepath.Join(c.t.TempDir(), "values.yaml")
	write(c.t, values, `
infra: {clusterName: kaz}
cloudControllerManager: {cloudConfigSecretName: azure-cloud-config, enableDynamicReloading: true, clusterCIDR: 10.244.0.0/14, serviceClusterIPRange: 10.96.0.0/16, bindAddress: 127.0.0.1, securePort: "`+port+`", metricsPort: 0, logVerbosity: 0}
cloudNodeManager: {enableHealthProbeProxy: true, securePort: 0, metricsPort: 0, waitRoutes: true, nodeStatusUpdateFrequency: 5s, windows: {enabled: true}}
`)
	began := time.Now()
	chart, errs, err := output(c.t, "", "go", "-C", filepath.Join("..", "chart"), "run", ".", "-values", values)
	if err != nil {
		c.t.Fatalf("render the chart: %v\n%s", err, errs)
	}
	c.t.Logf("chart rendered in %s", short(time.Since(began)))
	c.configure(map[string]any{"cloudConfigType": "merge"})
	c.t.Logf("%s", c.must(chart, "apply", "--server-side", "--validate=strict", "-f", "-"))
	c.must("", "apply", "--dry-run=server", "--validate=strict", "-f", filepath.Join("..", "..", "deploy", "manifests"))
	return d
}

// TestChartFlags: every flag that the chart can render is one of the program's.
func TestChartFlags(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	write(t, values, `
cloudControllerManager: {bindAddress: 127.0.0.1, cloudConfigSecretName: c, enableDynamicReloading: true, serviceClusterIPRange: 10.96.0.0/16,
  leaderElectLeaseDuration: 15s, leaderElectRenewDeadline: 10s, leaderElectRetryPeriod: 2s, controllerStartInterval: 0s, contentionProfiling: false,
  http2MaxStreamsPerConnection: 100, kubeAPIBurst: 30, kubeAPIContentType: application/json, kubeAPIQPS: 20, kubeconfig: /a/b, master: https://x,
  minResyncPeriod: 12h, nodeStatusUpdateFrequency: 5m, profiling: false}
cloudNodeManager: {useInstanceMetadata: false, cloudConfig: /a/b, waitRoutes: true, nodeStatusUpdateFrequency: 5m, enableDeprecatedBetaTopologyLabels: true,
  kubeAPIBurst: 30, kubeAPIContentType: application/json, kubeAPIQPS: 20, kubeconfig: /a/b, master: https://x, minResyncPeriod: 12h,
  windows: {enabled: true, kubeconfig: /c/d}, enableHealthProbeProxy: true}
`)
	text, errs, err := output(t, "", "go", "-C", filepath.Join("..", "chart"), "run", ".", "-values", values)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	flags := regexp.MustCompile(`(?m)^ *- --([a-z0-9-]+)=`)
	seen := 0
	for document := range strings.SplitSeq(text, "\n---\n") {
		command := regexp.MustCompile(`command: \[([a-z-]+)`).FindStringSubmatch(document)
		if command == nil {
			continue
		}
		help, err := exec.CommandContext(t.Context(), filepath.Join(programs, command[1]), "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%s --help: %v", command[1], err)
		}
		for _, m := range flags.FindAllStringSubmatch(document, -1) {
			seen++
			if !regexp.MustCompile(`--` + m[1] + `[ =\[]`).Match(help) {
				t.Errorf("%s has no flag --%s", command[1], m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d flags", seen)
	}
}

// run starts the programs of the Deployment and the DaemonSet: one controller manager, and a node
// manager for each node.
func (d *installation) run() {
	c := d.c
	c.t.Helper()
	ccm := get[appsv1.Deployment](c, "deployment", "cloud-controller-manager", "-n", "kube-system").Spec.Template.Spec
	kubeconfig := c.account(ccm.ServiceAccountName, d.observer(ccm))
	d.start(ccm, nil, map[string]string{"/etc/kubernetes/azure.json": c.status.CloudConfig},
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)

	cnm := get[appsv1.DaemonSet](c, "daemonset", "cloud-node-manager", "-n", "kube-system").Spec.Template.Spec
	d.nodeManager = func(node string, vm azure.ID) *program {
		// The metadata service of a machine is only reachable from the machine.
		return d.start(cnm, map[string]string{"spec.nodeName": node}, nil, "--metadata-endpoint="+c.metadata(vm),
			"--kubeconfig="+c.accountOn(cnm.ServiceAccountName, node, d.observer(cnm)))
	}
	for _, vm := range c.instances() {
		d.nodeManager(nodeOf(vm), vm.ID)
	}
	// The program of a later machine waits for its node.
	d.nodeManager("nodes0-000003", c.scaleSet().Child("virtualMachines", "3"))
}

// contradiction runs a node manager on the machine of another node. It must report that in an Event.
func (d *installation) contradiction(t *testing.T) {
	c := d.c.in(t)
	vms := c.instances()
	odd := d.nodeManager(nodeOf(vms[0]), vms[1].ID)
	wait(t, time.Minute, "an event of the contradiction", func() string {
		if len(c.events("Node", nodeOf(vms[0]), "MachineContradiction")) > 0 {
			return ""
		}
		return "there is none"
	})
	stopped(t, odd, syscall.SIGTERM)
}

// severalBalancers changes the Secret: the program restarts its controllers in the same process, and
// then also watches namespaces and endpoints.
func (d *installation) severalBalancers(t *testing.T) {
	c := d.c.in(t)
	c.configure(map[string]any{
		"cloudConfigType": "merge", "loadBalancerBackendPoolConfigurationType": "nodeIP",
		"multipleStandardLoadBalancerConfigurations": []any{
			map[string]any{"name": "kaz", "primaryVMSet": "nodes0"}, map[string]any{"name": "second", "primaryVMSet": "nodes1"},
		},
	})
	o := d.observers["cloud-controller-manager"]
	wait(t, installedWithin, "a look at namespaces and endpoints", func() string {
		d.alive(t)
		if o.has(access{"watch", "", "namespaces"}) && o.has(access{"watch", "discovery.k8s.io", "endpointslices"}) {
			return ""
		}
		return "there is none"
	})
	if _, err := c.apply(testkit.NewService("after",
		corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})); err != nil {
		t.Error(err)
	}
	c.removeAll("after")
}

// configure writes the Secret with the cloud configuration.
func (c *cluster) configure(keys map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(keys)
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "azure-cloud-config", "namespace": "kube-system"},
		"stringData": map[string]any{"cloud-config": string(text)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(string(secret), "apply", "-f", "-")
}

// alive fails the test if a program failed without being stopped.
func (d *installation) alive(t *testing.T) {
	t.Helper()
	for _, p := range d.programs {
		select {
		case <-p.ended:
			if p.err != nil {
				t.Fatalf("%s has ended: %v", p.cmd, p.err)
			}
		default:
		}
	}
}

// metadata returns the URL of a machine's metadata service in the local Azure.
func (c *cluster) metadata(vm azure.ID) string {
	c.t.Helper()
	var info struct{ ARMHTTP string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "azure-state-running.json")), &info); err != nil {
		c.t.Fatal(err)
	}
	return info.ARMHTTP + "/vm" + string(vm)
}

// observer observes the requests of a pod's service account.
func (d *installation) observer(p corev1.PodSpec) *observer {
	d.c.t.Helper()
	name := p.ServiceAccountName
	if d.observers[name] == nil {
		d.observers[name] = d.c.observe()
	}
	return d.observers[name]
}

// variable matches a reference to an environment variable in arguments, as Kubernetes writes it.
var variable = regexp.MustCompile(`\$\(([A-Za-z0-9_]+)\)`)

// start runs a pod's container as a process. The map fields has the values that the kubelet would fill in. The map paths has
// replacements for paths that the kubelet would mount. Further arguments stand for the rest of the pod's environment.
func (d *installation) start(p corev1.PodSpec, fields, paths map[string]string, further ...string) *program {
	c := d.c
	c.t.Helper()
	container := p.Containers[0]
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil {
			env[e.Name] = fields[e.ValueFrom.FieldRef.FieldPath]
		}
	}
	var args []string
	for _, a := range slices.Concat(container.Command[1:], container.Args) {
		a = variable.ReplaceAllStringFunc(a, func(ref string) string { return env[variable.FindStringSubmatch(ref)[1]] })
		for from, to := range paths {
			a = strings.ReplaceAll(a, from, to)
		}
		args = append(args, a)
	}
	script := `. "$1" && shift && unset KUBECONFIG && exec "$@"`
	cmd := exec.CommandContext(c.t.Context(), "/bin/bash", slices.Concat([]string{"-c", script, "bash", c.status.Environment,
		filepath.Join(programs, container.Command[0])}, args, further)...)
	cmd.Env = cmd.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	running := start(c.t, cmd)
	d.programs = append(d.programs, running)
	return running
}

// metrics reads metrics with an authorized service account, with another one, and without a token.
func (d *installation) metrics(t *testing.T) {
	c := d.c.in(t)
	c.must("", "create", "clusterrole", "scraper", "--verb=get", "--non-resource-url=/metrics")
	for _, name := range []string{"scraper", "outsider"} {
		c.must("", "create", "serviceaccount", name, "-n", "default")
	}
	c.must("", "create", "clusterrolebinding", "scraper", "--clusterrole=scraper", "--serviceaccount=default:scraper")
	for _, one := range []struct {
		account string
		want    int
	}{{"scraper", http.StatusOK}, {"outsider", http.StatusForbidden}, {"", http.StatusForbidden}} {
		token := ""
		if one.account != "" {
			token = strings.TrimSpace(c.must("", "create", "token", one.account, "-n", "default"))
		}
		// The API server applies new roles after a moment.
		wait(t, time.Minute, "metrics for "+one.account, func() string {
			if got := answerTo(t, "https://"+d.health+"/metrics", token); got != one.want {
				return fmt.Sprintf("status %d, want %d", got, one.want)
			}
			return ""
		})
	}
}

// answerTo returns the HTTP status of a request with a token, 0 without a response.
func answerTo(t *testing.T, url, token string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // its certificate is made anew at each start
		DisableKeepAlives: true,
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
