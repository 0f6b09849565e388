package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// externalDNS renders the chart of ExternalDNS, of the version that test/externaldns pins, with the values of deploy/external-dns.
func externalDNS(t *testing.T) map[string]object {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/external-dns")
	command.Dir = filepath.Join("..", "externaldns")
	out, err := command.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "external-dns", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(module.Dir, "charts", "external-dns")
	return objectsOf[object](t, folder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// TestExternalDNS checks the container that the chart of ExternalDNS adds: its flags, its probes, and that it is confined.
func TestExternalDNS(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "external-dns-webhook.md"))
	if err != nil {
		t.Fatal(err)
	}
	pod := externalDNS(t)["Deployment kaz-external-dns"].Spec.Template.Spec
	i := slices.IndexFunc(pod.Containers, func(c container) bool { return c.Name == "webhook" })
	if i < 0 {
		t.Fatalf("no container webhook in %+v", pod)
	}
	c := pod.Containers[i]
	for _, arg := range c.Args {
		if flag, _, _ := strings.Cut(arg, "="); !strings.Contains(string(page), "| `"+flag+"` |") {
			t.Errorf("the program has no %s", flag)
		}
	}
	s := c.SecurityContext
	if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || pod.HostNetwork {
		t.Errorf("container %+v", s)
	}
	if live, ready := c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path; live != "/healthz" || ready != "/readyz" {
		t.Errorf("probes %s and %s", live, ready)
	}
	// The program serves its probes at the port of the chart by default.
	if !strings.Contains(string(page), "| `--metrics-address` | `0.0.0.0:8080` |") || len(c.Ports) != 1 || c.Ports[0].ContainerPort != 8080 {
		t.Errorf("ports %+v", c.Ports)
	}
	external := pod.Containers[slices.IndexFunc(pod.Containers, func(c container) bool { return c.Name == "external-dns" })]
	for _, want := range []string{"--provider=webhook", "--registry=txt", "--txt-owner-id=mycluster", "--domain-filter=example.com"} {
		if !slices.Contains(external.Args, want) {
			t.Errorf("ExternalDNS has no %s: %q", want, external.Args)
		}
	}
}

// TestGuideOfExternalDNS checks that the guide shows the values that are tested here.
func TestGuideOfExternalDNS(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "dns.md"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(filepath.Join("..", "..", "deploy", "external-dns", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "```yaml\n"+string(values)+"```\n") {
		t.Error("docs/guides/dns.md does not show deploy/external-dns/values.yaml")
	}
}
