package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
// the control plane, and the node joins it. Then nothing is left to deploy. The definition has no add-ons: those do not work on
// such machines yet.
func TestBooted(t *testing.T) {
	b := startBooting(t)
	definition := strings.ReplaceAll(bootedCluster, "VERSION", b.version)
	began := time.Now()
	b.must(b.deploy("booted", definition))
	t.Logf("definition to cluster in %s", short(time.Since(began)))
	b.ready("booted", 2)
	t.Logf("two nodes are ready after %s", short(time.Since(began)))
	if out := b.must(b.deploy("booted", definition)); !strings.Contains(out, "is up to date") {
		t.Errorf("a second deployment: %s", out)
	}
}

// A cluster with a release that the image does not have fails, and names the phase of the boot and its cause. The console of the
// machine shows the same.
func TestBootFails(t *testing.T) {
	b := startBooting(t)
	message, err := b.deploy("other", strings.ReplaceAll(strings.ReplaceAll(bootedCluster, "VERSION", "1.34.0"), "booted", "other"))
	if err == nil || !regexp.MustCompile(`(?s)VMExtensionProvisioningError.*"phase": "binaries".*Could not resolve host`).MatchString(message) {
		t.Errorf("a boot that fails: %v\n%s", err, message)
	}
	console := string(readFile(t, filepath.Join(b.machines, "machines", "other-cp-0", "console.log")))
	if !regexp.MustCompile(`KAZ-STATUS .*"phase": "binaries"`).MatchString(console) {
		t.Errorf("the console does not show the phase:\n%s", console)
	}
}

// booting is a local Azure that boots machines.
type booting struct {
	t                  *testing.T
	endpoint, machines string
	// dir has the definitions and kubeconfigs of its clusters.
	dir              string
	version, kubectl string
}

// startBooting starts a local Azure that boots machines. The first start makes the image.
func startBooting(t *testing.T, flags ...string) *booting {
	t.Helper()
	needsReal(t)
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skipf("the image of machines needs debootstrap: %v", err)
	}
	b := &booting{t: t, machines: newDir(t), dir: t.TempDir()}
	p := start(t, exec.Command(kaz(), append([]string{"local", "azure", "--machines-dir", b.machines}, flags...)...))
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
	b.endpoint = info.ARM
	b.version, b.kubectl = imageKubectl(t)
	return b
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

// kaz runs a command of kaz cluster.
func (b *booting) kaz(args ...string) (string, error) {
	cmd := exec.CommandContext(b.t.Context(), kaz(), append([]string{"cluster"}, append(args, "--local", "--endpoint", b.endpoint)...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// define writes a definition and returns its file.
func (b *booting) define(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}

func (b *booting) deploy(name, text string) (string, error) {
	return b.kaz("deploy", b.define(name, text))
}

// must ends the test if a command failed, and returns what it wrote.
func (b *booting) must(out string, err error) string {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// ready waits until a cluster has so many nodes, each ready.
func (b *booting) ready(name string, want int) {
	b.t.Helper()
	wait(b.t, 5*time.Minute, "nodes that are ready", func() string {
		out, err := exec.CommandContext(b.t.Context(), b.kubectl, "--kubeconfig", filepath.Join(b.dir, name+".kubeconfig"),
			"get", "nodes", "-o", "json").Output()
		var list corev1.NodeList
		if err != nil || json.Unmarshal(out, &list) != nil {
			return fmt.Sprint(string(out), err)
		}
		ready := 0
		for _, n := range list.Items {
			if condition(n, corev1.NodeReady) == corev1.ConditionTrue {
				ready++
			}
		}
		if ready != want || len(list.Items) != want {
			return fmt.Sprintf("%d of %d nodes are ready, want %d", ready, len(list.Items), want)
		}
		return ""
	})
}
