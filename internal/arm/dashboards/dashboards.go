// Package dashboards has the metrics of the ARM client under the names that users' dashboards and alerts have. Layer L2.
package dashboards

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/observe"
)

// Call is a call of the ARM client.
type Call struct {
	Op       string // "GET", "POST start"
	ID       azure.ID
	FullType string // in lower case
	Spelled  string // the full type as it was asked for
	// Subscription is in lower case.
	Subscription string
}

// Metrics are the older metrics cloudprovider_azure_* and the current metrics arm_request_*. They count calls of the
// client, each with its retries and the wait for its operation. kaz's own metrics count requests.
type Metrics struct {
	clients map[string]client // by lower-case type

	apiDuration  *prometheus.HistogramVec
	apiErrors    *prometheus.CounterVec
	apiLimited   *prometheus.CounterVec
	apiThrottled *prometheus.CounterVec

	armDuration  *prometheus.HistogramVec
	armErrors    *prometheus.CounterVec
	armLimited   *prometheus.CounterVec
	armThrottled *prometheus.CounterVec
}

// New returns metrics that are not registered.
func New() Metrics {
	api := []string{"request", "resource_group", "subscription_id", "source"}
	arm := []string{"method", "resource", "resource_group", "subscription_id"}
	counter := func(name, help string, labels []string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(append([]string(nil), labels...), more...))
	}
	return Metrics{
		clients: clients(),
		apiDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "cloudprovider_azure_api_request_duration_seconds",
			Help:    "Time of a call of Azure's API, with its retries and the wait for its operation.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600, 1200},
		}, api),
		apiErrors: counter("cloudprovider_azure_api_request_errors", "Calls of Azure's API that failed, by Azure's error code.",
			api, "code"),
		apiLimited: counter("cloudprovider_azure_api_request_ratelimited_count",
			"Requests that waited for a rate limit of azure.json.", api),
		apiThrottled: counter("cloudprovider_azure_api_request_throttled_count",
			"Requests that Azure refused because there were too many, or that were not sent because it would.", api),

		armDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "arm_request_duration_seconds",
			Help:    "Time of a call of Azure's API, with its retries and the wait for its operation.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 60, 300, 600},
		}, arm),
		armErrors: counter("arm_request_errors_counter_total",
			"Calls of Azure's API that failed, by HTTP status and Azure's error code.", arm, "status_code", "error_code"),
		armLimited: counter("arm_request_rate_limit_counter_total", "Requests that waited for a rate limit of azure.json.", arm),
		armThrottled: counter("arm_request_throttle_counter_total",
			"Requests that Azure refused because there were too many, or that were not sent because it would.", arm),
	}
}

// Register registers the metrics.
func (d *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(
		observe.Register(r, &d.apiDuration), observe.Register(r, &d.apiErrors),
		observe.Register(r, &d.apiLimited), observe.Register(r, &d.apiThrottled),
		observe.Register(r, &d.armDuration), observe.Register(r, &d.armErrors),
		observe.Register(r, &d.armLimited), observe.Register(r, &d.armThrottled),
	)
}

// Finished counts a call of the client.
func (d *Metrics) Finished(c Call, err error, took time.Duration) {
	api, arm := d.apiLabels(c), d.armLabels(c)
	d.apiDuration.WithLabelValues(api...).Observe(took.Seconds())
	d.armDuration.WithLabelValues(arm...).Observe(took.Seconds())
	if err == nil {
		return
	}
	status, code := 0, ""
	if e, ok := errors.AsType[*azure.Error](err); ok {
		status, code = e.Status, e.Code
		if code == "" {
			code = e.Kind.String()
		}
	}
	d.apiErrors.WithLabelValues(append(api, code)...).Inc()
	d.armErrors.WithLabelValues(append(arm, strconv.Itoa(status), code)...).Inc()
}

// Limited counts a request that waited for a rate limit.
func (d *Metrics) Limited(c Call) {
	d.apiLimited.WithLabelValues(d.apiLabels(c)...).Inc()
	d.armLimited.WithLabelValues(d.armLabels(c)...).Inc()
}

// Throttled counts a request that was throttled.
func (d *Metrics) Throttled(c Call) {
	d.apiThrottled.WithLabelValues(d.apiLabels(c)...).Inc()
	d.armThrottled.WithLabelValues(d.armLabels(c)...).Inc()
}

// apiLabels are request, resource_group, subscription_id and source, which calls of
// the API have never had.
func (d *Metrics) apiLabels(c Call) []string {
	return []string{d.client(c).request + "_" + c.action(), strings.ToLower(c.ID.Group()), c.Subscription, ""}
}

// armLabels are method, resource, resource_group and subscription_id.
func (d *Metrics) armLabels(c Call) []string {
	return []string{c.action(), d.client(c).resource, strings.ToLower(c.ID.Group()), c.Subscription}
}

// action is the name that dashboards use for what the call does.
func (c Call) action() string {
	verb, action, _ := strings.Cut(c.Op, " ")
	switch verb {
	case "PUT":
		if c.FullType == scaleSetInstance {
			return "update"
		}
		return "create_or_update"
	case "PATCH":
		return "update"
	case "POST":
		return snake(action)
	}
	return strings.ToLower(verb)
}

const scaleSetInstance = "microsoft.compute/virtualmachinescalesets/virtualmachines"

// client is the name that dashboards use for the resources of a type.
type client struct{ request, resource string }

// client is the name by the call's type. Types without a client of their own are named by the last
// segment of their names.
func (d *Metrics) client(c Call) client {
	if known, ok := d.clients[c.FullType]; ok {
		return known
	}
	last := c.Spelled[strings.LastIndexByte(c.Spelled, '/')+1:]
	return client{snake(last), singular(last)}
}

func clients() map[string]client {
	const network, compute = "microsoft.network/", "microsoft.compute/"
	return map[string]client{
		network + "loadbalancers":         {"load_balancers", "LoadBalancer"},
		network + "publicipaddresses":     {"public_ip_addresses", "PublicIPAddress"},
		network + "networksecuritygroups": {"security_groups", "SecurityGroup"},
		network + "networkinterfaces":     {"interfaces", "Interface"},
		network + "routetables":           {"route_tables", "RouteTable"},
		network + "routetables/routes":    {"routes", "Route"},
		network + "privatelinkservices":   {"private_link_services", "PrivateLinkService"},
		network + "privateendpoints":      {"private_endpoints", "PrivateEndpoint"},

		compute + "virtualmachines":         {"vm", "VirtualMachine"},
		compute + "virtualmachinescalesets": {"vmss", "VirtualMachineScaleSet"},
		scaleSetInstance:                    {"vmssvm", "VirtualMachineScaleSetVM"},
		compute + "availabilitysets":        {"vmas", "AvailabilitySet"},

		compute + "virtualmachinescalesets/networkinterfaces":                 {"interfaces", "Interface"},
		compute + "virtualmachinescalesets/virtualmachines/networkinterfaces": {"interfaces", "Interface"},
		compute + "virtualmachinescalesets/publicipaddresses":                 {"vmss_public_ip_addresses", "PublicIPAddress"},
	}
}

// snake writes camelCase as snake_case.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// singular writes the plural of a type as the name of one.
func singular(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if one, ok := strings.CutSuffix(s, "ies"); ok {
		return one + "y"
	}
	if one, ok := strings.CutSuffix(s, "sses"); ok {
		return one + "ss"
	}
	return strings.TrimSuffix(s, "s")
}
