package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// bootedPods are web servers behind a load balancer, which move only while one of them serves, and a pod with a disk.
const bootedPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "kaz.local/web:1", imagePullPolicy: Never, lifecycle: {preStop: {sleep: {seconds: 5}}},
         readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper}
spec:
  serviceName: keeper
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {fsGroup: 65534}
      containers: [{name: tools, image: "kaz.local/tools:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// bootedPools is a layer with a pool of each further kind.
const bootedPools = `
apiVersion: cluster.kaz/v1alpha1
kind: NodePool
metadata: {name: flex}
spec: {backend: VMSSFlexible, replicas: 1, zones: [], taints: ["team=a:NoSchedule"]}
---
apiVersion: cluster.kaz/v1alpha1
kind: NodePool
metadata: {name: alone}
spec: {backend: StandaloneVM, replicas: 1, zones: []}
`

// TestBootedHA takes a cluster of three members and two nodes through its life, on machines that boot. The cluster serves,
// its pool grows and shrinks, pools come and go, and it is upgraded, all under constant requests. It loses each member in
// turn, and then all of them. At the end it is destroyed.
func TestBootedHA(t *testing.T) {
	b := startBooting(t, 2)
	c := b.cluster("prod", strings.ReplaceAll(example(t, "ha.yaml"), b.version, b.older))
	for _, step := range []struct {
		name string
		do   func(*bootedCluster)
	}{
		{"serves", func(c *bootedCluster) { c.serves(5, c.older) }},
		{"pool grows and shrinks", (*bootedCluster).scaled},
		{"pools come and go", (*bootedCluster).pooled},
		{"upgrade", (*bootedCluster).upgraded},
		{"each member dies in turn", (*bootedCluster).repaired},
		{"all members die", (*bootedCluster).restored},
		{"destroyed", func(c *bootedCluster) { c.destroyed() }},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(c.in(t)) }) {
			return // what comes after begins with a whole cluster
		}
	}
}

// TestBootedMembers changes the number of members of a cluster on machines that boot, and replaces the only one. The timer of a member
// saves a backup, the member renews its certificates, and nothing is wrong in between.
func TestBootedMembers(t *testing.T) {
	b := startBooting(t, 1)
	one := example(t, "dev.yaml")
	c := b.cluster("dev", one)
	c.whole(2, c.version)
	c.on("dev-cp-0", "systemctl", "start", "kaz-backup")
	c.renewed("dev-cp-0")
	for _, count := range []int{3, 1} {
		c.change("upgrade", c.define(c.name, strings.Replace(one, "replicas: 1", "replicas: "+strconv.Itoa(count), 1)))
		c.whole(count+1, c.version)
		c.wellAfter(fmt.Sprintf("a change to %d members", count))
	}
	c.change("rotate", c.name)
	c.whole(2, c.version)
}

