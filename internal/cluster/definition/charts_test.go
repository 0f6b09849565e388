package definition

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const charts = `apiVersion: cluster.kaz/v1alpha1
kind: Extension
metadata: {name: web}
spec:
  charts:
    - releaseName: shop
      namespace: shops
      path: charts/web
      values: {replicas: 3, limit: 0.5, size: 1e3, debug: false, text: "1.5", absent: null}
    - releaseName: other
      url: https://example.com/other.tgz
      sha256: "SUM"
      atBoot: false
`

// TestCharts checks what a renderer gets, and that a definition has what it returns, also after Azure has kept it.
func TestCharts(t *testing.T) {
	sum := strings.Repeat("0", 64)
	var asked []string
	d, err := LoadCharts(func(c Chart, layer, version string) ([]Packed, error) {
		values, err := json.Marshal(c.Values)
		asked = append(asked, strings.Join([]string{c.ReleaseName, c.Namespace, c.Path + c.URL, layer, version, string(values)}, " "))
		return []Packed{Packed("# " + c.ReleaseName), "# more"}, err
	}, layer(t, "dev.yaml"), Layer{"teams/web.yaml", []byte(strings.Replace(charts, "SUM", sum, 1))})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`shop shops charts/web teams/web.yaml 1.36.3 {"absent":null,"debug":false,"limit":0.5,"replicas":3,"size":1000,"text":"1.5"}`,
		`other default https://example.com/other.tgz teams/web.yaml 1.36.3 {}`}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	rendered := []Rendered{{"web", "shop", true, []Packed{"# shop", "# more"}}, {"web", "other", false, []Packed{"# other", "# more"}}}
	if diff := cmp.Diff(rendered, d.Rendered); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again Definition
	if err := json.Unmarshal(text, &again); err != nil || !cmp.Equal(d.Rendered, again.Rendered) {
		t.Errorf("%v: %s", err, cmp.Diff(d.Rendered, again.Rendered))
	}
}

// TestChartMistakes checks that errors about charts name the extension, the field and the line.
func TestChartMistakes(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for name, test := range map[string]struct{ old, now, want string }{
		"no checksum": {`      sha256: "SUM"` + "\n", "", "web.yaml:10: Extension web: spec.charts[1].sha256: \"\": missing: want the " +
			"SHA-256 of the archive at the URL"},
		"no source": {"      path: charts/web\n", "", "web.yaml:6: Extension web: spec.charts[0]: the release shop has no " +
			"chart: want path, or url"},
		"two sources": {"path: charts/web", "path: a\n      url: http://b/c", "web.yaml:9: Extension web: spec.charts[0].url: " +
			"\"http://b/c\": the chart has a path, too: want one of both"},
		"a release twice": {"releaseName: other", "releaseName: shop\n      namespace: shops", "web.yaml:10: Extension web: " +
			"spec.charts[1].releaseName: \"shop\": Extension web has this release in namespace shops, too: want another name"},
		"a name of a release": {"releaseName: other", "releaseName: Other", "spec.charts[1].releaseName: \"Other\": want at most " +
			"53 small letters"},
		"an unknown field": {"path: charts/web", "chart: web", "spec.charts[0].chart: unknown field: want one of apiVersions, atBoot, "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer(test.old, test.now, "SUM", sum).Replace(charts)
			_, err := LoadCharts(nil, layer(t, "dev.yaml"), Layer{"web.yaml", []byte(text)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
	text := []byte(strings.Replace(charts, "SUM", sum, 1))
	_, err := LoadCharts(func(c Chart, _, _ string) ([]Packed, error) {
		if c.URL != "" {
			return nil, &FieldError{"sha256", errors.New("it has another one")}
		}
		return nil, errors.New("chart web: template a.yaml: no")
	}, layer(t, "dev.yaml"), Layer{"web.yaml", text})
	want := `web.yaml:6: Extension web: spec.charts[0]: release shop: chart web: template a.yaml: no
web.yaml:12: Extension web: spec.charts[1].sha256: "` + sum + `": release other: it has another one`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := Load(layer(t, "dev.yaml"), Layer{"web.yaml", text}); err == nil || !strings.Contains(err.Error(), "not rendered here") {
		t.Errorf("without a renderer: %v", err)
	}
}

// FuzzPacked reads compressed texts, and writes what it has read.
func FuzzPacked(f *testing.F) {
	for _, text := range []Packed{"", "apiVersion: v1\n"} {
		seed, err := json.Marshal(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte(`"H4sI"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, again Packed
		if json.Unmarshal(text, &p) != nil {
			return
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &again); err != nil || again != p {
			t.Errorf("%v: %q became %q", err, p, again)
		}
	})
}
