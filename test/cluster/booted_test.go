package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localcluster/controlplane"
)

// TestBooted checks that kaz cluster deploy makes a cluster of machines that boot from their custom data, with Debian's own
// cloud-init. The control plane is made by kubeadm, and the node joins it. The add-ons initialize both machines, and make a
// load balancer and a disk. Then nothing is left to deploy. Etcd has Secrets encrypted.
func TestBooted(t *testing.T) {
	began := time.Now()
	c := startBooting(t, 1).cluster("dev", example(t, "dev.yaml"))
	c.whole(2, c.version)
	t.Logf("two nodes take pods after %s", short(time.Since(began)))
	c.serves(2, c.version)
	c.secret("word")
	c.encrypted("word")
	c.joinsAsItself()
}

// joinsAsItself checks that the join token is not enough for a certificate: root of a machine gets none of a member's name, of another
// node's or of its own while its node is ready.
func (c *bootedCluster) joinsAsItself() {
	c.t.Helper()
	if out, err := c.run("", "get", "clusterrolebinding", "kubeadm:node-autoapprove-bootstrap"); err == nil {
		c.t.Errorf("the controller manager approves requests: %s", out)
	}
	const decided = `jsonpath={range .items[*]}{.spec.username} {.status.conditions[0].reason}{"\n"}{end}`
	if out := c.must(c.run("", "get", "csr", "-o", decided)); !regexp.MustCompile(`(?m)^system:bootstrap:\w+ MachineAttested$`).MatchString(out) {
		c.t.Errorf("the node did not join with an approval of its machine:\n%s", out)
	}
	member := c.members()[0]
	node := strings.TrimSpace(c.must(c.run("", "get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o",
		"jsonpath={.items[0].metadata.name}")))
	token := c.must(c.run("", "-n", "kube-system", "get", "secret", "-l", "kaz/join-token=true", "-o",
		`go-template={{range .items}}{{index .data "token-id" | base64decode}}.{{index .data "token-secret" | base64decode}}{{end}}`))
	machines := map[string]string{node: c.machineOf(node), member: member}
	for _, one := range []struct{ on, name, want string }{
		{node, member, "the signed document is of the machine with the vmId"},
		{member, node, "the signed document is of the machine with the vmId"},
		{node, node, "the node " + node + " is ready"},
		{node, "dev-general00zzzz", "nobody has decided about the request"},
	} {
		out, err := c.try(machines[one.on], "bash", "-c", `set -eu
root=$(mktemp -d)
mkdir -p "$root/etc/kaz" "$root/etc/kubernetes" "$root/usr/local/bin"
(cat /etc/kaz/node.env; echo KAZ_ROLE=node) > "$root/etc/kaz/node.env"
printf '#!/bin/sh\necho %s\n' "$1" > "$root/usr/local/bin/hostname"
chmod +x "$root/usr/local/bin/hostname"
server=$(sed -n 's/^ *server: //p' /etc/kubernetes/kubelet.conf)
authority=$(base64 -w0 /etc/kubernetes/pki/ca.crt)
cat > "$root/etc/kubernetes/bootstrap-kubelet.conf" <<CONFIG
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "$server", certificate-authority-data: "$authority"}}]
contexts: [{name: c, context: {cluster: c, user: c}}]
users:
- name: c
  user:
    token: $2
CONFIG
KAZ_ROOT=$root KAZ_TRIES=5 KAZ_RETRY_DELAY=2 bash /usr/local/lib/kaz/bootstrap.sh identity`, "attack", one.name, token)
		if err == nil || !strings.Contains(out, one.want) {
			c.t.Errorf("a request from %s for %s: %v\n%s\nwant %s", one.on, one.name, err, out, one.want)
		}
	}
}