// renewed lets a member renew its certificates, and checks that its API server has a new one. The timer of a member does this
// a month before the certificates end.
func (c *bootedCluster) renewed(member string) {
	c.t.Helper()
	serial := func() string {
		c.t.Helper()
		server := c.must(c.run("", "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
		// The certificate is only looked at.
		connection, err := tls.Dial("tcp", strings.TrimPrefix(server, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			c.t.Fatal(err)
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	c.on(member, "env", "KAZ_RENEW_BEFORE=99999999", "/usr/local/lib/kaz/bootstrap.sh", "renew")
	if after := serial(); after == before {
		c.t.Error("the API server has its certificate of before")
	}
	c.whole(2, c.version)
}

// TestBootedRotation replaces the secrets of a cluster on machines that boot.
func TestBootedRotation(t *testing.T) {
	c := startBooting(t, 1).cluster("dev", example(t, "dev.yaml"))
	c.whole(2, c.version)
	c.tokenReplaced()
	c.keyReplaced()
	c.encryptionReplaced()
}

// secret makes a Secret with a text.
func (c *bootedCluster) secret(name string) {
	c.t.Helper()
	c.must(c.run("", "create", "secret", "generic", name, "--from-literal=text=in-plain-"+name))
}

// encrypted checks that the bytes of a Secret in etcd are encrypted, and that the API server reads it. It returns the name of the key.
func (c *bootedCluster) encrypted(name string) string {
	c.t.Helper()
	const pki, prefix = "/etc/kubernetes/pki/etcd", "k8s:enc:secretbox:v1:"
	stored := c.must(c.run("", "-n", "kube-system", "exec", "etcd-"+c.members()[0], "--", "etcdctl", "--endpoints", "https://127.0.0.1:2379",
		"--cacert", pki+"/ca.crt", "--cert", pki+"/healthcheck-client.crt", "--key", pki+"/healthcheck-client.key", "get", "--print-value-only",
		"/registry/secrets/default/"+name))
	rest, has := strings.CutPrefix(stored, prefix)
	if !has || strings.Contains(stored, "in-plain") {
		c.t.Errorf("etcd has the Secret %s as %q, want the begin %s", name, stored, prefix)
	}
	text := c.must(c.run("", "get", "secret", name, "-o", "go-template={{.data.text | base64decode}}"))
	if text != "in-plain-"+name {
		c.t.Errorf("the Secret %s has the text %q", name, text)
	}
	key, _, _ := strings.Cut(rest, ":")
	return key
}

// encryptionReplaced replaces the key that encrypts Secrets, and forgets the former one. Secrets of before are written with the new key.
func (c *bootedCluster) encryptionReplaced() {
	c.t.Helper()
	c.secret("before")
	first := c.encrypted("before")
	c.change("rotate", c.name, "--encryption")
	c.whole(4, c.version)
	now := c.encrypted("before")
	c.secret("after")
	if other := c.encrypted("after"); first == now || other != now {
		c.t.Errorf("Secrets are written with %s, before they were with %s; a new one is with %s", now, first, other)
	}
	c.change("rotate", c.name, "--encryption", "--finish")
	c.whole(4, c.version)
	for _, name := range []string{"before", "after"} {
		if key := c.encrypted(name); key != now {
			c.t.Errorf("the Secret %s is written with %s, want %s", name, key, now)
		}
	}
	c.wellAfter("the rotation of the key that encrypts Secrets")
}

// keyReplaced replaces the key of service accounts. Meanwhile it sends requests to the API server with a token of the former
// key. The API server must accept this token until the end of the rotation, and not after it.
func (c *bootedCluster) keyReplaced() {
	c.t.Helper()
	old := strings.TrimSpace(c.must(c.run("", "create", "token", "default", "--duration", "24h")))
	ask, refused := c.requests("/apis", old), atomic.Int32{}
	stream := asks(c.t, func(ctx context.Context) error {
		err := ask(ctx)
		if err != nil && strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) {
			refused.Add(1)
		}
		return err
	})
	c.change("rotate", c.name, "--service-account")
	close(stream.stop)
	stream.tasks.Wait()
	c.t.Logf("%d of %d requests with the token failed, %d were refused: %v", len(stream.failed), stream.asked, refused.Load(), stream.why)
	if refused.Load() > 0 {
		c.t.Error("a token of the former key is not accepted during the rotation")
	}
	c.whole(4, c.version)
	fresh := strings.TrimSpace(c.must(c.run("", "create", "token", "default")))
	for name, token := range map[string]string{"the former key": old, "the new key": fresh} {
		if out, err := c.review(token); err != nil || !strings.Contains(out, "system:serviceaccount:default:default") {
			c.t.Errorf("a token of %s: %v %s", name, err, out)
		}
	}
	if out, err := c.kaz("rotate", c.name, "--service-account", "--finish"); err == nil || !strings.Contains(out, "may be in use until") {
		c.t.Errorf("the end within a day: %v %s", err, out)
	}
	c.change("rotate", c.name, "--service-account", "--finish", "--at-once")
	c.whole(4, c.version)
	if out, err := c.review(fresh); err != nil || !strings.Contains(out, "system:serviceaccount:default:default") {
		c.t.Errorf("a token of the new key: %v %s", err, out)
	}
	if out, err := c.review(old); err != nil || strings.Contains(out, "system:serviceaccount") {
		c.t.Errorf("a token of the former key is accepted: %v %s", err, out)
	}
	c.wellAfter("the rotations")
}

// wellAfter checks that kaz cluster doctor finds nothing wrong. The machines are on the disk of this one, which may be nearly full.
func (c *bootedCluster) wellAfter(what string) {
	c.t.Helper()
	out := c.must(c.kaz("doctor", c.name))
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "✘") || strings.HasPrefix(line, "⚠") && !strings.HasPrefix(line, "⚠ disk: the disk of the operating system") {
			c.t.Errorf("after %s: %s", what, out)
		}
	}
	if !strings.Contains(out, "nothing is wrong") && !strings.Contains(out, "⚠ disk: the disk of the operating system") {
		c.t.Errorf("after %s doctor says nothing: %s", what, out)
	}
}

// review asks the API server whose token it is.
func (c *bootedCluster) review(token string) (string, error) {
	return c.run(fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q}}`, token),
		"create", "-f", "-", "-o", "jsonpath={.status.user.username}")
}

// tokenReplaced replaces the join token and removes the old one. Then a new node joins, and the timer of the member gives the
// new token an end. If a token has ended because no member was there, the timer makes it again, and another node joins.
func (c *bootedCluster) tokenReplaced() {
	c.t.Helper()
	tokens := func() []string {
		return strings.Fields(c.must(c.run("", "-n", "kube-system", "get", "secrets", "--field-selector", "type=bootstrap.kubernetes.io/token",
			"-o", "jsonpath={.items[*].metadata.name}")))
	}
	remove := func(names []string) {
		c.must(c.run("", append([]string{"-n", "kube-system", "delete", "secret"}, names...)...))
	}
	old := tokens()
	c.change("rotate", c.name, "--token")
	remove(old)
	c.change("scale", c.name, "general", "--count", "2")
	c.whole(3, c.version)
	names := tokens()
	if len(names) != 1 || slices.Contains(old, names[0]) {
		c.t.Fatalf("the cluster takes the tokens %v; before it took %v", names, old)
	}
	remove(names)
	c.on(c.members()[0], "systemctl", "start", "kaz-join-token")
	if again := tokens(); !slices.Equal(again, names) {
		c.t.Fatalf("the timer made %v, want %v", again, names)
	}
	if end := c.must(c.run("", "-n", "kube-system", "get", "secret", names[0], "-o", "jsonpath={.data.expiration}")); end == "" {
		c.t.Error("the token has no end")
	}
	c.change("scale", c.name, "general", "--count", "3")
	c.whole(4, c.version)
}

// TestBootedInPlace upgrades the only member of a cluster in place, by a minor version. Its node gets another machine.
func TestBootedInPlace(t *testing.T) {
	b := startBooting(t, 2)
	one := strings.ReplaceAll(strings.Replace(example(t, "dev.yaml"), "replicas: 1", "replicas: 1, upgrade: {strategy: InPlace}", 1),
		b.version, b.older)
	c := b.cluster("dev", one)
	c.whole(2, c.older)
	c.must(c.run("", "create", "configmap", "before"))
	steps := c.change("upgrade", c.define(c.name, strings.ReplaceAll(one, c.older, c.version)))
	c.whole(2, c.version)
	if !strings.Contains(steps, "upgrade in place member cp-0 "+c.version) || strings.Contains(steps, "delete the machine of member") {
		t.Error(steps)
	}
	c.must(c.run("", "get", "configmap", "before"))
	if out := c.must(c.deploy(c.name, strings.ReplaceAll(one, c.older, c.version))); !strings.Contains(out, "is up to date") {
		t.Errorf("a deployment after the upgrade: %s", out)
	}
}

// TestBootedFive ends members of a control plane of five. With two members lost etcd takes writes, and both members are
// repaired. With three lost it takes none, and kaz cluster doctor says so. A restore brings all members back.
func TestBootedFive(t *testing.T) {
	b := startBooting(t, 1)
	c := b.cluster("prod", strings.Replace(strings.Replace(example(t, "ha.yaml"), "version: 1.36.3}", "version: 1.36.3}\n  controlPlane: {replicas: 5}",
		1), "spec: {replicas: 2}", "spec: {replicas: 1}", 1))
	c.whole(6, c.version)
	members := c.members()
	if len(members) != 5 {
		t.Fatalf("members: %v", members)
	}
	lost := members[:2]
	for _, member := range lost {
		c.kill(member)
	}
	wait(t, time.Minute, "a write without two members", func() string {
		out, err := c.run(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "without-two"}}`, "apply", "-f", "-")
		if err != nil {
			return out
		}
		return ""
	})
	for _, member := range lost {
		c.change("repair", c.name, strings.TrimPrefix(member, c.name+"-"))
	}
	c.whole(6, c.version)
	for _, member := range c.members()[:3] {
		c.kill(member)
	}
	if out, err := c.kaz("doctor", c.name); err == nil || !strings.Contains(out, "✘ API server: it does not answer") ||
		!strings.Contains(out, "kaz cluster restore prod") {
		t.Errorf("doctor without a majority: %v\n%s", err, out)
	}
	c.change("restore", c.name)
	c.whole(6, c.version)
	c.must(c.run("", "get", "configmap", "without-two"))
}

