package deploy

import (
	"encoding/json"
	"fmt"
)

// Panel is a graph of a dashboard.
type Panel struct {
	Title string
	// Unit is Grafana's name of the unit: s, reqps, short.
	Unit string
	// Queries are expressions of Prometheus by their legends.
	Queries []Query
}

// Query is an expression of Prometheus, and the legend of its lines.
type Query struct{ Expr, Legend string }

// Dashboard is a dashboard of Grafana.
type Dashboard struct {
	ID, Title string
	Panels    []Panel
}

// rate is how often a counter grows in a second.
func rate(by, metric string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, metric)
}

// quantiles are the median and the 99th percentile of a histogram.
func quantiles(by, metric, legend string) []Query {
	q := func(quantile, name string) Query {
		group := "le"
		if by != "" {
			group += ", " + by
		}
		return Query{fmt.Sprintf("histogram_quantile(%s, %s)", quantile, rate(group, metric+"_bucket")), legend + " " + name}
	}
	return []Query{q("0.5", "half"), q("0.99", "99 %")}
}

// Dashboards returns the dashboards by their files, without the ending.
func Dashboards() map[string]Dashboard {
	return map[string]Dashboard{
		"azure": {ID: "kaz-azure", Title: "kaz: requests to Azure", Panels: []Panel{
			{"Requests", "reqps", []Query{{rate("verb, status", "kaz_arm_request_duration_seconds_count"), "{{verb}} {{status}}"}}},
			{"Time of a request", "s", quantiles("verb", "kaz_arm_request_duration_seconds", "{{verb}}")},
			{"Time of an operation", "s", quantiles("type", "kaz_arm_operation_duration_seconds", "{{type}}")},
			{"Requests sent again", "reqps", []Query{{rate("reason", "kaz_arm_retries_total"), "{{reason}}"}}},
			{"Refused by Azure, or not sent because it asked for that", "reqps",
				[]Query{{rate("resource", "arm_request_throttle_counter_total"), "{{resource}}"}}},
			{"Requests that wait for the budget", "short",
				[]Query{{"sum by (provider, class) (kaz_arm_budget_waiting)", "{{provider}} {{class}}"}}},
			{"Budget left", "short", []Query{{"min by (provider, class) (kaz_arm_budget_tokens)", "{{provider}} {{class}}"}}},
			{"Reads by where the answer came from", "reqps", []Query{{rate("source", "kaz_arm_cache_reads_total"), "{{source}}"}}},
			{"Rights that are missing", "short", []Query{{"kaz_azure_rights_missing", "{{action}} on {{scope}}"}}},
		}},
		"services": {ID: "kaz-services", Title: "kaz: Services, nodes and routes", Panels: []Panel{
			{"Operations of the cloud provider", "reqps",
				[]Query{{rate("request", "cloudprovider_azure_op_duration_seconds_count"), "{{request}}"}}},
			{"Operations that failed", "reqps", []Query{{rate("request", "cloudprovider_azure_op_failure_count"), "{{request}}"}}},
			{"Time of an operation", "s", quantiles("request", "cloudprovider_azure_op_duration_seconds", "{{request}}")},
			{"Commits of load balancers", "reqps", []Query{{rate("", "service_controller_loadbalancer_sync_total"), "commits"},
				{rate("", "service_controller_nodesync_error_total"), "failed after a change of nodes"}}},
			{"Services of a commit", "short", quantiles("", "kaz_service_commit_services", "Services")},
			{"From a change of nodes to load balancers", "s", quantiles("", "service_controller_nodesync_latency_seconds", "")},
			{"Pod ranges in use", "percentunit", []Query{{"node_ipam_controller_cidrset_usage_cidrs", "{{clusterCIDR}}"}}},
			{"Changes of the cloud configuration", "short",
				[]Query{{"sum by (result) (increase(kaz_cloud_config_reloads_total[$__rate_interval]))", "{{result}}"}}},
		}},
		"storage": {ID: "kaz-storage", Title: "kaz: disks and file shares", Panels: []Panel{
			{"Operations", "reqps", []Query{{rate("method, code", "kaz_csi_operation_duration_seconds_count"), "{{method}} {{code}}"}}},
			{"Time of an operation", "s", quantiles("method", "kaz_csi_operation_duration_seconds", "{{method}}")},
			{"Operations in flight", "short", []Query{{"sum by (method) (kaz_csi_operations_in_flight)", "{{method}}"}}},
			{"Changes of a machine done together", "short", quantiles("", "kaz_csi_attach_batch_changes", "changes")},
			{"Wait for earlier changes of the machine", "s", quantiles("", "kaz_csi_attach_wait_seconds", "wait")},
		}},
		"gateways": {ID: "kaz-gateways", Title: "kaz: application gateways", Panels: []Panel{
			{"Ingresses", "short", []Query{{"sum by (state) (kaz_gateway_ingresses)", "{{state}}"}}},
			{"Writes", "reqps", []Query{{rate("result", "kaz_gateway_writes_total"), "{{result}}"}}},
			{"Time of a write", "s", quantiles("", "kaz_gateway_write_duration_seconds", "write")},
			{"Time since the write in flight began", "s",
				[]Query{{"time() - (kaz_gateway_write_began_timestamp_seconds > 0)", "{{gateway}}"}}},
		}},
	}
}

// The panels of a dashboard are in two columns of Grafana's 24 units.
const (
	panelWidth  = 12
	panelHeight = 8
	columns     = 2
)

// Text returns the dashboard as Grafana imports it. The data source is a variable.
func (d Dashboard) Text() ([]byte, error) {
	source := map[string]any{"type": "prometheus", "uid": "${source}"}
	panels := make([]any, len(d.Panels))
	for i, p := range d.Panels {
		targets := make([]any, len(p.Queries))
		for n, q := range p.Queries {
			targets[n] = map[string]any{"refId": string(rune('A' + n)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source}
		}
		panels[i] = map[string]any{
			"id": i + 1, "type": "timeseries", "title": p.Title, "datasource": source, "targets": targets,
			"gridPos":     map[string]any{"x": i % columns * panelWidth, "y": i / columns * panelHeight, "w": panelWidth, "h": panelHeight},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.Unit, "min": 0}, "overrides": []any{}},
		}
	}
	text, err := json.MarshalIndent(map[string]any{
		"uid": d.ID, "title": d.Title, "tags": []string{"kaz"}, "schemaVersion": 39, "refresh": "1m", "panels": panels,
		"time": map[string]any{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{
			map[string]any{"name": "source", "type": "datasource", "query": "prometheus", "label": "Data source"},
		}},
	}, "", "  ")
	return append(text, '\n'), err
}
