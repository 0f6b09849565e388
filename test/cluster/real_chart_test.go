package cluster_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
)

// TestRealChart installs the chart in a cluster with real nodes. The images of deploy/images run as pods with the rights of
// deploy/roles. They find Azure by its own host names, and get tokens from the metadata service. The cluster must reach the
// same state as with `kaz local up`.
func TestRealChart(t *testing.T) {
	needsReal(t)
	images := chartImages(t)
	reference := startUp(t, newDir(t), "--nodes-kind", "real", "--nodes", "2")
	reference.routed()
	want := reference.finalState()
	reference.stop(syscall.SIGTERM)

	args := []string{
		"--nodes-kind", "real", "--nodes", "2", "--access-control", "on",
		"--without", "cloud-controller-manager", "--without", "cloud-node-manager",
	}
	for _, file := range images {
		args = append(args, "--image", file)
	}
	c := startUp(t, newDir(t), args...)
	c.grantRoles(c.identify())
	values := c.installPods()
	wait(t, installedWithin, "the state that kaz local up brings a cluster to", func() string {
		if why := cmp.Diff(want, c.state()); why != "" {
			return why + c.troubles()
		}
		return ""
	})
	c.routed()
	c.helmTest(values)
	c.must(workloads, "apply", "-f", "-")
	c.must("", "rollout", "status", "daemonset/web", "--timeout=2m")
	c.answers("http://" + c.expose("external", "LoadBalancer", nil, httpPort) + "/")
	c.switchAndBack()
	c.removeServices()
	if t.Failed() {
		t.Log(c.troubles())
	}
	c.stop(syscall.SIGTERM)
}

// switchAndBack runs the commands of docs/guides/upgrade.md: it stops the controller in charge, decides beside none, starts a controller,
// and looks at what that writes to Azure. At each step kaz shadow finds nothing to write.
func (c *cluster) switchAndBack() {
	c.t.Helper()
	const page = "docs/guides/upgrade.md"
	home := c.homeOf()
	run := func(want int, lines ...string) {
		c.t.Helper()
		if said, got := c.runPrinted(home, lines); got != want {
			c.t.Errorf("%q: exit status %d, want %d:\n%s", lines, got, want, said)
		}
	}
	run(0, "kaz shadow")
	run(0, c.printedFrom(page, "kubectl -n kube-system scale deployment cloud-controller-manager", 1)...)
	c.must("", "-n", "kube-system", "wait", "pod", "--for=delete", "-l", "component=cloud-controller-manager", "--timeout=2m")
	run(0, "kaz shadow")
	run(0, "kubectl -n kube-system scale deployment cloud-controller-manager --replicas=1",
		"kubectl -n kube-system rollout status deployment cloud-controller-manager --timeout=2m")
	leads := c.printedFrom(page, "kubectl -n kube-system get lease cloud-controller-manager", 2)
	run(0, leads[0])
	run(1, "kubectl -n kube-system logs deployment/cloud-controller-manager > $HOME/log",
		"grep 'azure changed' $HOME/log") // grep finds no line
	if !strings.HasSuffix(leads[1], "| grep 'azure changed'") {
		c.t.Errorf("%s has %q, want the command that shows writes to Azure", page, leads[1])
	}
	run(0, "kaz shadow")
}

// chartVersion is the tag of the images.
const chartVersion = "v0.0.1-test"

// chartImages builds the images of what the chart runs, as archives.
func chartImages(t *testing.T) []string {
	t.Helper()
	began := time.Now()
	out := t.TempDir()
	all := []string{"cloud-controller-manager", "cloud-node-manager"}
	said, errs, err := output(t, "", "go", "-C", filepath.Join("..", "..", "deploy", "images"), "run", ".", "-source",
		filepath.Join("..", ".."), "-out", out,
		"-version", chartVersion, "-platforms", "linux/"+runtime.GOARCH, "-programs", all[0]+","+all[1])
	if err != nil {
		t.Fatalf("images: %v\n%s%s", err, said, errs)
	}
	var files []string
	for _, name := range all {
		file := filepath.Join(out, name+".tar")
		if _, errs, err := output(t, "", "tar", "-C", filepath.Join(out, name), "-cf", file, "."); err != nil {
			t.Fatalf("archive of %s: %v\n%s", name, err, errs)
		}
		files = append(files, file)
	}
	t.Logf("images built in %s", short(time.Since(began)))
	return files
}