// on runs a command on a machine.
func (c *bootedCluster) on(machine string, command ...string) {
	c.t.Helper()
	if out, err := c.try(machine, command...); err != nil {
		c.t.Fatalf("%s on %s: %v\n%s", strings.Join(command, " "), machine, err, out)
	}
}

// try runs a command on a machine and returns what it wrote.
func (c *bootedCluster) try(machine string, command ...string) (string, error) {
	c.t.Helper()
	pid := strings.TrimSpace(string(readFile(c.t, filepath.Join(c.machines, "machines", machine, "first.pid"))))
	out, err := exec.CommandContext(c.t.Context(), "nsenter", append([]string{"-t", pid, "-a"}, command...)...).CombinedOutput()
	return string(out), err
}

// example is an example definition.
func example(t *testing.T, name string) string {
	t.Helper()
	return string(readFile(t, filepath.Join("..", "..", "docs", "example-manifests", "cluster", name)))
}

// bootedCluster is a cluster that kaz cluster made.
type bootedCluster struct {
	*booting
	name, definition string
	address, sum     *string // of the Service, and of the data on the disk
}

// cluster deploys a definition and waits until its nodes are ready.
func (b *booting) cluster(name, definition string) *bootedCluster {
	b.t.Helper()
	began := time.Now()
	b.must(b.deploy(name, definition))
	b.t.Logf("definition to cluster in %s", short(time.Since(began)))
	return &bootedCluster{b, name, definition, new(string), new(string)}
}

