package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/testkit"
)

// TestWithout runs `kaz local up` without kaz's components, and another cloud-controller-manager with
// the printed files.
func TestWithout(t *testing.T) {
	c := startUp(t, newDir(t), "--without", "cloud-controller-manager", "--without", "cloud-node-manager")
	if got := len(c.nodes()); got != 3 {
		wait(t, time.Minute, "nodes", func() string {
			if got = len(c.nodes()); got == 3 {
				return ""
			}
			return fmt.Sprintf("there are %d", got)
		})
	}
	for _, n := range c.nodes() {
		if !taint(n, "node.cloudprovider.kubernetes.io/uninitialized") || n.Spec.ProviderID != "" {
			t.Errorf("node %s: taints %v, provider id %q, without a controller", n.Name, n.Spec.Taints,
				n.Spec.ProviderID)
		}
	}
	t.Run("a wrong secret", func(t *testing.T) { wrongSecret(c.in(t)) })
	t.Run("an invalid azure.json", func(t *testing.T) { invalidConfig(c.in(t)) })
	t.Run("a cloud-controller-manager by hand", func(t *testing.T) { byHand(c.in(t)) })
	t.Run("a configuration that changes", func(t *testing.T) { reloading(c.in(t)) })
	c.stop(syscall.SIGTERM)
}

// manager is a command that runs the cloud-controller-manager with the environment
// that env.sh prepares.
func (c *cluster) manager(cloudConfig string) *exec.Cmd {
	script := `. "$1" && exec "$2" --cloud-config "$3" --kubeconfig "$KUBECONFIG" --cluster-name kaz` +
		` --leader-elect=false --configure-cloud-routes=false --allocate-node-cidrs=false --secure-port=0`
	return exec.CommandContext(c.t.Context(), "/bin/bash", "-c", script, "bash",
		c.status.Environment, filepath.Join(programs, "cloud-controller-manager"), cloudConfig)
}

// changed is the cluster's azure.json with other values.
func (c *cluster) changed(values map[string]any) string {
	c.t.Helper()
	var config map[string]any
	if err := json.Unmarshal(readFile(c.t, c.status.CloudConfig), &config); err != nil {
		c.t.Fatal(err)
	}
	maps.Copy(config, values)
	text, err := json.Marshal(config)
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "azure.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// wrongSecret checks that the program ends with an error that names the rejected credential and the
// reason, and not the secret.
func wrongSecret(c *cluster) {
	const secret = "not-the-secret-at-all"
	var info struct{ ClientID string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "azure-state-running.json")), &info); err != nil {
		c.t.Fatal(err)
	}
	file := c.changed(map[string]any{"useManagedIdentityExtension": false, "aadClientId": info.ClientID, "aadClientSecret": secret})
	began := time.Now()
	cmd := c.manager(file)
	text, err := cmd.CombinedOutput()
	if err == nil {
		c.t.Error("ended well")
	}
	for _, want := range []string{"secret", "AADSTS7000215", info.ClientID} {
		if !strings.Contains(string(text), want) {
			c.t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), secret) {
		c.t.Errorf("the secret is public:\n%s", text)
	}
	c.t.Logf("after %s: %s", short(time.Since(began)), text)
}

// invalidConfig checks that all problems are reported at once.
func invalidConfig(c *cluster) {
	file := c.changed(map[string]any{"vmType": "mainframe", "loadBalancerSku": "gold", "subscriptionId": "",
		"cloudProviderBackoffRetries": "many"})
	refuses(c.t, c.manager(file), file, "vmType", "mainframe", "loadBalancerSku", "gold", "subscriptionId",
		"cloudProviderBackoffRetries", "many")
	missing := filepath.Join(c.t.TempDir(), "nowhere.json")
	refuses(c.t, c.manager(missing), missing)
}

func byHand(c *cluster) {
	began := time.Now()
	manager := start(c.t, c.manager(c.status.CloudConfig))
	wait(c.t, time.Minute, "initialized nodes", func() string {
		for _, n := range c.nodes() {
			if taint(n, "node.cloudprovider.kubernetes.io/uninitialized") || n.Spec.ProviderID == "" {
				return fmt.Sprintf("%s: taints %v, provider id %q", n.Name, n.Spec.Taints, n.Spec.ProviderID)
			}
		}
		return ""
	})
	c.t.Logf("nodes initialized %s after the start", short(time.Since(began)))
	checkNodes(c)
	if _, err := c.apply(testkit.NewService("web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})); err != nil {
		c.t.Error(err)
	}
	c.removeAll("web")
	stopped(c.t, manager, syscall.SIGTERM)
}
