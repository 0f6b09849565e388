package cluster_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestBootedAuthorities replaces the certificate authorities of a cluster on machines that boot, while a client sends requests. All machines are
// replaced three times, and the only member is lost once in between and restored.
func TestBootedAuthorities(t *testing.T) {
	c := startBooting(t, 1).cluster("dev", example(t, "dev.yaml"))
	c.whole(2, c.version)
	c.serves(2, c.version)
	first := c.apiServer()
	c.phased("--authorities")
	if out, err := c.kaz("rotate", c.name, "--authorities", "--issue"); err == nil || !strings.Contains(out, "kaz cluster kubeconfig dev") {
		t.Errorf("a kubeconfig that does not trust the next authority: %v %s", err, out)
	}
	c.must(c.kaz("kubeconfig", c.name))
	c.phased("--authorities", "--issue")
	c.restoredWithAuthorities()
	c.phased("--authorities", "--finish")
	c.alone()
	if err := first(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client of the former authority: %v", err)
	}
	c.wellAfter("the rotation")
	if out := c.must(c.deploy(c.name, c.definition)); !strings.Contains(out, "is up to date") {
		t.Errorf("a deployment after the rotation: %s", out)
	}
}

// phased carries a phase out under constant requests to the API server, each with a connection of its own. At most one of a thousand may fail.
func (c *bootedCluster) phased(flags ...string) {
	c.t.Helper()
	api := asks(c.t, c.apiServer())
	steps := c.change(append([]string{"rotate", c.name}, flags...)...)
	c.whole(2, c.version)
	close(api.stop)
	api.tasks.Wait()
	c.t.Logf("%v: %d of %d requests failed: %v", flags, len(api.failed), api.asked, api.why)
	const perThousand = 1000
	if len(api.failed)*perThousand > api.asked {
		c.t.Errorf("%v: %d of %d requests failed, want at most one of a thousand: %v\n%s", flags, len(api.failed), api.asked, api.why, steps)
	}
}

// restoredWithAuthorities loses the only member during the rotation. Its successor makes the control plane anew, with both authorities.
func (c *bootedCluster) restoredWithAuthorities() {
	c.t.Helper()
	c.change("backup", c.name)
	ask := c.apiServer()
	c.kill(c.members()[0])
	wait(c.t, time.Minute, "the API server is gone", func() string {
		if ask(c.t.Context()) == nil {
			return "it answers"
		}
		return ""
	})
	c.change("restore", c.name)
	c.whole(2, c.version)
	if both := c.discovery(); bytes.Count(both, []byte("BEGIN CERTIFICATE")) != 2 {
		c.t.Errorf("machines that join get\n%s\nwant both authorities", both)
	}
}

// alone checks that nothing in the cluster trusts more than one authority any more.
func (c *bootedCluster) alone() {
	c.t.Helper()
	for what, text := range map[string][]byte{
		"machines that join": c.discovery(),
		"pods":               []byte(c.must(c.run("", "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`))),
		"API servers of extensions": []byte(c.must(c.run("", "-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o",
			`jsonpath={.data.client-ca-file}`))),
	} {
		if count := bytes.Count(text, []byte("BEGIN CERTIFICATE")); count != 1 {
			c.t.Errorf("%s get %d authorities, want 1", what, count)
		}
	}
}

// discovery are the certificate authorities that machines which join get.
func (c *bootedCluster) discovery() []byte {
	c.t.Helper()
	text := c.must(c.run("", "-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data.kubeconfig}"))
	var config struct {
		Clusters []struct {
			Cluster struct {
				Authority []byte `json:"certificate-authority-data"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil || len(config.Clusters) != 1 {
		c.t.Fatal(err, fmt.Sprint(len(config.Clusters), " clusters"))
	}
	return config.Clusters[0].Cluster.Authority
}
