package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workload is an object with pods, as a Prometheus sees them.
type workload struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Containers []struct {
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

// TestScraped checks that the pods of each program of kaz have the annotations by which a Prometheus with the usual configuration finds
// their metrics, and that the program serves them there.
func TestScraped(t *testing.T) {
	found := 0
	for folder, values := range charts() {
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
