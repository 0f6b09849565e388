package documents

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// metricsCategory lists what a resource can send to diagnostic settings: its metrics. The categories of logs differ by type and are
// left out.
func metricsCategory(c *behaviour.Call) ([]behaviour.Object, error) {
	return []behaviour.Object{category(c, c.ID)}, nil
}

func category(c *behaviour.Call, scope azure.ID) behaviour.Object {
	return behaviour.Object{"id": string(scope.Resource("microsoft.insights/diagnosticSettingsCategories", "AllMetrics")), "name": "AllMetrics",
		"type":       strings.Replace(c.Type.Name, "Microsoft.Insights", "microsoft.insights", 1),
		"properties": behaviour.Object{"categoryType": "Metrics"}}
}

func findMetricsCategory(c *behaviour.Call) (behaviour.Object, error) {
	if strings.EqualFold(c.ID.Name(), "AllMetrics") {
		return category(c, c.ID.Parent()), nil
	}
	return nil, nil
}
