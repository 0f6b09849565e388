package cluster_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/testkit"
)

// TestExamples applies the manifests of the docs to a real API server and compares the results, all
// in one cluster.
func TestExamples(t *testing.T) {
	c := startUp(t, newDir(t))
	t.Run("explain", func(t *testing.T) { explain(c.in(t)) })
	t.Run("the manifests of the docs", func(t *testing.T) { examples(c.in(t)) })
	c.stop(interrupt)
}

// examples applies all manifests unchanged and compares Azure with each of them.
func examples(c *cluster) {
	vnet := c.group().Resource("Microsoft.Network/virtualNetworks", "kaz-vnet")
	played := []testkit.Example{}
	var all strings.Builder
	for _, e := range testkit.Examples(c.t, filepath.Join("..", "..", "docs", "example-manifests", "service")) {
		if e.DualStack() {
			continue // the cluster has IPv4 only; TestDualStack plays it
		}
		c.sh(e.Commands(c.t, c.group(), vnet))
		played = append(played, e)
		all.WriteString("---\n" + e.Manifest)
	}
	if len(played) < 20 {
		c.t.Errorf("%d examples, want 20 at least", len(played))
	}
	log, began := c.requestLog(), time.Now()
	c.must(all.String(), "apply", "-f", "-")
	wait(c.t, 2*time.Minute, "an address for each Service", func() string {
		for _, s := range get[corev1.ServiceList](c, "services", "--field-selector=spec.type=LoadBalancer").Items {
			if len(s.Status.LoadBalancer.Ingress) == 0 {
				return s.Name + " has none"
			}
		}
		return ""
	})
	c.t.Logf("%d examples served after %s", len(played), short(time.Since(began)))
	c.settled("--all")
	reads, writes := log.since(c.t)
	c.t.Logf("%d reads and %d writes", len(reads), len(writes))
	for _, e := range played {
		c.t.Run(e.Name, func(t *testing.T) { c.in(t).servedAs(e) })
	}
	began = time.Now()
	c.must("", "delete", "service", "--field-selector=spec.type=LoadBalancer", "--wait=false")
	wait(c.t, 2*time.Minute, "the end of the Services", func() string {
		if left := get[corev1.ServiceList](c, "services", "--field-selector=spec.type=LoadBalancer").Items; len(left) > 0 {
			return fmt.Sprintf("%d are left", len(left))
		}
		return ""
	})
	c.t.Logf("deleted in %s", short(time.Since(began)))
}

// sh runs commands of the docs, in which kaz is that of this cluster.
func (c *cluster) sh(commands string) {
	c.t.Helper()
	script := fmt.Sprintf("set -eu; . %q; kaz() { %q \"$@\" --dir %q; }\n%s", c.status.Environment, kaz(), c.dir, commands)
	if out, errs, err := output(c.t, "", "/bin/bash", "-c", script); err != nil {
		c.t.Fatalf("%s\n%v: %s%s", commands, err, out, errs)
	}
}

// servedAs compares what Azure has for the Services of an example with its comment.
func (c *cluster) servedAs(e testkit.Example) {
	c.t.Helper()
	var got []string
	for _, s := range e.Services {
		served := c.service(s.Name)
		for _, fact := range c.env().Facts(c.t, &served) {
			if len(e.Services) > 1 {
				fact = s.Name + ": " + fact
			}
			got = append(got, fact)
		}
	}
	if d := cmp.Diff(e.Then, got); d != "" {
		c.t.Errorf("what is in Azure (-the example's comment +it is):\n%s", d)
	}
}
