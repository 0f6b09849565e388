package documents

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// metricsCategory lists what a resource can send to diagnostic settings: its metrics. The categories of logs differ by type and are
// left out.
func metricsCategory(c *behaviour.Call) ([]behaviour.Object, error) {
	return []behaviour.Object{category(c.ID)}, nil
}

func category(scope azure.ID) behaviour.Object {
	const kind = "microsoft.insights/diagnosticSettingsCategories"
	return behaviour.Object{"id": string(scope.Resource(kind, "AllMetrics")), "name": "AllMetrics",
		"type":       kind,
		"properties": behaviour.Object{"categoryType": "Metrics"}}
}

func findMetricsCategory(c *behaviour.Call) (behaviour.Object, error) {
	if strings.EqualFold(c.ID.Name(), "AllMetrics") {
		return category(c.ID.Parent()), nil
	}
	return nil, nil
}