// identify gives the machines an identity of their own, and returns its object id.
func (c *cluster) identify() string {
	c.t.Helper()
	if _, err := c.azure.Patch(c.t.Context(),
		azure.Write{ID: c.scaleSet(), Body: azure.Document(`{"identity":{"type":"SystemAssigned"}}`)}); err != nil {
		c.t.Fatal(err)
	}
	doc, err := c.azure.Get(c.t.Context(), c.scaleSet())
	if err != nil {
		c.t.Fatal(err)
	}
	var set struct{ Identity struct{ PrincipalID string } }
	if err := json.Unmarshal(doc, &set); err != nil || set.Identity.PrincipalID == "" {
		c.t.Fatalf("identity of the scale set: %v: %s", err, doc)
	}
	return set.Identity.PrincipalID
}

// helmTest runs the pods of helm test, which ask the programs of the chart with their own images.
func (c *cluster) helmTest(values string) {
	c.t.Helper()
	hooks, errs, err := output(c.t, "", "go", "-C", filepath.Join("..", "chart"), "run", ".", "-values", values, "-tests")
	if err != nil {
		c.t.Fatalf("render the tests of the chart: %v\n%s", err, errs)
	}
	c.must(hooks, "apply", "--server-side", "--validate=strict", "-f", "-")
	for _, program := range []string{"cloud-controller-manager", "cloud-node-manager"} {
		c.must("", "-n", "kube-system", "wait", "pod/"+program+"-test", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=2m")
		said := c.must("", "-n", "kube-system", "logs", program+"-test")
		if !strings.Contains(said, "http://"+program+"-test.kube-system.svc:") || !strings.Contains(said, "/metrics answers") {
			c.t.Errorf("the test of %s says %q", program, said)
		}
	}
	c.must(hooks, "delete", "-f", "-")
}

// installPods installs the chart like a user, with the cloud configuration of a machine in Azure as a
// Secret. It names no endpoints. It returns the file of the values.
func (c *cluster) installPods() (values string) {
	c.t.Helper()
	values = filepath.Join(c.t.TempDir(), "values.yaml")
	write(c.t, values, `
infra: {clusterName: kaz}
cloudControllerManager:
  imageTag: `+chartVersion+`
  imagePullPolicy: Never
  replicas: 1
  nodeSelector: {node-role.kubernetes.io/control-plane: null}
  cloudConfig: ""
  cloudConfigSecretName: azure-cloud-config
  caCertDir: /etc/ssl/certs
  clusterCIDR: 10.244.0.0/14
  serviceClusterIPRange: 10.96.0.0/16
cloudNodeManager: {imageTag: `+chartVersion+`, imagePullPolicy: Never, waitRoutes: true}
`)
	chart, errs, err := output(c.t, "", "go", "-C", filepath.Join("..", "chart"), "run", ".", "-values", values)
	if err != nil {
		c.t.Fatalf("render the chart: %v\n%s", err, errs)
	}
	var config map[string]any
	if err := json.Unmarshal(readFile(c.t, c.status.CloudConfig), &config); err != nil {
		c.t.Fatal(err)
	}
	delete(config, "resourceManagerEndpoint")
	config["useInstanceMetadata"] = true
	c.configure(config)
	c.must(chart, "apply", "--server-side", "--validate=strict", "-f", "-")
	return values
}

// troubles returns the pods of the chart that are not ready, with their logs.
func (c *cluster) troubles() string {
	text := ""
	for _, p := range get[corev1.PodList](c, "pods", "-n", "kube-system").Items {
		logs, err := c.kubectl("", "-n", "kube-system", "logs", p.Name, "--tail=15")
		text += fmt.Sprintf("\n%s on %s: %s %v\n%s%v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses, logs,
			reason(err))
	}
	for _, d := range get[appsv1.DeploymentList](c, "deployments", "-n", "kube-system").Items {
		text += fmt.Sprintf("\n%s: %v", d.Name, d.Status.Conditions)
	}
	return text
}