// machineOf is the directory of a node's machine.
func (c *bootedCluster) machineOf(node string) string {
	c.t.Helper()
	all, err := filepath.Glob(filepath.Join(c.machines, "machines", "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, dir := range all {
		name, err := c.try(filepath.Base(dir), "hostname")
		if err == nil && strings.EqualFold(strings.TrimSpace(name), node) {
			return filepath.Base(dir)
		}
	}
	c.t.Fatalf("no machine has the name %s: %v", node, all)
	return ""
}

// TestBootFails checks that a cluster with a release that the image does not have fails. The error names the phase of the
// boot and its cause. The console of the machine shows the same.
func TestBootFails(t *testing.T) {
	b := startBooting(t, 1)
	message, err := b.deploy("other", strings.ReplaceAll(strings.ReplaceAll(example(t, "dev.yaml"), b.version, "1.34.0"), "dev}", "other}"))
	if err == nil || !regexp.MustCompile(`(?s)VMExtensionProvisioningError.*"phase": "binaries".*Could not resolve host`).MatchString(message) {
		t.Errorf("a boot that fails: %v\n%s", err, message)
	}
	console := string(readFile(t, filepath.Join(b.machines, "machines", "other-cp-0", "console.log")))
	if !regexp.MustCompile(`KAZ-STATUS .*"phase": "binaries"`).MatchString(console) {
		t.Errorf("the console does not show the phase:\n%s", console)
	}
}

// TestBootedUp checks that kaz local up --engine makes such a cluster with one command. A Service and a disk work, and kaz
// cluster finds the cluster. After a stop its machines boot again with their data.
func TestBootedUp(t *testing.T) {
	needsImage(t)
	dir := newDir(t)
	up := func(args ...string) *cluster {
		t.Helper()
		began := time.Now()
		runKaz(t, append([]string{"local", "up", "--detach", "--dir", dir}, args...)...)
		t.Logf("up %v: %s", args, short(time.Since(began)))
		c := attach(t, dir)
		all := c.nodes()
		if len(all) != 2 {
			t.Errorf("%d nodes", len(all))
		}
		for _, n := range all {
			if condition(n, corev1.NodeReady) != corev1.ConditionTrue || uninitialized(n) {
				t.Errorf("%s: taints %v, conditions %v", n.Name, n.Spec.Taints, n.Status.Conditions)
			}
		}
		return c
	}
	down := func() {
		if said, err := exec.Command(kaz(), "local", "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v: %s", err, said)
		}
	}
	t.Cleanup(down) // the test's context is done then
	c := up("--engine", "--nodes", "1")
	c.nodeAsExpected("general")
	c.must(bootedPods, "apply", "-f", "-")
	url := "http://" + c.address("web", time.Minute) + "/"
	c.must("", "rollout", "status", "statefulset/keeper", "--timeout=3m")
	sum := c.must("", "exec", "keeper-0", "--", "/box", "fill", "/data/file", "1")
	works := func() {
		t.Helper()
		wait(t, 2*time.Minute, "the Service and the disk", func() string {
			if _, err := askFromHere(t.Context(), url); err != nil {
				return err.Error()
			}
			out, err := c.kubectl("", "exec", "keeper-0", "--", "/box", "sum", "/data/file")
			if err != nil || out != sum {
				return fmt.Sprintf("the disk has %q, want %q: %v", out, sum, err)
			}
			return ""
		})
	}
	works()
	if out := runKaz(t, "cluster", "status", "kaz", "--local", "--endpoint", c.status.ARM); !strings.Contains(out, "Succeeded") {
		t.Errorf("kaz cluster status:\n%s", out)
	}
	if out := runKaz(t, "local", "status", "--dir", dir); !strings.Contains(out, "machine-kaz-cp-0") || !strings.Contains(out, "booted") {
		t.Errorf("kaz local status:\n%s", out)
	}
	down()
	nothingRuns(t, dir, time.Minute)
	refuses(t, exec.Command(kaz(), "local", "up", "--dir", dir, "--scale-sets", "2"), "--scale-sets 2", "--engine")
	up()
	works()
}

// nodeAsExpected empties a pool, asks what node cluster-autoscaler expects of it, and compares that with the node that boots.
func (c *cluster) nodeAsExpected(pool string) {
	c.t.Helper()
	set := "kaz-" + pool
	scale := func(count string) {
		runKaz(c.t, "cluster", "scale", "kaz", pool, "--count", count, "--local", "--endpoint", c.status.ARM, "--kubeconfig", c.status.Kubeconfig)
	}
	scale("0")
	var view struct {
		Next struct {
			From                string
			Labels, Allocatable map[string]string
			Taints              []string
		}
	}
	said := runKaz(c.t, "explain", "nodegroup", set, "--nodes", "0:3:"+set, "--dir", c.dir, "-o", "json")
	if err := json.Unmarshal([]byte(said), &view); err != nil {
		c.t.Fatalf("%v: %s", err, said)
	}
	want := view.Next
	if want.From != "size" || want.Labels["kaz/pool"] != pool {
		c.t.Fatalf("the node that is expected: %+v, want one that follows from the size, in the pool %s", want, pool)
	}
	scale("1")
	var node corev1.Node
	wait(c.t, 3*time.Minute, "the node of the pool, with the labels that are expected", func() string {
		for _, n := range c.nodes() {
			if n.Labels["kaz/pool"] == pool && condition(n, corev1.NodeReady) == corev1.ConditionTrue && !uninitialized(n) {
				node = n
				return otherLabels(n, want.Labels)
			}
		}
		return "it is not ready"
	})
	for key := range node.Labels {
		if _, there := want.Labels[key]; !there {
			c.t.Errorf("%s has the label %s, which is not expected", node.Name, key)
		}
	}
	if got := node.Status.Allocatable.Pods().String(); got != want.Allocatable["pods"] {
		c.t.Errorf("%s takes %s pods, expected are %s", node.Name, got, want.Allocatable["pods"])
	}
	if len(node.Spec.Taints) != len(want.Taints) {
		c.t.Errorf("%s has the taints %v, expected are %v", node.Name, node.Spec.Taints, want.Taints)
	}
}

