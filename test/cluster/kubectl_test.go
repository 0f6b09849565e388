package cluster_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// kubectl runs the kubectl that kaz built.
func (c *cluster) kubectl(stdin string, args ...string) (string, error) {
	c.t.Helper()
	args = append([]string{"--kubeconfig", c.status.Kubeconfig, "--cache-dir", filepath.Join(filepath.Dir(c.dir), "kubectl")}, args...)
	out, errs, err := output(c.t, stdin, c.status.Kubectl, args...)
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[4:], " "), err, errs)
	}
	return out, err
}

// must is kubectl that has to succeed.
func (c *cluster) must(stdin string, args ...string) string {
	c.t.Helper()
	out, err := c.kubectl(stdin, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// get reads objects as JSON.
func get[T any](c *cluster, args ...string) T {
	c.t.Helper()
	var v T
	if err := json.Unmarshal([]byte(c.must("", append(append([]string{"get"}, args...), "-o", "json")...)), &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *cluster) nodes() []corev1.Node { return get[corev1.NodeList](c, "nodes").Items }

func (c *cluster) service(name string) corev1.Service { return get[corev1.Service](c, "service", name) }

// manifest returns a Service as a user would write it, without defaults.
func manifest(s *corev1.Service) (string, error) {
	m := map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": s.Name, "namespace": s.Namespace, "annotations": s.Annotations},
	}
	spec := map[string]any{"type": s.Spec.Type, "selector": s.Spec.Selector, "ports": s.Spec.Ports}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		spec["loadBalancerSourceRanges"] = s.Spec.LoadBalancerSourceRanges
	}
	if s.Annotations != nil {
		mine := map[string]string{}
		for k, v := range s.Annotations {
			if k != corev1.LastAppliedConfigAnnotation {
				mine[k] = v
			}
		}
		m["metadata"].(map[string]any)["annotations"] = mine
	}
	m["spec"] = spec
	text, err := yaml.Marshal(m)
	return string(text), err
}

// ensured counts how often the Service was served: each time ends with an event.
func (c *cluster) ensured(s corev1.Service) int {
	c.t.Helper()
	total := 0
	for _, e := range c.events("Service", s.Name, "EnsuredLoadBalancer") {
		if e.InvolvedObject.UID == s.UID {
			total += int(max(e.Count, 1))
		}
	}
	return total
}

func (c *cluster) events(kind, name, reason string) []corev1.Event {
	c.t.Helper()
	selector := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s,reason=%s", kind, name, reason)
	return get[corev1.EventList](c, "events", "--field-selector", selector).Items
}

// addressWithin is the timeout of a Service's address without simulated latency; it allows for a busy
// machine.
const addressWithin = time.Minute

// address waits for the Service's address, and returns it.
func (c *cluster) address(name string, within time.Duration) string {
	c.t.Helper()
	c.must("", "wait", "service/"+name, "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout="+within.String())
	return c.service(name).Status.LoadBalancer.Ingress[0].IP
}

// apply applies a Service and waits until it is served as it is written now.
func (c *cluster) apply(s *corev1.Service) (*corev1.Service, error) {
	c.t.Helper()
	text, err := manifest(s)
	if err != nil {
		return nil, err
	}
	before := 0
	if c.must("", "get", "service", s.Name, "--ignore-not-found") != "" {
		before = c.ensured(c.service(s.Name))
	}
	began := time.Now()
	said, err := c.kubectl(text, "apply", "-f", "-")
	if err != nil {
		return nil, err
	}
	ip := c.address(s.Name, addressWithin)
	took := time.Since(began)
	served := c.service(s.Name)
	if !strings.Contains(said, "unchanged") {
		took = max(took, wait(c.t, addressWithin, "event EnsuredLoadBalancer of "+s.Name, func() string {
			if c.ensured(served) > before {
				return ""
			}
			return fmt.Sprintf("there are %d as before", before)
		}))
	}
	served = c.service(s.Name)
	c.t.Logf("kubectl apply service %s: served at %s after %s", s.Name, ip, short(took))
	return &served, nil
}

// remove deletes a Service and waits until it is gone.
func (c *cluster) remove(name string) error {
	c.t.Helper()
	began := time.Now()
	_, err := c.kubectl("", "delete", "service", name, "--wait", "--timeout="+addressWithin.String())
	c.t.Logf("kubectl delete service %s: %s", name, short(time.Since(began)))
	return err
}
