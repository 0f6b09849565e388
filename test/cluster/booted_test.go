package cluster_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
  addons: {repository: localhost/kaz}
---
apiVersion: cluster.kaz/v1alpha1
kind: NodePool
metadata: {name: general}
spec: {replicas: 1, zones: []}
`

// kaz cluster deploy makes a cluster of machines that boot from their custom data, with Debian's own cloud-init: kubeadm makes
// the control plane, and the node joins it. The add-ons initialize the nodes, a load balancer leads to a pod, and a pod writes to
// a disk. Then nothing is left to deploy.
func TestBooted(t *testing.T) {
	b := startBooting(t)
	definition := strings.ReplaceAll(bootedCluster, "VERSION", b.version)
	began := time.Now()
	b.must(b.deploy("booted", definition))
	t.Logf("definition to cluster in %s", short(time.Since(began)))
	b.ready("booted", 2)
	t.Logf("two nodes are ready after %s", short(time.Since(began)))
	b.serves("booted")
	t.Logf("the Service answers, and the pod has a disk, after %s", short(time.Since(began)))
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

// ask runs kubectl in a cluster.
func (b *booting) ask(name, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.t.Context(), b.kubectl, append([]string{"--kubeconfig", filepath.Join(b.dir, name+".kubeconfig")}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ready waits until a cluster has so many nodes, each ready, initialized and with a provider id, and returns them by name.
func (b *booting) ready(name string, want int) map[string]corev1.Node {
	b.t.Helper()
	nodes := map[string]corev1.Node{}
	wait(b.t, 5*time.Minute, "nodes that are ready and initialized", func() string {
		out, err := b.ask(name, "", "get", "nodes", "-o", "json")
		var list corev1.NodeList
		if err != nil || json.Unmarshal([]byte(out), &list) != nil {
			return out
		}
		clear(nodes)
		for _, n := range list.Items {
			if condition(n, corev1.NodeReady) != corev1.ConditionTrue || n.Spec.ProviderID == "" || waits(n) {
				return n.Name + " is not ready or not initialized"
			}
			nodes[n.Name] = n
		}
		if len(nodes) != want {
			return strings.Join(slices.Sorted(maps.Keys(nodes)), " ")
		}
		return ""
	})
	return nodes
}

// waits reports whether a node has a taint of the time before it is initialized.
func waits(n corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.kubernetes.io/")
	})
}

// bootedService is a web server behind a load balancer, which writes to a disk.
const bootedService = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {fsGroup: 65534}
      containers:
      - {name: web, image: "kaz.local/web:1", ports: [{containerPort: 8080}]}
      - {name: tools, image: "kaz.local/tools:1", volumeMounts: [{name: data, mountPath: /data}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// serves creates a pod with a disk and a Service, and waits until the Service answers this machine.
func (b *booting) serves(name string) {
	b.t.Helper()
	b.must(b.ask(name, bootedService, "apply", "-f", "-"))
	b.must(b.ask(name, "", "wait", "pod", "-l", "app=web", "--for=condition=Ready", "--timeout=4m"))
	if phase := b.must(b.ask(name, "", "get", "pvc", "data", "-o", "jsonpath={.status.phase}")); phase != "Bound" {
		b.t.Errorf("the claim is %s", phase)
	}
	b.must(b.ask(name, "", "exec", "deploy/web", "-c", "tools", "--", "/box", "write", "/data/note", "kept"))
	if note := b.must(b.ask(name, "", "exec", "deploy/web", "-c", "tools", "--", "/box", "read", "/data/note")); !strings.Contains(note, "kept") {
		b.t.Errorf("the disk has %q", note)
	}
	b.answers(name)
}

// answers waits until the Service answers this machine.
func (b *booting) answers(name string) {
	b.t.Helper()
	client := http.Client{Timeout: 2 * time.Second}
	wait(b.t, 3*time.Minute, "an answer of the Service", func() string {
		address, err := b.ask(name, "", "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		if err != nil || address == "" {
			return "no address " + address
		}
		response, err := client.Get("http://" + address + "/")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(string(text), "pod web-") {
			return response.Status + " " + string(text)
		}
		return ""
	})
}
