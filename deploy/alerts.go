package deploy

import "sigs.k8s.io/yaml"

// Alert is an alert of Prometheus: what it says, and what to do next.
type Alert struct{ Name, Expr, For, Severity, Summary, Mend string }

// Alerts returns the alerts that a cluster with kaz should have.
func Alerts() []Alert {
	return []Alert{
		{"KazAzureThrottled", "sum by (resource) (rate(arm_request_throttle_counter_total[10m])) > 0.1", "15m", "warning",
			"Azure refuses requests for {{ $labels.resource }} because there are too many.",
			"kaz check shows what else uses the subscription's budget."},
		{"KazAzureRequestsFail", "sum by (type) (rate(kaz_arm_request_duration_seconds_count{status=~\"5..\"}[10m])) > 0.05",
			"15m", "warning",
			"Azure fails at requests for {{ $labels.type }}.", "Look at Azure's status for the region."},
		{"KazRightMissing", "max by (action, scope) (kaz_azure_rights_missing) > 0", "10m", "warning",
			"The identity lacks {{ $labels.action }} on {{ $labels.scope }}.", "Assign the role of docs/reference/roles.md."},
		{"KazServicesFail", "sum by (request) (increase(cloudprovider_azure_op_failure_count[30m])) > 3", "15m", "warning",
			"{{ $labels.request }} fails again and again.",
			"kubectl get events -A --field-selector reason=SyncLoadBalancerFailed; kaz explain service --all."},
		{"KazConfigurationRejected", "increase(kaz_cloud_config_reloads_total{result=\"rejected\"}[30m]) > 0", "", "warning",
			"A change of the cloud configuration was rejected; the previous one is in force.", "kaz check names the mistake."},
		{"KazPodRangesShort", "node_ipam_controller_cidrset_usage_cidrs > 0.9", "15m", "warning",
			"More than 90 % of the pod ranges of {{ $labels.clusterCIDR }} are in use.",
			"Plan for a larger --cluster-cidr before new nodes wait for a range."},
		{"KazVolumeOperationsFail",
			"sum by (method) (rate(kaz_csi_operation_duration_seconds_count{code=~\"Internal|Unavailable|Unknown\"}[15m])) > 0.02",
			"15m", "warning",
			"{{ $labels.method }} of volumes fails.", "kaz explain volume NAMESPACE/NAME."},
		{"KazGatewayWriteHangs", "time() - (kaz_gateway_write_began_timestamp_seconds > 0) > 1800", "", "critical",
			"A write of the application gateway {{ $labels.gateway }} has not ended for 30 minutes.",
			"kaz check shows the state of the gateway."},
		{"KazIngressRefused", "sum(kaz_gateway_ingresses{state=\"refused\"}) > 0", "15m", "warning",
			"Azure refuses Ingresses; the others are served.", "kubectl get events -A --field-selector reason=FailedApplyingAppGwConfig."},
	}
}

// AlertRules returns the alerts as a PrometheusRule of the Prometheus operator.
func AlertRules() ([]byte, error) {
	var rules []any
	for _, a := range Alerts() {
		rule := map[string]any{
			"alert": a.Name, "expr": a.Expr, "labels": map[string]any{"severity": a.Severity},
			"annotations": map[string]any{"summary": a.Summary, "description": a.Mend},
		}
		if a.For != "" {
			rule["for"] = a.For
		}
		rules = append(rules, rule)
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": map[string]any{"name": "kaz"},
		"spec": map[string]any{"groups": []any{map[string]any{"name": "kaz", "rules": rules}}},
	})
}
