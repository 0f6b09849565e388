package app

import (
	"flag"
	"maps"
	"net/netip"
	"slices"
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

// allMetrics returns the metrics of kaz's own components, by program.
func allMetrics(t *testing.T) (controller, node page.Metrics) {
	t.Helper()
	s := page.Metrics{}
	sender, err := arm.New(arm.Config{Endpoint: "https://management.test", Registerer: s})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := cache.Over(sender, cache.Options{Registerer: s})
	if err != nil {
		t.Fatal(err)
	}
	both := maps.Clone(s)
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
	n := both
	if _, err := nodemanager.NewMetrics(n); err != nil {
		t.Fatal(err)
	}
	return s, n
}

// TestMetricsThatUsersHave checks the names and labels that dashboards, alerts and recording rules
// use.
func TestMetricsThatUsersHave(t *testing.T) {
	controller, _ := allMetrics(t)
	operation := []string{"request", "resource_group", "subscription_id", "source"}
	request := []string{"method", "resource", "resource_group", "subscription_id"}
	for _, want := range []page.Metric{
		{Name: "cloudprovider_azure_op_duration_seconds", Kind: "histogram", Labels: operation},
		{Name: "cloudprovider_azure_op_failure_count", Kind: "counter", Labels: operation},
		{Name: "cloudprovider_azure_api_request_duration_seconds", Kind: "histogram", Labels: operation},
		{Name: "cloudprovider_azure_api_request_errors", Kind: "counter", Labels: append(slices.Clone(operation), "code")},
		{Name: "cloudprovider_azure_api_request_ratelimited_count", Kind: "counter", Labels: operation},
		{Name: "cloudprovider_azure_api_request_throttled_count", Kind: "counter", Labels: operation},
		{Name: "arm_request_duration_seconds", Kind: "histogram", Labels: request},
		{Name: "arm_request_errors_counter_total", Kind: "counter", Labels: append(slices.Clone(request), "status_code", "error_code")},
		{Name: "arm_request_rate_limit_counter_total", Kind: "counter", Labels: request},
		{Name: "arm_request_throttle_counter_total", Kind: "counter", Labels: request},
		{Name: "service_controller_loadbalancer_sync_total", Kind: "counter"},
		{Name: "service_controller_nodesync_error_total", Kind: "counter"},
		{Name: "service_controller_nodesync_latency_seconds", Kind: "histogram"},
		{Name: "service_controller_update_loadbalancer_host_latency_seconds", Kind: "histogram"},
		{Name: "node_ipam_controller_cidrset_usage_cidrs", Kind: "gauge", Labels: []string{"clusterCIDR"}},
	} {
		got, ok := controller[want.Name]
		got.Help = ""
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s is there: %t (-want +got):\n%s", want.Name, ok, diff)
		}
	}
}

// TestReferenceOfMetrics compares docs/reference/metrics.md with the metrics.
func TestReferenceOfMetrics(t *testing.T) {
	controller, node := allMetrics(t)
	checkPage(t, metricsPage, "metrics of cloud-controller-manager", controller.Table())
	for name := range controller {
		delete(node, name)
	}
	checkPage(t, metricsPage, "metrics of cloud-node-manager", node.Table())
	for driver, known := range map[string]string{"azuredisk-csi-driver": "azuredisk_csi_driver", "azurefile-csi-driver": "azurefile_csi_driver"} {
		s := page.Metrics{}
		if _, err := csi.NewMetrics(s, known); err != nil {
			t.Fatal(err)
		}
		checkPage(t, metricsPage, "metrics of "+driver, s.Table())
	}
}

// checkPage compares a generated part of a page with want, or updates it.
func checkPage(t *testing.T, file, part, want string) {
	t.Helper()
	page.Part{File: file, Name: part, Hint: updateHint}.Check(t, want, *update)
}

func ranges() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")} }
