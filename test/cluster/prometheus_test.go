package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/localcluster/image"
)

// prometheusImage is the image of Prometheus.
const prometheusImage = "kaz.local/prometheus:1"

// prometheusArchive builds Prometheus from its module, with discovery in Kubernetes alone, and returns an archive with its image. That of
// Debian has no such discovery.
func prometheusArchive(t *testing.T) string {
	t.Helper()
	began := time.Now()
	program := filepath.Join(t.TempDir(), "prometheus")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-tags=remove_all_sd,enable_kubernetes_sd",
		"-o", program, "github.com/prometheus/prometheus/cmd/prometheus")
	cmd.Dir = filepath.Join("testdata", "prometheus")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build Prometheus: %v\n%s", err, said)
	}
	archive := program + ".tar"
	if err := (image.Program{References: []string{prometheusImage}, Files: map[string]string{"prometheus": program},
		Entrypoint: []string{"/prometheus"}}).Write(archive); err != nil {
		t.Fatal(err)
	}
	t.Logf("Prometheus built in %s", short(time.Since(began)))
	return archive
}

// prometheusPod is a Prometheus with the configuration of docs/example-manifests/monitoring.
const prometheusPod = `
apiVersion: v1
kind: Pod
metadata: {name: prometheus, namespace: monitoring}
spec:
  serviceAccountName: prometheus
  containers:
  - name: prometheus
    image: IMAGE
    args: [--config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/data]
    readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
    volumeMounts: [{name: config, mountPath: /etc/prometheus}, {name: data, mountPath: /data}]
  volumes: [{name: config, configMap: {name: prometheus}}, {name: data, emptyDir: {}}]
`

// scrapedMetrics are the metrics that a Prometheus must have, by the job and the pods that they come from.
func scrapedMetrics() map[string]string {
	const job = `{job="kubernetes-pods",namespace="kube-system",pod=~"`
	return map[string]string{
		"API server":               `apiserver_request_total{job="kubernetes-apiservers"}`,
		"kubelets":                 `kubelet_node_name{job="kubernetes-nodes"}`,
		"cadvisor":                 `container_cpu_usage_seconds_total{job="kubernetes-cadvisor"}`,
		"CoreDNS":                  `coredns_build_info{job="kubernetes-service-endpoints",service="kube-dns"}`,
		"cloud-controller-manager": `kaz_arm_request_duration_seconds_count` + job + `cloud-controller-manager-.*"}`,
		"cloud-node-manager":       `kaz_node_manager_operations_total` + job + `cloud-node-manager-.*"}`,
		"controller of disks":      `kaz_arm_request_duration_seconds_count` + job + `csi-azuredisk-controller-.*"}`,
		"nodes of disks":           `kaz_csi_operation_duration_seconds_count` + job + `csi-azuredisk-node-.*"}`,
	}
}

// monitored runs a Prometheus with the usual configuration in the cluster, and checks that it finds everything: so many nodes, and each
// component. No target is down.
func (c *bootedCluster) monitored(registry string, nodes int) {
	c.t.Helper()
	manifest := string(readFile(c.t, filepath.Join("..", "..", "docs", "example-manifests", "monitoring", "prometheus.yaml")))
	c.must(c.run(manifest, "apply", "-f", "-"))
	c.must(c.run(strings.ReplaceAll(prometheusPod, "IMAGE", strings.Replace(prometheusImage, "kaz.local", registry, 1)), "apply", "-f", "-"))
	c.must(c.run("", "-n", "monitoring", "wait", "pod/prometheus", "--for=condition=Ready", "--timeout=3m"))
	took := wait(c.t, 3*time.Minute, "all targets of Prometheus", func() string { return c.targets(nodes) })
	for what, query := range scrapedMetrics() {
		wait(c.t, time.Minute, "metrics of "+what, func() string {
			var found struct{ Result []any }
			if why := c.prometheus("query?query="+url.QueryEscape(query), &found); why != "" {
				return why
			}
			if len(found.Result) == 0 {
				return "Prometheus has no " + query
			}
			return ""
		})
	}
	c.t.Logf("Prometheus has all %d kinds of metrics; its targets were up after %s", len(scrapedMetrics()), short(took))
}

// prometheus asks Prometheus, and returns why that failed.
func (c *bootedCluster) prometheus(path string, data any) string {
	text, err := c.run("", "get", "--raw", "/api/v1/namespaces/monitoring/pods/prometheus:9090/proxy/api/v1/"+path)
	if err != nil {
		return fmt.Sprintf("%v: %s", err, text)
	}
	return reason(json.Unmarshal([]byte(text), &struct{ Data any }{data}))
}

// targets returns which targets of Prometheus are absent or not up.
func (c *bootedCluster) targets(nodes int) string {
	var found struct {
		ActiveTargets []struct {
			Labels                       map[string]string
			ScrapeURL, Health, LastError string
		}
	}
	if why := c.prometheus("targets?state=active", &found); why != "" {
		return why
	}
	count, down := map[string]int{}, []string{}
	for _, target := range found.ActiveTargets {
		if target.Health != "up" {
			down = append(down, fmt.Sprintf("%s %s: %s", target.ScrapeURL, target.Health, target.LastError))
			continue
		}
		of := target.Labels["job"]
		for _, program := range []string{"cloud-controller-manager", "cloud-node-manager", "csi-azuredisk-controller", "csi-azuredisk-node"} {
			if strings.HasPrefix(target.Labels["pod"], program+"-") {
				of = program
			}
		}
		count[of]++
	}
	for of, want := range map[string]int{"kubernetes-apiservers": 1, "kubernetes-nodes": nodes, "kubernetes-cadvisor": nodes,
		"cloud-controller-manager": 1, "cloud-node-manager": nodes, "csi-azuredisk-controller": 1, "csi-azuredisk-node": nodes} {
		if count[of] != want {
			down = append(down, fmt.Sprintf("%s: %d targets are up, want %d", of, count[of], want))
		}
	}
	slices.Sort(down)
	return strings.Join(down, "\n")
}
