package arm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"kaz/internal/arm/budget"
	"kaz/internal/azure"
)

// series writes the metrics with names that begin like this, as NAME{LABELS} VALUE with
// the count for histograms.
func series(t *testing.T, r prometheus.Gatherer, prefixes ...string) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.GetName(), p) }) {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := make([]string, len(m.GetLabel()))
			for i, l := range m.GetLabel() {
				labels[i] = fmt.Sprintf("%s=%q", l.GetName(), l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), value(f.GetType(), m)))
		}
	}
	return all
}

func value(kind dto.MetricType, m *dto.Metric) any {
	switch kind {
	case dto.MetricType_HISTOGRAM:
		return m.GetHistogram().GetSampleCount()
	case dto.MetricType_COUNTER:
		return m.GetCounter().GetValue()
	default:
		return m.GetGauge().GetValue()
	}
}

// The labels that dashboards select by, for what kaz calls.
func TestDashboardLabels(t *testing.T) {
	const in = `resource_group="g",source="",subscription_id="s1"`
	instance := group.Resource("Microsoft.Compute/virtualMachineScaleSets", "set").Child("virtualMachines", "3")
	for _, c := range []struct {
		do                        do
		request, method, resource string
		scope                     string
	}{
		{get(lb("l")), "load_balancers_get", "get", "LoadBalancer", in},
		{get("/subscriptions/s1/resourceGroups/G/providers/microsoft.network/LOADBALANCERS/l"), "load_balancers_get", "get",
			"LoadBalancer", in},
		{put(lb("l")), "load_balancers_create_or_update", "create_or_update", "LoadBalancer", in},
		{patch(lb("l")), "load_balancers_update", "update", "LoadBalancer", in},
		{remove(lb("l")), "load_balancers_delete", "delete", "LoadBalancer", in},
		{list(azure.Query{Scope: group, Type: "Microsoft.Network/publicIPAddresses"}), "public_ip_addresses_list", "list",
			"PublicIPAddress", in},
		{put(group.Resource("Microsoft.Network/networkSecurityGroups", "n")), "security_groups_create_or_update", "create_or_update",
			"SecurityGroup", in},
		{put(group.Resource("Microsoft.Network/routeTables", "r")), "route_tables_create_or_update", "create_or_update", "RouteTable", in},
		{get(group.Resource("Microsoft.Network/networkInterfaces", "n")), "interfaces_get", "get", "Interface", in},
		{get(group.Resource("Microsoft.Network/virtualNetworks", "v").Child("subnets", "s")), "subnets_get", "get", "Subnet", in},
		{get(group.Resource("Microsoft.Network/privateLinkServices", "p")), "private_link_services_get", "get", "PrivateLinkService", in},
		{get(group.Resource("Microsoft.Compute/virtualMachines", "v")), "vm_get", "get", "VirtualMachine", in},
		{list(azure.Query{Scope: group, Type: "Microsoft.Compute/virtualMachineScaleSets"}), "vmss_list", "list",
			"VirtualMachineScaleSet", in},
		{put(instance), "vmssvm_update", "update", "VirtualMachineScaleSetVM", in},
		{list(azure.Query{Scope: instance.Parent(), Type: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"}), "vmssvm_list",
			"list", "VirtualMachineScaleSetVM", in},
		{get(group.Resource("Microsoft.Compute/availabilitySets", "a")), "vmas_get", "get", "AvailabilitySet", in},
		{get(group.Resource("Microsoft.Compute/disks", "d")), "disks_get", "get", "Disk", in},
		{post(group.Resource("Microsoft.Compute/disks", "d"), "beginGetAccess"), "disks_begin_get_access", "begin_get_access", "Disk", in},
		{get("/subscriptions/S1/providers/Microsoft.Compute"), "providers_get", "get", "Provider",
			`resource_group="",source="",subscription_id="s1"`},
	} {
		t.Run(c.request, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			d := open(t, script(answer{status: 200, body: `{"value":[]}`}), func(o *Config) { o.Registerer = registry })
			if err := c.do(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			arm := strings.Replace(c.scope, `,source=""`, "", 1)
			want := []string{
				fmt.Sprintf("arm_request_duration_seconds{method=%q,resource=%q,%s} 1", c.method, c.resource, arm),
				fmt.Sprintf("cloudprovider_azure_api_request_duration_seconds{request=%q,%s} 1", c.request, c.scope),
			}
			if diff := cmp.Diff(want, series(t, registry, "arm_", "cloudprovider_azure_")); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

type do = func(context.Context, *Client) error

func get(id azure.ID) do {
	return func(ctx context.Context, d *Client) error { _, err := d.Get(ctx, id); return err }
}
func list(q azure.Query) do {
	return func(ctx context.Context, d *Client) error { _, err := d.List(ctx, q); return err }
}
func put(id azure.ID) do {
	return func(ctx context.Context, d *Client) error {
		_, err := d.Put(ctx, azure.Write{ID: id, Body: azure.Document(`{}`)})
		return err
	}
}
func patch(id azure.ID) do {
	return func(ctx context.Context, d *Client) error {
		_, err := d.Patch(ctx, azure.Write{ID: id, Body: azure.Document(`{}`)})
		return err
	}
}
func remove(id azure.ID) do {
	return func(ctx context.Context, d *Client) error { return d.Delete(ctx, id) }
}
func post(id azure.ID, action string) do {
	return func(ctx context.Context, d *Client) error { _, err := d.Post(ctx, id, action, nil); return err }
}

// Failures under both names: a call that failed, a request that Azure refused, and a request that a limit of the user
// held back.
func TestDashboardsOfTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		s := script(
			answer{status: 404, body: fail("ResourceNotFound")},
			answer{status: 429, header: header("Retry-After", "30"), body: fail("TooManyRequests")},
			answer{status: 200, body: `{"id":"x"}`},
			answer{err: fmt.Errorf("the line is dead")},
		)
		d := open(t, s, func(o *Config) {
			o.Registerer, o.Retries = registry, -1
			o.Budget = budget.New(budget.Config{LimitOf: func(string) (budget.Limit, bool) {
				return budget.Limit{Read: budget.Rate{PerSecond: 1, Burst: 2}}, true
			}})
		})
		for _, want := range []azure.Kind{azure.NotFound, azure.Canceled, azure.Unavailable} {
			if _, err := d.Get(t.Context(), lb("l")); err != nil && azure.KindOf(err) != want {
				t.Error(err)
			}
		}
		const arm = `method="get",resource="LoadBalancer",resource_group="g"`
		const api = `request="load_balancers_get",resource_group="g",source="",subscription_id="s1"`
		want := []string{
			`arm_request_duration_seconds{` + arm + `,subscription_id="s1"} 3`,
			`arm_request_errors_counter_total{error_code="ResourceNotFound",` + arm + `,status_code="404",subscription_id="s1"} 1`,
			`arm_request_errors_counter_total{error_code="unavailable",` + arm + `,status_code="0",subscription_id="s1"} 1`,
			`arm_request_rate_limit_counter_total{` + arm + `,subscription_id="s1"} 1`,
			`arm_request_throttle_counter_total{` + arm + `,subscription_id="s1"} 1`,
			`cloudprovider_azure_api_request_duration_seconds{` + api + `} 3`,
			`cloudprovider_azure_api_request_errors{code="ResourceNotFound",` + api + `} 1`,
			`cloudprovider_azure_api_request_errors{code="unavailable",` + api + `} 1`,
			`cloudprovider_azure_api_request_ratelimited_count{` + api + `} 1`,
			`cloudprovider_azure_api_request_throttled_count{` + api + `} 1`,
		}
		if diff := cmp.Diff(want, series(t, registry, "arm_", "cloudprovider_azure_")); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	})
}

// TestBudgetIsShown checks that the metrics show the requests that are left, the callers that wait,
// and until when Azure accepts no requests. Other providers and classes do not change.
func TestBudgetIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		s := &server{answer: func(n int, r request) answer {
			switch {
			case n == 0:
				return answer{status: 429, header: header("Retry-After", "30")}
			case strings.Contains(r.path, "Compute"):
				return answer{status: 200, header: header("x-ms-ratelimit-remaining-subscription-reads", "77"), body: `{"id":"x"}`}
			}
			return answer{status: 200, body: `{"id":"x"}`}
		}}
		d := open(t, s, func(o *Config) { o.Registerer = registry })
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				if err := put(lb("l"))(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first one is refused before others ask
		}
		if err := get(group.Resource("Microsoft.Compute/virtualMachines", "v"))(t.Context(), d); err != nil {
			t.Error(err)
		}
		until := time.Now().Add(30 * time.Second).Unix()
		reads := `{class="reads",provider="microsoft.compute",subscription_id="s1"}`
		writes := `{class="writes",provider="microsoft.network",subscription_id="s1"}`
		want := []string{
			"kaz_arm_budget_throttled_until_timestamp_seconds" + reads + " 0",
			"kaz_arm_budget_throttled_until_timestamp_seconds" + writes + fmt.Sprint(" ", float64(until)),
			"kaz_arm_budget_tokens" + reads + " 77",
			"kaz_arm_budget_tokens" + writes + " 199",
			"kaz_arm_budget_waiting" + reads + " 0",
			"kaz_arm_budget_waiting" + writes + " 3",
		}
		got := series(t, registry, "kaz_arm_budget_t", "kaz_arm_budget_waiting")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
		callers.Wait()
		got = series(t, registry, "kaz_arm_budget_throttled", "kaz_arm_budget_waiting")
		for _, line := range got {
			if !strings.HasSuffix(line, "} 0") {
				t.Errorf("when all is over: %s", line)
			}
		}
	})
}
