package cluster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bootedCluster is a cluster of one member and one node.
const bootedCluster = `
apiVersion: cluster.kaz/v1alpha1
kind: Cluster
metadata: {name: booted}
spec:
  azure:
    subscriptionID: 00000000-0000-0000-0000-000000000001
    tenantID: 00000000-0000-0000-0000-0000000000aa
    location: westeurope
    resourceGroup: {name: booted}
  kubernetes: {version: VERSION}
  controlPlane: {replicas: 1, zones: []}
  access:
    sshPublicKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL1r6Kf0Kk dev]
---
apiVersion: cluster.kaz/v1alpha1
kind: NodePool
metadata: {name: general}
spec: {replicas: 1, zones: []}
`

// kaz cluster deploy makes a cluster of machines that boot from their custom data, with Debian's own cloud-init: kubeadm makes
// the control plane, and the node joins it. Then nothing is left to deploy. A cluster with a release that the image does not
// have fails, and names the phase of the boot and its cause.
func TestMachinesBootFromCustomData(t *testing.T) {
	needsReal(t)
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skipf("the image of machines needs debootstrap: %v", err)
	}
	endpoint := startBooting(t)
	version, program := imageKubectl(t)
	dir := t.TempDir()
	deploy := func(name, text string) (string, error) {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), kaz(), "cluster", "deploy", file, "--local", "--endpoint", endpoint)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	definition := strings.ReplaceAll(bootedCluster, "VERSION", version)
	began := time.Now()
	if out, err := deploy("booted", definition); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("definition to cluster in %s", short(time.Since(began)))
	kubectl := exec.CommandContext(t.Context(), program, "--kubeconfig", filepath.Join(dir, "booted.kubeconfig"),
		"wait", "node", "--all", "--for=condition=Ready", "--timeout=1m")
	out, err := kubectl.CombinedOutput()
	if err != nil || strings.Count(string(out), "condition met") != 2 {
		t.Errorf("want two nodes that are ready: %v\n%s", err, out)
	}
	if out, err := deploy("booted", definition); err != nil || !strings.Contains(out, "is up to date") {
		t.Errorf("a second deployment: %v\n%s", err, out)
	}
	other := strings.ReplaceAll(strings.ReplaceAll(bootedCluster, "VERSION", "1.34.0"), "booted", "other")
	message, err := deploy("other", other)
	if err == nil || !regexp.MustCompile(`(?s)VMExtensionProvisioningError.*"phase": "binaries".*Could not resolve host`).MatchString(message) {
		t.Errorf("a boot that fails: %v\n%s", err, message)
	}
}

// imageKubectl returns the version of Kubernetes in the newest image, and its kubectl.
func imageKubectl(t *testing.T) (version, program string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(cache, "kaz", "images", "kubernetes-v*", "usr/local/bin/kubectl"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no image was made: %v", err)
	}
	var newest time.Time
	for _, file := range all {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.ModTime().After(newest) {
			newest, program = info.ModTime(), file
		}
	}
	return regexp.MustCompile(`kubernetes-v([0-9.]+)-`).FindStringSubmatch(program)[1], program
}

// startBooting starts a local Azure that boots machines, and returns its address. The first start makes the image.
func startBooting(t *testing.T) string {
	t.Helper()
	p := start(t, exec.Command(kaz(), "local", "azure", "--machines-dir", newDir(t)))
	t.Logf("local Azure with an image in %s", short(p.says(`{"arm":`, 40*time.Minute)))
	var info struct {
		ARM string `json:"arm"`
	}
	for line := range strings.Lines(p.out.String()) {
		if strings.HasPrefix(line, `{"arm":`) {
			if err := json.Unmarshal([]byte(line), &info); err != nil {
				t.Fatal(err)
			}
		}
	}
	return info.ARM
}