func (c *bootedCluster) in(t *testing.T) *bootedCluster {
	b := *c.booting
	b.t = t
	return &bootedCluster{&b, c.name, c.definition, c.address, c.sum}
}

func (c *bootedCluster) kubeconfig() string { return filepath.Join(c.dir, c.name+".kubeconfig") }

// run runs kubectl.
func (c *bootedCluster) run(stdin string, args ...string) (string, error) {
	cmd := c.program(append([]string{c.kubectl, "--kubeconfig", c.kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// change runs a command of kaz cluster that changes the cluster, and logs what it took. It returns what the command wrote, each line with
// its second.
func (c *bootedCluster) change(args ...string) string {
	c.t.Helper()
	cmd, began := c.command(args...), time.Now()
	var out stamped
	out.began = began
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%v\n%s", err, out.text.String())
	}
	c.t.Logf("kaz cluster %s in %s", strings.Join(args, " "), short(time.Since(began)))
	return out.text.String()
}

// stamped is the output of a program, each write with its second.
type stamped struct {
	began time.Time
	text  bytes.Buffer
}

func (s *stamped) Write(p []byte) (int, error) {
	fmt.Fprintf(&s.text, "%3.0f s %s", time.Since(s.began).Seconds(), p)
	return len(p), nil
}

// whole waits until the cluster has so many nodes of a version that take pods, and the Service and the disk work.
func (c *bootedCluster) whole(nodes int, version string) {
	c.t.Helper()
	took := wait(c.t, 5*time.Minute, "nodes that take pods", func() string {
		out, err := c.run("", "get", "nodes", "-o", "json")
		var list corev1.NodeList
		if err != nil || json.Unmarshal([]byte(out), &list) != nil {
			return out
		}
		for _, n := range list.Items {
			if condition(n, corev1.NodeReady) != corev1.ConditionTrue || n.Status.NodeInfo.KubeletVersion != "v"+version || uninitialized(n) {
				return fmt.Sprintf("%s: %s, taints %v, conditions %v", n.Name, n.Status.NodeInfo.KubeletVersion, n.Spec.Taints, n.Status.Conditions)
			}
		}
		if len(list.Items) != nodes {
			return fmt.Sprintf("%d nodes, want %d", len(list.Items), nodes)
		}
		return ""
	})
	c.t.Logf("%d nodes take pods after %s", nodes, short(took))
	if *c.address == "" {
		return
	}
	took = wait(c.t, 3*time.Minute, "the Service and the disk", func() string {
		if _, err := askFromHere(c.t.Context(), "http://"+*c.address+"/"); err != nil {
			return err.Error()
		}
		out, err := c.run("", "exec", "keeper-0", "--", "/box", "sum", "/data/file")
		if err != nil || strings.TrimSpace(out) != *c.sum {
			return fmt.Sprintf("the disk has %q, want %q: %v", out, *c.sum, err)
		}
		return ""
	})
	c.t.Logf("the Service and the disk work after %s", short(took))
}

// uninitialized reports whether a node waits for a cloud provider or its network.
func uninitialized(n corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.cloudprovider.") || strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			return true
		}
	}
	return false
}

// serves makes a Service that answers this machine, and a pod with a disk.
func (c *bootedCluster) serves(nodes int, version string) {
	c.t.Helper()
	began := time.Now()
	c.must(c.run(bootedPods, "apply", "-f", "-"))
	var address string
	wait(c.t, 3*time.Minute, "an address of the Service", func() string {
		out, err := c.run("", "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		if err != nil || out == "" {
			return "none yet " + out
		}
		address = out
		return ""
	})
	c.must(c.run("", "rollout", "status", "statefulset/keeper", "--timeout=3m"))
	sum := strings.TrimSpace(c.must(c.run("", "exec", "keeper-0", "--", "/box", "fill", "/data/file", "1")))
	*c.address, *c.sum = address, sum
	c.whole(nodes, version)
	c.t.Logf("a Service and a disk work after %s", short(time.Since(began)))
	if out := c.must(c.deploy(c.name, c.definition)); !strings.Contains(out, "is up to date") {
		c.t.Errorf("a second deployment: %s", out)
	}
}

func (c *bootedCluster) scaled() {
	c.asked(func() string {
		var steps strings.Builder
		for _, count := range []int{3, 2} {
			steps.WriteString(c.change("scale", c.name, "general", "--count", strconv.Itoa(count)))
			c.whole(3+count, c.older)
		}
		return steps.String()
	})
}

// pooled adds pools of the other kinds with a layer of another team, and removes them again.
func (c *bootedCluster) pooled() {
	base, more := c.define(c.name, c.definition), c.define("more", bootedPools)
	c.asked(func() string {
		steps := c.change("deploy", base, more)
		c.whole(7, c.older)
		return steps + c.change("upgrade", base)
	})
	c.whole(5, c.older)
}

// upgraded upgrades all machines by a minor version.
func (c *bootedCluster) upgraded() {
	c.asked(func() string {
		return c.change("upgrade", c.define(c.name, strings.ReplaceAll(c.definition, c.older, c.version)))
	})
	c.whole(5, c.version)
}

// asked asks the API server and the Service 20 times a second each while a change goes on, and some time after it. At most one request of a
// thousand may fail. change returns its steps.
func (c *bootedCluster) asked(change func() string) {
	c.t.Helper()
	began := time.Now()
	api := asks(c.t, c.apiServer())
	service := asks(c.t, func(ctx context.Context) error {
		_, err := askFromHere(ctx, "http://"+*c.address+"/")
		return err
	})
	steps := change()
	const after = 20 * time.Second // in which load balancers find out what is gone
	select {
	case <-c.t.Context().Done():
	case <-time.After(after):
	}
	const perThousand = 1000
	for name, s := range map[string]*stream{"API server": api, "Service": service} {
		close(s.stop)
		s.tasks.Wait()
		c.t.Logf("%s: %d of %d requests failed; this machine was late by %s at most: %v", name, len(s.failed), s.asked, short(s.late), s.why)
		if len(s.failed) > 0 {
			c.t.Logf("%s: failed requests by second of the change: %s\n%s", name, s.bySecond(began), steps)
		}
		if len(s.failed)*perThousand > s.asked {
			c.t.Errorf("%s: %d of %d requests failed, want at most one of a thousand: %v", name, len(s.failed), s.asked, s.why)
		}
	}
}

// kill ends a machine as a power failure does.
func (c *bootedCluster) kill(machine string) {
	c.t.Helper()
	text := strings.TrimSpace(string(readFile(c.t, filepath.Join(c.machines, "machines", machine, "first.pid"))))
	pid, err := strconv.Atoi(text)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		c.t.Fatalf("kill %s: %v", machine, err)
	}
}

