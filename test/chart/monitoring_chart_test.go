package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workload is an object with pods, as a Prometheus sees them.
type workload struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Metadata struct{ Annotations, Labels map[string]string }
			Spec     struct {
				Containers []struct {
					Image string
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int
					}
				}
			}
		}
	}
}

func workloads(t *testing.T, folder string, values map[string]any) map[string]workload {
	t.Helper()
	return objectsOf[workload](t, folder, values, func(w workload) string { return w.Kind + " " + w.Metadata.Name })
}

// scraped returns the port that the annotations name, "" if they ask for no scrape.
func (w workload) scraped() string {
	annotations := w.Spec.Template.Metadata.Annotations
	if annotations["prometheus.io/scrape"] != "true" {
		return ""
	}
	return annotations["prometheus.io/port"]
}

// serves reports whether a program of the pods serves metrics at a port, to clients elsewhere.
func (w workload) serves(port string) bool {
	for _, c := range w.Spec.Template.Spec.Containers {
		for _, flag := range []string{"--metrics-address=", "--metrics-bind-address="} {
			if slices.Contains(c.Args, flag+"0.0.0.0:"+port) {
				return true
			}
		}
	}
	return false
}

// withMetrics returns the charts of programs with metrics. kaz shadow has none: its findings are in its log.
func withMetrics() map[string]map[string]any {
	all := charts()
	delete(all, shadowFolder)
	return all
}

// TestScraped checks that the pods of each program of kaz have the annotations by which a Prometheus with the usual configuration finds
// their metrics, and that the program serves them there.
func TestScraped(t *testing.T) {
	found := 0
	for folder, values := range withMetrics() {
		for name, w := range workloads(t, folder, values) {
			if w.Kind != "Deployment" && w.Kind != "DaemonSet" || name == "Deployment csi-snapshot-controller" {
				continue
			}
			if port := w.scraped(); port == "" || !w.serves(port) {
				t.Errorf("%s: annotations %v, want those of a port with metrics", name, w.Spec.Template.Metadata.Annotations)
			}
			found++
		}
	}
	const all = 10
	if found != all {
		t.Errorf("%d kinds of pods, want %d", found, all)
	}
}

// TestNotScraped checks that the metrics of the host's pods can be switched off, and that annotations of the user come before those of a
// chart.
func TestNotScraped(t *testing.T) {
	off := map[string]any{"cloudControllerManager": map[string]any{"metricsPort": 0}, "cloudNodeManager": map[string]any{
		"metricsPort": "0", "healthProbeProxyMetricsPort": "0", "enableHealthProbeProxy": true, "windows": map[string]any{"enabled": true}}}
	for name, w := range workloads(t, folder, off) {
		if text := fmt.Sprint(w); w.scraped() != "" || strings.Contains(text, "metrics") {
			t.Errorf("%s: %s", name, text)
		}
	}
	none := map[string]any{"podAnnotations": map[string]any{"prometheus.io/scrape": "false", "team": "a"}}
	for folder, values := range map[string]map[string]any{
		diskFolder: {"controller": none}, shareFolder: {"controller": none},
		gatewayFolder: alsoNamed(none), autoscalerFolder: none,
	} {
		quiet := 0
		for _, w := range workloads(t, folder, values) {
			if a := w.Spec.Template.Metadata.Annotations; a["team"] == "a" && a["prometheus.io/scrape"] == "false" {
				quiet++
			}
		}
		if quiet != 1 {
			t.Errorf("%s: %d objects with the annotations of the user, want 1", folder, quiet)
		}
	}
}

// selectorOf is the selector of an object for pods.
type selectorOf struct {
	MatchLabels      map[string]string
	MatchExpressions []struct {
		Key, Operator string
		Values        []string
	}
}

// selects reports whether pods with labels are selected.
func (s selectorOf) selects(labels map[string]string) bool {
	for _, e := range s.MatchExpressions {
		if e.Operator != "In" || !slices.Contains(e.Values, labels[e.Key]) {
			return false
		}
	}
	return true
}

// monitored is an object that a chart has for the Prometheus operator or Grafana, or one with pods.
type monitored struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
	Spec struct {
		Selector            selectorOf
		PodMetricsEndpoints []struct{ Port, Interval string }
		Groups              []any
		Template            struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct{ Ports []struct{ Name string } }
			}
		}
	}
}

// withMonitoring are values that enable all of monitoring beside others.
func withMonitoring(values map[string]any, folderOf string) map[string]any {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]any{}
	}
	labels := map[string]any{"release": "prometheus"}
	monitoring := map[string]any{"podMonitor": map[string]any{"enabled": true, "interval": "30s", "labels": labels}}
	if folderOf == folder {
		monitoring["prometheusRule"] = map[string]any{"enabled": true, "labels": labels}
		monitoring["dashboards"] = map[string]any{"enabled": true}
	}
	all["monitoring"] = monitoring
	return all
}

