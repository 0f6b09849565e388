package app

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/ipam"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/csi"
	"kaz/internal/nodemanager"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the reference pages anew")

const (
	metricsPage = "../../../docs/reference/metrics.md"
	updateHint  = "go test ./cmd/cloud-controller-manager/app -run TestReference -update"
)

// shown is a Registerer that records the metrics.
type shown struct{ metrics map[string]metric }

type metric struct {
	name, kind, help string
	labels           []string
}

var descriptor = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

func (s *shown) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		m := descriptor.FindStringSubmatch(d.String())
		if m == nil {
			return fmt.Errorf("%s cannot be read", d)
		}
		found := metric{name: m[1], kind: kindOf(c), help: strings.ReplaceAll(m[2], `\"`, `"`)}
		if m[3] != "" {
			found.labels = strings.Split(m[3], ",")
		}
		s.metrics[found.name] = found
	}
	return nil
}

func (s *shown) MustRegister(...prometheus.Collector) { panic("not used") }
func (s *shown) Unregister(prometheus.Collector) bool { return false }

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec, prometheus.Counter:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	return "gauge"
}

// allMetrics returns the metrics of kaz's own components, by program.
func allMetrics(t *testing.T) (controller, node map[string]metric) {
	t.Helper()
	s := &shown{metrics: map[string]metric{}}
	sender, err := arm.New(arm.Config{Endpoint: "https://management.test", Registerer: s})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := cache.Over(sender, cache.Options{Registerer: s})
	if err != nil {
		t.Fatal(err)
	}
	both := maps.Clone(s.metrics)
	cloud := cloudprovider.New(cloudprovider.Config{Registerer: s, LoadBalancer: loadbalancer.Config{}}, kept)
	defer cloud.Close()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := cloud.Services("kubernetes", service.Config{},
		service.Deps{Client: client, Informers: factory, Events: &record.FakeRecorder{}, Registerer: s}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipam.New(ipam.Config{Ranges: ranges(), Bits: []int{24}}, client, factory.Core().V1().Nodes(), nil, s); err != nil {
		t.Fatal(err)
	}
	for _, c := range []prometheus.Collector{newMissingRights(), newReloadResults()} {
		if err := s.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	n := &shown{metrics: both}
	if _, err := nodemanager.NewMetrics(n); err != nil {
		t.Fatal(err)
	}
	return s.metrics, n.metrics
}

// TestMetricsThatUsersHave checks the names and labels that dashboards, alerts and recording rules
// use.
func TestMetricsThatUsersHave(t *testing.T) {
	controller, _ := allMetrics(t)
	operation := []string{"request", "resource_group", "subscription_id", "source"}
	request := []string{"method", "resource", "resource_group", "subscription_id"}
	for _, want := range []metric{
		{"cloudprovider_azure_op_duration_seconds", "histogram", "", operation},
		{"cloudprovider_azure_op_failure_count", "counter", "", operation},
		{"cloudprovider_azure_api_request_duration_seconds", "histogram", "", operation},
		{"cloudprovider_azure_api_request_errors", "counter", "", append(slices.Clone(operation), "code")},
		{"cloudprovider_azure_api_request_ratelimited_count", "counter", "", operation},
		{"cloudprovider_azure_api_request_throttled_count", "counter", "", operation},
		{"arm_request_duration_seconds", "histogram", "", request},
		{"arm_request_errors_counter_total", "counter", "", append(slices.Clone(request), "status_code", "error_code")},
		{"arm_request_rate_limit_counter_total", "counter", "", request},
		{"arm_request_throttle_counter_total", "counter", "", request},
		{"service_controller_loadbalancer_sync_total", "counter", "", nil},
		{"service_controller_nodesync_error_total", "counter", "", nil},
		{"service_controller_nodesync_latency_seconds", "histogram", "", nil},
		{"service_controller_update_loadbalancer_host_latency_seconds", "histogram", "", nil},
		{"node_ipam_controller_cidrset_usage_cidrs", "gauge", "", []string{"clusterCIDR"}},
	} {
		got, ok := controller[want.name]
		got.help = ""
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(metric{})); !ok || diff != "" {
			t.Errorf("%s is there: %t (-want +got):\n%s", want.name, ok, diff)
		}
	}
}

// TestReferenceOfMetrics compares docs/reference/metrics.md with the metrics.
func TestReferenceOfMetrics(t *testing.T) {
	controller, node := allMetrics(t)
	checkPage(t, metricsPage, "metrics of cloud-controller-manager", metricTable(controller))
	for name := range controller {
		delete(node, name)
	}
	checkPage(t, metricsPage, "metrics of cloud-node-manager", metricTable(node))
	for driver, known := range map[string]string{"azuredisk-csi-driver": "azuredisk_csi_driver", "azurefile-csi-driver": "azurefile_csi_driver"} {
		s := &shown{metrics: map[string]metric{}}
		if _, err := csi.NewMetrics(s, known); err != nil {
			t.Fatal(err)
		}
		checkPage(t, metricsPage, "metrics of "+driver, metricTable(s.metrics))
	}
}

func metricTable(all map[string]metric) string {
	var b strings.Builder
	b.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		labels := make([]string, len(m.labels))
		for i, l := range m.labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), m.help)
	}
	b.WriteString("\n")
	return b.String()
}

// checkPage compares a generated part of a page with want, or updates it.
func checkPage(t *testing.T, file, part, want string) {
	t.Helper()
	page.Part{File: file, Name: part, Hint: updateHint}.Check(t, want, *update)
}

func ranges() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")} }