// members are the machines of the control plane.
func (c *bootedCluster) members() []string {
	c.t.Helper()
	return strings.Fields(c.must(c.run("", "get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o",
		"jsonpath={.items[*].metadata.name}")))
}

func (c *bootedCluster) repaired() {
	for _, member := range c.members() {
		c.kill(member)
		c.change("repair", c.name, strings.TrimPrefix(member, c.name+"-"))
		c.whole(5, c.version)
	}
}

// restored kills all members after a backup. What was written after the backup is lost, what was written before is there.
func (c *bootedCluster) restored() {
	c.must(c.run("", "create", "configmap", "before"))
	c.change("backup", c.name)
	c.must(c.run("", "create", "configmap", "after"))
	for _, member := range c.members() {
		c.kill(member)
	}
	c.change("restore", c.name)
	c.whole(5, c.version)
	names := c.must(c.run("", "get", "configmaps", "-o", "name"))
	if !strings.Contains(names, "configmap/before") || strings.Contains(names, "configmap/after") {
		c.t.Errorf("after the restore there are %q", names)
	}
}

func (c *bootedCluster) destroyed(flags ...string) {
	c.change(append([]string{"destroy", c.name, "--yes"}, flags...)...)
	// Machines shut down before they are deleted, and their kubelets give pods a minute.
	wait(c.t, 3*time.Minute, "the end of all machines", func() string {
		left, err := filepath.Glob(filepath.Join(c.machines, "machines", c.name+"-*"))
		if err != nil || len(left) > 0 {
			return fmt.Sprint(left, err)
		}
		return ""
	})
}

// apiServer returns a function that asks the API server whether it is ready, with a connection of its own.
func (c *bootedCluster) apiServer() func(ctx context.Context) error { return c.requests("/readyz", "") }

// requests returns a function that asks the API server for a path, with a connection of its own: as the administrator, or with a token.
func (c *bootedCluster) requests(path, token string) func(ctx context.Context) error {
	c.t.Helper()
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority []byte `json:"certificate-authority-data"`
				Name      string `json:"tls-server-name"`
			}
		}
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	if err := yaml.Unmarshal(readFile(c.t, c.kubeconfig()), &config); err != nil {
		c.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(config.Clusters[0].Cluster.Authority)
	secure := &tls.Config{RootCAs: pool, ServerName: config.Clusters[0].Cluster.Name, MinVersion: tls.VersionTLS12}
	if token == "" {
		secure.Certificates = []tls.Certificate{pair}
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: secure}}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Clusters[0].Cluster.Server+path, nil)
		if err != nil {
			return err
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s %w", answer.Status, text, err)
		}
		return nil
	}
}
