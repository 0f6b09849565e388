package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/gateway/metrics"
	"kaz/internal/observe"
	"kaz/internal/testkit/page"
)

// TestReferenceOfMetrics compares docs/reference/metrics.md with the metrics.
func TestReferenceOfMetrics(t *testing.T) {
	shown := page.Metrics{}
	metrics.New(shown)
	page.Part{
		File: "../../../docs/reference/metrics.md", Name: "metrics of application-gateway-controller",
		Hint: "go test ./cmd/application-gateway-controller/app -run TestReference -update",
	}.Check(t, shown.Table(), *update)
}

// TestMetricsOfAGIC checks that the metrics of AGIC follow the metrics of kaz, and have AGIC's labels.
func TestMetricsOfAGIC(t *testing.T) {
	registry := prometheus.NewRegistry()
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kaz_gateway_writes_total"}, []string{"result"})
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kaz_arm_request_duration_seconds"}, []string{"verb"})
	last := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kaz_gateway_last_write_duration_seconds"})
	adds := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_adds_total"}, []string{"name"})
	registry.MustRegister(writes, requests, last, adds)
	last.Set(31.5)
	adds.WithLabelValues("ingresses").Add(12)
	adds.WithLabelValues("statuses").Add(100)
	writes.WithLabelValues("succeeded").Add(3)
	writes.WithLabelValues("invalid").Add(2)
	writes.WithLabelValues("changed").Inc()
	requests.WithLabelValues("GET").Observe(1)
	requests.WithLabelValues("PUT").Observe(7)
	id := azure.ID("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/gate")
	labels := labelsOfAGIC(id, "azure/application-gateway", environment(map[string]string{"AGIC_POD_NAME": "pod", "AGIC_POD_NAMESPACE": "ns"}))
	text := scrape(t, withAGIC(registry, labels))
	of := `{controller_appgw_name="gate",controller_appgw_resource_group="g",controller_appgw_subscription="s",` +
		`controller_class="azure/application-gateway",controller_namespace="ns",controller_pod="pod",controller_version="`
	for _, want := range []string{
		"appgw_ingress_controller_arm_api_update_call_success_counter" + of, "appgw_ingress_controller_arm_api_call_counter" + of,
		`"} 3` + "\n", `kaz_gateway_writes_total{result="invalid"} 2`,
		"# TYPE appgw_ingress_controller_arm_api_update_call_failure_counter counter",
		"# TYPE appgw_ingress_controller_update_latency_seconds gauge",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	for metric, value := range map[string]string{
		"arm_api_update_call_success_counter{": "3", "arm_api_update_call_failure_counter{": "3", "arm_api_call_counter{": "2",
		"update_latency_seconds{": "31.5", "k8s_api_event_counter{": "12", `error_code="invalid"`: "2", `error_code="changed"`: "1",
	} {
		found := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "appgw_ingress_controller_") && strings.Contains(line, metric) {
				found = strings.HasSuffix(line, "} "+value+"\n")
			}
		}
		if !found {
			t.Errorf("%s is not %s in\n%s", metric, value, text)
		}
	}
	if strings.Contains(text, `error_code="succeeded"`) {
		t.Error("a write that succeeded is an error")
	}
}

func scrape(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	server := httptest.NewServer(observe.MetricsHandler(from))
	defer server.Close()
	return get(t, server.URL)
}

// get returns the body of an answer, which must be 200.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", url, answer.StatusCode, err, text)
	}
	return string(text)
}
