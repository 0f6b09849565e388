package cluster_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/testkit"
)

// TestContinue stops a cluster in the foreground and continues it in the background: nothing changes,
// and Azure is not written.
func TestContinue(t *testing.T) {
	dir := newDir(t)
	c := startUp(t, dir, "--nodes", "2", "--scale-sets", "2")
	testkit.ExternalService(t, c.env())
	service := c.fill()
	c.routed()
	before := testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)
	c.stop(syscall.SIGTERM)
	isDown(t, dir)
	refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "up", "--dir", dir, "--scale-sets", "3"), "--scale-sets 3", dir, "has 2")
	isDown(t, dir)

	log := requestsFrom(t, dir)
	c = startDetached(t, dir)
	c.holds(service)
	wait(t, time.Minute, "the cloud-controller-manager looks after the Service again", func() string {
		if c.metric("service_controller_loadbalancer_sync_total") > 0 {
			return ""
		}
		return "it has not yet"
	})
	reads, writes := log.since(t)
	if len(reads) == 0 || len(writes) > 0 {
		t.Errorf("%d reads and the writes %q of a cluster that nothing was changed in", len(reads), writes)
	}
	if d := cmp.Diff(before, testkit.Snapshot(t, c.azure, c.group(), c.scaleSets()...)); d != "" {
		t.Errorf("Azure is not as it was before (-before +after):\n%s", d)
	}
	if text := runKaz(t, "local", "status", "--dir", dir); !strings.Contains(text, "kube-apiserver") ||
		!strings.Contains(text, c.status.Server) {
		t.Errorf("status:\n%s", text)
	}
	began := time.Now()
	down := runKaz(t, "local", "down", "--dir", dir)
	t.Logf("down: %s", short(time.Since(began)))
	if !strings.Contains(down, "stopped kube-apiserver") {
		t.Errorf("down says:\n%s", down)
	}
	isDown(t, dir)
	if again := runKaz(t, "local", "down", "--dir", dir); !strings.Contains(again, "nothing was running") {
		t.Errorf("down of what is down says:\n%s", again)
	}
}

// fill creates what the cluster must keep.
func (c *cluster) fill() *corev1.Service {
	c.t.Helper()
	c.must("", "create", "configmap", "kept", "--from-literal=word=kept")
	s, err := c.apply(testkit.NewService("web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}))
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// holds checks that the cluster has what [cluster.fill] created.
func (c *cluster) holds(s *corev1.Service) {
	c.t.Helper()
	if got := get[corev1.ConfigMap](c, "configmap", "kept").Data["word"]; got != "kept" {
		c.t.Errorf("the config map holds %q", got)
	}
	if d := cmp.Diff(s.Status, c.service(s.Name).Status); d != "" {
		c.t.Errorf("the Service's status is another:\n%s", d)
	}
	if got := c.service(s.Name); got.UID != s.UID {
		c.t.Errorf("the Service is another: %s, was %s", got.UID, s.UID)
	}
}

// isDown checks that nothing runs in dir and that kaz says so.
func isDown(t *testing.T, dir string) {
	t.Helper()
	if left := running(t, dir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	_, said, err := output(t, "", kaz(), "local", "status", "--dir", dir)
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.ExitCode() != 3 || !strings.Contains(said, "no cluster is up in "+dir) {
		t.Errorf("status of what is down: %v, %s", err, said)
	}
	for _, name := range []string{"status.json", "azure-state-running.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there though nothing runs", name)
		}
	}
}

// TestKilled kills `up`, also during its start. Its processes end with it, the next `up` continues,
// and `down` cleans up.
func TestKilled(t *testing.T) {
	dir := newDir(t)
	for _, moment := range []struct {
		says   string
		signal syscall.Signal
	}{{"local Azure", syscall.SIGKILL}, {"etcd ready", syscall.SIGKILL}, {"etcd ready", syscall.SIGTERM},
		{"control plane:", syscall.SIGKILL}} {
		up := start(t, exec.Command(kaz(), "local", "up", "--nodes-kind=hollow", "--dir", dir, "--nodes", "1"))
		up.says(moment.says, buildWithin)
		up.signal(moment.signal)
		if err := up.end(time.Minute); moment.signal == syscall.SIGKILL && err == nil {
			t.Error("killed, and ended well")
		}
		if moment.signal == syscall.SIGTERM {
			up.says("interrupted before the cluster was up", time.Second)
		}
		nothingRuns(t, dir, 10*time.Second)
	}
	c := startUp(t, dir)
	service := c.fill()
	ip := service.Status.LoadBalancer.Ingress[0].IP
	wait(t, time.Minute, "the state of the local Azure in its file", func() string {
		if state := readFile(t, filepath.Join(dir, "azure-state.json")); strings.Contains(string(state), ip) {
			return ""
		}
		return ip + " is not in it"
	})
	c.up.signal(syscall.SIGKILL)
	if err := c.up.end(10 * time.Second); err == nil {
		t.Error("killed, and ended well")
	}
	nothingRuns(t, dir, 10*time.Second)

	c = startDetached(t, dir, "--nodes", "2")
	c.holds(service)
	if got := len(c.nodes()); got != 2 {
		t.Errorf("%d nodes, want 2 from now on", got)
	}
	if _, err := c.apply(testkit.NewService("api",
		corev1.ServicePort{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443})); err != nil {
		t.Error(err)
	}

	up, err := os.FindProcess(c.status.UpPID)
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Kill(); err != nil {
		t.Fatal(err)
	}
	// Run at once, while some processes may still exist.
	t.Logf("down says: %s", strings.ReplaceAll(runKaz(t, "local", "down", "--dir", dir), "\n", "; "))
	nothingRuns(t, dir, 10*time.Second)
	if _, err := os.Stat(filepath.Join(dir, "status.json")); err == nil {
		t.Error("status.json is there though nothing runs")
	}
}

// TestReaderGone pipes the progress into another program and ends both with Ctrl-C: `up` stops in
// order although its output has no reader.
func TestReaderGone(t *testing.T) {
	dir := newDir(t)
	up := exec.Command(kaz(), "local", "up", "--nodes-kind=hollow", "--dir", dir, "--nodes", "1")
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Process.Kill() }) // where the test has failed
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "etcd ready") {
	}
	out.Close()
	if err := up.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The start was incomplete, so it may fail, but must say so.
	if err := up.Wait(); !up.ProcessState.Exited() {
		t.Errorf("it ended with %v", err)
	}
	isDown(t, dir)
}

// TestComponentEnds checks that the cluster ends with a component and says why.
func TestComponentEnds(t *testing.T) {
	c := startUp(t, newDir(t), "--nodes", "1")
	i := slices.IndexFunc(c.status.Components, func(p component) bool { return p.Name == "kube-scheduler" })
	scheduler := c.status.Components[i]
	if err := syscall.Kill(scheduler.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.up.end(time.Minute); err == nil {
		t.Error("ended well though its scheduler did not")
	}
	if said := c.up.out.String(); !strings.Contains(said, "kube-scheduler") || !strings.Contains(said, "killed") ||
		!strings.Contains(said, scheduler.Log) {
		t.Errorf("it wrote:\n%s", said)
	}
	isDown(t, c.dir)
}
