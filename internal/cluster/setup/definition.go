package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/helmchart"
	"kaz/internal/localazure/client"
)

// ReadDefinition reads the layers of a definition, the base first, and renders its charts. The file - is in.
func ReadDefinition(ctx context.Context, in io.Reader, files []string) (definition.Definition, error) {
	var layers []definition.Layer
	for _, file := range files {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(in)
			file = "standard input"
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return definition.Definition{}, fmt.Errorf("definition: %w", err)
		}
		layers = append(layers, definition.Layer{Name: file, Text: text})
	}
	charts := helmchart.Renderer{}
	if cache, err := os.UserCacheDir(); err == nil {
		charts.Cache = filepath.Join(cache, "kaz", "charts")
	}
	return definition.LoadCharts(func(c definition.Chart, layer, version string) ([]definition.Packed, error) {
		return charts.Render(ctx, c, layer, version)
	}, layers...)
}

// LocalPlan is the plan of a definition for a local Azure, which has a subscription and a tenant of its own.
func LocalPlan(d definition.Definition, info client.Info) (cluster.Plan, error) {
	d.Cluster.Spec.Azure.SubscriptionID, d.Cluster.Spec.Azure.TenantID = info.Subscription, info.Tenant
	return cluster.New(d)
}
