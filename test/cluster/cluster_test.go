package cluster_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
)

// cluster is a cluster that `kaz local up` runs.
type cluster struct {
	t   *testing.T
	dir string
	// up is the program in the foreground, nil where it was detached.
	up     *program
	status status
	azure  azureClient
}

// status is what `kaz local status -o json` tells.
type status struct {
	Dir, Server, ARM, Metrics, Kubeconfig, CloudConfig, Environment, Kubectl, Subscription string

	UpPID      int
	ScaleSets  []string
	Components []component
}

type component struct {
	Name    string
	PID     int
	Running bool
	Log     string
}

// buildWithin is the timeout of a start that first builds the control plane's programs.
const buildWithin = 30 * time.Minute

// newDir returns an empty directory for a cluster. Its name is short, because it is printed.
func newDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "kaz")
}

// startUp runs `kaz local up` in the foreground and returns when the cluster is up.
func startUp(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	up := start(t, exec.Command(kaz(), append([]string{"local", "up", "--nodes-kind=hollow", "--dir", dir}, args...)...))
	api := up.says("kube-apiserver ready", buildWithin)
	all := up.says("The cluster is up", 5*time.Minute)
	t.Logf("up: API server ready after %s, everything after %s", short(api), short(all))
	c := attach(t, dir)
	c.up = up
	return c
}

// startDetached runs `kaz local up --detach`. The cluster ends with the test.
func startDetached(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	t.Cleanup(func() {
		if said, err := exec.Command(kaz(), "local", "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v: %s", err, said)
		}
	})
	began := time.Now()
	runKaz(t, append([]string{"local", "up", "--nodes-kind=hollow", "--detach", "--dir", dir}, args...)...)
	t.Logf("up --detach: %s", short(time.Since(began)))
	return attach(t, dir)
}

// attach returns the cluster that runs in dir.
func attach(t *testing.T, dir string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: dir}
	if err := json.Unmarshal([]byte(runKaz(t, "local", "status", "--dir", dir, "-o", "json")), &c.status); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.status.Components {
		if !p.Running {
			t.Errorf("%s does not run: %s", p.Name, p.Log)
		}
	}
	c.azure = openClient(t, dir)
	return c
}

// in returns the cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	one := *c
	one.t = t
	return &one
}

// stop ends the foreground program, which must succeed and leave nothing behind.
func (c *cluster) stop(how syscall.Signal) {
	c.t.Helper()
	began := time.Now()
	stopped(c.t, c.up, how)
	c.t.Logf("stopped in %s", short(time.Since(began)))
	if left := running(c.t, c.dir); len(left) > 0 {
		c.t.Errorf("still running: %q", left)
	}
}

// group is where the cluster's resources are.
func (c *cluster) group() azure.ID { return azure.GroupID(c.status.Subscription, "kaz") }

// scaleSet returns the first scale set.
func (c *cluster) scaleSet() azure.ID { return c.scaleSets()[0] }

func (c *cluster) scaleSets() []azure.ID {
	var ids []azure.ID
	for _, name := range c.status.ScaleSets {
		ids = append(ids, c.group().Resource("Microsoft.Compute/virtualMachineScaleSets", name))
	}
	return ids
}

// condition returns the status of a node's condition, Unknown if it is missing.
func condition(n corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func taint(n corev1.Node, key string) bool {
	for _, one := range n.Spec.Taints {
		if one.Key == key {
			return true
		}
	}
	return false
}
