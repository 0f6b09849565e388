package cluster_test

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/gateway-api/conformance"
	report "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/yaml"
)

// The other flags of the suite are there, too, such as -cleanup-test-resources=false and -debug.
var (
	conformanceTest = flag.String("conformance", "", "short name of the only test of Gateway API's conformance suite to run")
	conformanceDir  = flag.String("conformance-dir", "", "directory of a cluster that runs already, with real nodes and at least "+
		strconv.Itoa(conformanceGateways)+" application gateways, for Gateway API's conformance suite")
)

// gatewayClass is the class of the Gateways that application gateways serve.
const gatewayClass = "azure-application-gateway"

// conformanceGateways is the number of application gateways. Four Gateways exist all the time, one test has five more, and tests with
// Gateways of their own run in parallel.
const conformanceGateways = 20

// skippedConformance returns the tests of the suite that do not run, and why.
func skippedConformance() map[string]string { return map[string]string{} }

// TestGatewayConformance runs Gateway API's own conformance suite against the application gateways of a cluster with real nodes.
func TestGatewayConformance(t *testing.T) {
	c := conformanceCluster(t)
	// The suite takes the features to test from the status of the class.
	c.must("", "wait", "gatewayclass/"+gatewayClass, "--for=condition=Accepted", "--timeout=1m")
	o := c.conformanceOptions()
	began := time.Now()
	t.Run("suite", func(t *testing.T) { conformance.RunConformanceWithOptions(t, o) })
	t.Logf("the suite took %s", short(time.Since(began)))
	if t.Failed() {
		c.logOf("application-gateway-controller")
	}
	if o.RunTest == "" && (*update || !t.Failed()) {
		checkConformancePage(t, readReport(t, o.ReportOutputPath))
	}
	if c.up != nil {
		c.stop(syscall.SIGTERM)
	}
}

// conformanceCluster returns a cluster with the images of the suite: a new one, or that of -conformance-dir.
func conformanceCluster(t *testing.T) *cluster {
	t.Helper()
	if *conformanceDir == "" {
		needsReal(t)
		return startUp(t, newDir(t), "--nodes-kind", "real", "--nodes", "3", "--gateways", strconv.Itoa(conformanceGateways),
			"--image", strings.Join(conformanceImages(t), ","))
	}
	c := attach(t, *conformanceDir)
	for _, archive := range conformanceImages(t) {
		for _, n := range c.nodes() {
			c.importImages(n.Name, archive)
		}
	}
	return c
}

// importImages imports an archive into a node. A machine does not see the temporary files of the host.
func (c *cluster) importImages(node, archive string) {
	c.t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(c.t.Context(), kaz(), "local", "ssh", "--dir", c.dir, node, "--", "ctr", "--address",
		"/run/containerd/containerd.sock", "--namespace", "k8s.io", "images", "import", "--all-platforms=false", "-")
	cmd.Stdin = file
	if said, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("import %s into %s: %v\n%s", archive, node, err, said)
	}
}

// conformanceOptions returns the options of the suite for this cluster. Its flags are in them.
func (c *cluster) conformanceOptions() suite.ConformanceOptions {
	c.t.Helper()
	if err := flag.Set("kubeconfig", c.status.Kubeconfig); err != nil {
		c.t.Fatal(err)
	}
	o := conformance.DefaultOptions(c.t)
	// Without more requests a second the suite waits for its own client.
	o.RestConfig.QPS, o.RestConfig.Burst = 200, 400
	o.GatewayClassName = gatewayClass
	o.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName}
	o.RunTest = cmp.Or(*conformanceTest, o.RunTest)
	o.SkipTests = append(o.SkipTests, slices.Sorted(maps.Keys(skippedConformance()))...)
	o.ReportOutputPath = cmp.Or(o.ReportOutputPath, filepath.Join(c.t.TempDir(), "report.yaml"))
	o.Implementation = report.Implementation{
		Organization: "kaz", Project: "application-gateway-controller", URL: "docs/guides/gateway.md", Contact: []string{"SECURITY.md"},
		Version: strings.TrimPrefix(strings.TrimSpace(runKaz(c.t, "--version")), "kaz version "),
	}
	return o
}

// logOf prints the end of the log of a component.
func (c *cluster) logOf(name string) {
	c.t.Helper()
	for _, p := range c.status.Components {
		if p.Name != name {
			continue
		}
		text, err := os.ReadFile(p.Log)
		if err != nil {
			c.t.Error(err)
		}
		lines := strings.Split(string(text), "\n")
		c.t.Logf("the end of %s:\n%s", p.Log, strings.Join(lines[max(0, len(lines)-100):], "\n"))
	}
}

// readReport reads the report of the suite.
func readReport(t *testing.T, file string) report.ConformanceReport {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report.ConformanceReport
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}