// otherLabels names the labels that a node has otherwise than expected. The drivers add theirs a moment after the node is ready. Labels
// of old names come within minutes, when the framework looks at all nodes.
func otherLabels(n corev1.Node, expected map[string]string) string {
	var all []string
	for key, value := range expected {
		if got, there := n.Labels[key]; key != corev1.LabelHostname && !strings.Contains(key, "beta.kubernetes.io/") && (!there || got != value) {
			all = append(all, fmt.Sprintf("%s=%q, expected is %q", key, got, value))
		}
	}
	return strings.Join(all, "; ")
}

// booting is a local Azure that boots machines.
type booting struct {
	t                  *testing.T
	endpoint, machines string
	// dir has the definitions and kubeconfigs of its clusters.
	dir string
	// version and older are the releases in the image, the newest one and the one before it.
	version, older, kubectl string
	// inside is the network namespace with the local Azure, "" for that of this process.
	inside string
}

// words is a command in the namespace of the local Azure.
func (b *booting) words(command ...string) []string {
	if b.inside != "" {
		return append([]string{"nsenter", "--net=" + netns.Path(b.inside)}, command...)
	}
	return command
}

// program is such a command, which ends with the test.
func (b *booting) program(command ...string) *exec.Cmd {
	all := b.words(command...)
	return exec.CommandContext(b.t.Context(), all[0], all[1:]...)
}

// needsImage skips a test where machines cannot boot.
func needsImage(t *testing.T) {
	t.Helper()
	needsReal(t)
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skipf("the image of machines needs debootstrap: %v", err)
	}
}

// startBooting starts a local Azure that boots machines with so many of the newest releases, with further flags. The first start makes the
// image.
func startBooting(t *testing.T, count int, flags ...string) *booting {
	t.Helper()
	needsImage(t)
	releases, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	b := &booting{t: t, machines: newDir(t), dir: t.TempDir(), version: releases[0], older: releases[1]}
	b.start(append([]string{"--kubernetes", strings.Join(releases[:count], ",")}, flags...)...)
	b.kubectl = imageKubectl(t)
	return b
}

// start starts the local Azure.
func (b *booting) start(flags ...string) {
	b.t.Helper()
	all := b.words(append([]string{kaz(), "local", "azure", "--machines-dir", b.machines}, flags...)...)
	p := start(b.t, exec.Command(all[0], all[1:]...))
	b.t.Logf("local Azure with an image in %s", short(p.says(`{"arm":`, 40*time.Minute)))
	var info struct {
		ARM string `json:"arm"`
	}
	for line := range strings.Lines(p.out.String()) {
		if strings.HasPrefix(line, `{"arm":`) {
			if err := json.Unmarshal([]byte(line), &info); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.endpoint = info.ARM
}

// imageKubectl returns the kubectl in the newest image.
func imageKubectl(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(cache, "kaz", "images", "kubernetes-v*", "usr/local/bin/kubectl"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no image was made: %v", err)
	}
	return all[0]
}

// command is a command of kaz cluster.
func (b *booting) command(args ...string) *exec.Cmd {
	cmd := b.program(slices.Concat([]string{kaz(), "cluster"}, args, []string{"--local", "--endpoint", b.endpoint})...)
	cmd.Dir = b.dir
	return cmd
}

func (b *booting) kaz(args ...string) (string, error) {
	out, err := b.command(args...).CombinedOutput()
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