// TestPodMonitors checks that the PodMonitor of each chart selects the pods of all its programs on Linux, which have the port that it names.
func TestPodMonitors(t *testing.T) {
	found := 0
	for folder, values := range withMetrics() {
		all := objectsOf[monitored](t, folder, withMonitoring(values, folder), func(m monitored) string { return m.Kind + " " + m.Metadata.Name })
		var monitor monitored
		for _, m := range all {
			if m.Kind == "PodMonitor" {
				monitor = m
			}
		}
		endpoints := monitor.Spec.PodMetricsEndpoints
		if len(endpoints) != 1 || endpoints[0].Port != "metrics" || endpoints[0].Interval != "30s" || monitor.Metadata.Namespace != "kube-system" ||
			monitor.Metadata.Labels["release"] != "prometheus" {
			t.Fatalf("%s: PodMonitor %+v", folder, monitor)
		}
		for name, m := range all {
			if !monitor.Spec.Selector.selects(m.Spec.Template.Metadata.Labels) {
				continue
			}
			found++
			ports := 0
			for _, c := range m.Spec.Template.Spec.Containers {
				for _, p := range c.Ports {
					if p.Name == "metrics" {
						ports++
					}
				}
			}
			if ports != 1 {
				t.Errorf("%s: %d ports metrics, want 1", name, ports)
			}
		}
	}
	const all = 9 // without those of Windows
	if found != all {
		t.Errorf("%d kinds of pods are selected, want %d", found, all)
	}
}

// TestMonitoringFiles compares the alerts and dashboards of the chart with the files that users without the operator take.
func TestMonitoringFiles(t *testing.T) {
	all := objectsOf[monitored](t, folder, withMonitoring(nil, folder), func(m monitored) string { return m.Kind + " " + m.Metadata.Name })
	var file monitored
	text, err := os.ReadFile(filepath.Join(folder, "alerts", "kaz.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	rule := all["PrometheusRule kaz"]
	if err != nil || len(file.Spec.Groups) == 0 || !reflect.DeepEqual(rule.Spec.Groups, file.Spec.Groups) ||
		rule.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("rule %+v, want the groups of alerts/kaz.yaml: %v", rule, err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "dashboards", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatalf("dashboards %q: %v", files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := all["ConfigMap kaz-dashboard-"+strings.TrimSuffix(name, ".json")]
		if strings.TrimSpace(m.Data["kaz-"+name]) != strings.TrimSpace(string(want)) || m.Metadata.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s is not in a ConfigMap with the label of dashboards: %+v", name, m.Metadata)
		}
	}
}

// hook is an object of helm test.
type hook struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Spec struct {
		Selector   map[string]string
		Ports      []struct{ Port int }
		Containers []struct {
			Image string
			Args  []string
		}
	}
}

// TestHooks checks that helm test asks the pods of each program: a pod with the program's own image sends a request to a Service that selects
// them, at the port of their metrics.
func TestHooks(t *testing.T) {
	found := 0
	for folder, values := range charts() {
		programs := workloads(t, folder, values)
		hooks := hooksOf(t, folder, values)
		for name, h := range hooks {
			if h.Metadata.Annotations["helm.sh/hook"] != "test" || h.Metadata.Namespace != "kube-system" {
				t.Errorf("%s: annotations %v in %s", name, h.Metadata.Annotations, h.Metadata.Namespace)
			}
			if h.Kind != "Pod" {
				continue
			}
			found++
			service := hooks["Service "+h.Metadata.Name]
			asked := 0
			for _, w := range programs {
				labels := w.Spec.Template.Metadata.Labels
				if len(service.Spec.Selector) == 0 || !contains(labels, service.Spec.Selector) {
					continue
				}
				asked++
				port := fmt.Sprint(service.Spec.Ports[0].Port)
				url := "http://" + h.Metadata.Name + ".kube-system.svc:" + port + "/"
				c := h.Spec.Containers[0]
				if w.scraped() != port || len(c.Args) != 1 || !strings.HasPrefix(c.Args[0], "--probe-url="+url) ||
					c.Image != w.Spec.Template.Spec.Containers[0].Image {
					t.Errorf("%s: %+v and %+v, want a request to the port %s of %s by its own image", name, h, service, w.scraped(), w.Metadata.Name)
				}
			}
			if asked != 1 {
				t.Errorf("%s asks %d kinds of pods, want 1", name, asked)
			}
		}
	}
	const all = 9
	if found != all {
		t.Errorf("%d tests, want %d", found, all)
	}
}

// hooksOf renders the objects of helm test.
func hooksOf(t *testing.T, folder string, values map[string]any) map[string]hook {
	t.Helper()
	rendered, err := renderOnly(loadFrom(t, folder), values, func(path string) bool { return strings.Contains(path, testFolder) })
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]hook{}
	for _, text := range rendered {
		for document := range strings.SplitSeq(text, "\n---\n") {
			var h hook
			if err := yaml.Unmarshal([]byte(document), &h); err != nil {
				t.Fatalf("%s: %v\n%s", folder, err, document)
			}
			if h.Kind != "" {
				all[h.Kind+" "+h.Metadata.Name] = h
			}
		}
	}
	return all
}

// contains reports whether labels have all of a selector.
func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
