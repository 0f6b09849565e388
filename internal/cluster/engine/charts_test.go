package engine

import (
	"slices"
	"testing"
	"testing/synctest"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/record"
)

// TestLargeChart checks scenario 46: a deployment says that a chart is not applied at boot, and the upgrade with the same definition
// applies it. A change that is no upgrade, and another machine without the chart, leave it as it is.
func TestLargeChart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, namespace: shops}}"
		l, s, d := deployed(t, func(d *definition.Definition) {
			d.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "web"}, Spec: definition.ExtensionSpec{
				Charts: []definition.Chart{{ReleaseName: "shop", Path: "charts/shop"}}}}}
			d.Rendered = []definition.Rendered{{Extension: "web", Release: "shop", Manifests: []definition.Packed{object}}}
		}, "dev.yaml")
		p, found, err := l.Recorded(t.Context(), s.names)
		if err != nil || !found || len(p.Definition.Rendered) != 1 || p.Definition.Rendered[0].Manifests[0] != object {
			t.Fatalf("Azure keeps %v %t %+v", err, found, p.Definition.Rendered)
		}
		l.change(p.Definition)
		if done := s.objects.Done(); len(done) > 0 {
			t.Errorf("a change that is no upgrade: %q", done)
		}
		if err := l.Change(t.Context(), record.Change{Definition: d, Manifests: true}); err != nil {
			t.Fatal(err)
		}
		if done := s.objects.Done(); !slices.Contains(done, "apply configmaps shops/shop") {
			t.Errorf("an upgrade: %q", done)
		}
		now := copied(d)
		now.Extensions, now.Rendered = nil, nil
		if err := l.Change(t.Context(), record.Change{Definition: now, Manifests: true}); err != nil {
			t.Fatal(err)
		}
		if done := s.objects.Done(); done[len(done)-1] != "delete configmaps shops/shop" {
			t.Errorf("without the Extension: %q", done)
		}
	})
}

// TestChartSaid checks what a deployment says of a chart that is not applied at boot.
func TestChartSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := deployed(t, nil, "dev.yaml")
		p := example(t, func(d *definition.Definition) {
			d.Cluster.Spec.Azure.Tags = map[string]string{"team": "a"}
			d.Rendered = []definition.Rendered{{Extension: "web", Release: "shop"}, {Extension: "web", Release: "other", AtBoot: true}}
		}, "dev.yaml")
		l.deploy(p)
		const want = "Extension web: release shop is not applied at boot: kaz cluster upgrade applies it"
		if !slices.Contains(l.said, want) {
			t.Errorf("said %q", l.said)
		}
	})
}
