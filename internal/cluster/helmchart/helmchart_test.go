package helmchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/cluster/definition"
)

const version = "1.36.3"

func web(change func(*definition.Chart)) definition.Chart {
	c := definition.Chart{ReleaseName: "shop", Namespace: "shops", CreateNamespace: true, Path: "web", IncludeCRDs: true, AtBoot: true,
		APIVersions: []string{"monitoring.coreos.com/v1"}}
	if change != nil {
		change(&c)
	}
	return c
}

// layer is a file beside the charts of the tests.
var layer = filepath.Join("testdata", "cluster.yaml")

func render(t *testing.T, c definition.Chart) []definition.Packed {
	t.Helper()
	all, err := Renderer{}.Render(t.Context(), c, layer, version)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRender checks scenario 46: the objects of a chart, with namespaces, in the order in which they are applied.
func TestRender(t *testing.T) {
	all := render(t, web(nil))
	want := "Namespace shops\nCustomResourceDefinition routes.web.example.com\n\n" +
		"Job shops/first\nJob shops/second\nServiceAccount shops/shop\nConfigMap elsewhere/other\nDeployment shops/shop\n" +
		"Route everywhere\n" +
		"ValidatingWebhookConfiguration shop\nJob shops/last\n\n"
	if diff := cmp.Diff(want, names(t, all)); diff != "" {
		t.Error(diff)
	}
	text := string(all[1])
	for _, want := range []string{"cpu: 0.5\n", "progressDeadlineSeconds: 4294967296\n", "keys: a-b-c\n", "values: one-two-three\n",
		"- v1.36.3\n        - \"true\"\n        - \"true\"\n        - \"false\"\n        - \"true\"\n",
		"seen: \"0\"\n", "image: web:2.0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for range 20 {
		if again := render(t, web(nil)); !cmp.Equal(all, again) {
			t.Fatal("the same chart gives other bytes")
		}
	}
}

func names(t *testing.T, all []definition.Packed) string {
	t.Helper()
	var lines strings.Builder
	for _, one := range all {
		objects, err := parse("test", string(one))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			fmt.Fprintf(&lines, "%s %s\n", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		}
		lines.WriteString("\n")
	}
	return lines.String()
}

// TestOptions checks what the fields of a chart do.
func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*definition.Chart)
		has, not string
	}{
		"a dependency that values enable": {func(c *definition.Chart) {
			c.Values = map[string]any{"cache": map[string]any{"enabled": true}}
		}, "Service shops/shop-cache", "none"},
		"a dependency that values do not enable": {nil, "", "shop-cache"},
		"no CustomResourceDefinitions": {func(c *definition.Chart) { c.IncludeCRDs = false },
			"Route shops/everywhere", "CustomRes"},
		"a namespace of Kubernetes": {func(c *definition.Chart) { c.Namespace = "kube-system" },
			"Deployment kube-system/shop", "Namespace"},
		"a namespace that exists": {func(c *definition.Chart) { c.CreateNamespace = false },
			"Deployment shops/shop", "Namespace"},
		"a password that is given": {func(c *definition.Chart) { c.Values = map[string]any{"secret": "yes", "password": "open"} },
			"Secret shops/shop", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			c := web(test.change)
			got := names(t, render(t, c))
			if !strings.Contains(got, test.has) || strings.Contains(got, test.not) && test.not != "" {
				t.Errorf("want %q and not %q:\n%s", test.has, test.not, got)
			}
		})
	}
}

// TestRefused checks scenario 46: what cannot be rendered is refused, and the error names the chart, the template and the reason.
func TestRefused(t *testing.T) {
	archive := pack(t)
	file := filepath.Join(t.TempDir(), "web.tgz")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	values := func(name string, value any) func(*definition.Chart) {
		return func(c *definition.Chart) { c.Values = map[string]any{name: value} }
	}
	for name, test := range map[string]struct {
		change  func(*definition.Chart)
		version string
		want    []string
	}{
		"no chart": {func(c *definition.Chart) { c.Path = "absent" }, version, []string{"path: ", "testdata/absent", "no such file"}},
		"a random function": {values("secret", "yes"), version, []string{"chart web: ",
			"template web/templates/items.yaml gives another text each time, by the function randAlphaNum: set"}},
		"the clock": {values("clock", true), version, []string{"chart web: ", "template web/templates/hooks.yaml gives",
			"by the function now:"}},
		"an upgrade hook": {values("upgradeJob", true), version,
			[]string{"chart web: template web/templates/hooks.yaml: Job migrate has the hook pre-upgrade"}},
		"a value of a wrong type": {values("replicas", "two"), version, []string{"values of chart web", "replicas", "want integer"}},
		"an old cluster":          {nil, "1.29.4", []string{"chart web: it is for Kubernetes >=1.30.0-0, and the cluster has 1.29.4"}},
		"a checksum of a folder": {func(c *definition.Chart) { c.SHA256 = strings.Repeat("0", 64) }, version,
			[]string{"sha256: ", "folder"}},
		"a wrong checksum": {func(c *definition.Chart) { c.Path, c.SHA256 = file, strings.Repeat("0", 64) }, version,
			[]string{"sha256: ", file, sum(archive)}},
		"no archive": {func(c *definition.Chart) { c.Path = "web/Chart.yaml" }, version, []string{"path: ", "no archive of a chart"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Renderer{}.Render(t.Context(), web(test.change), layer, test.version)
			if err == nil {
				t.Fatal("it is not refused")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
}

// pack is the archive of the chart of the tests.
func pack(t testing.TB) []byte {
	t.Helper()
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	w := tar.NewWriter(zipped)
	root := filepath.Join("testdata", "web")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel("testdata", path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{w, zipped} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// TestURL checks that a chart at a URL is the same as its folder, that it is read once, and that another file is refused.
func TestURL(t *testing.T) {
	archive, asked := pack(t), 0
	served := archive
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/web.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	defer server.Close()
	r := Renderer{Cache: filepath.Join(t.TempDir(), "charts")}
	c := web(func(c *definition.Chart) { c.Path, c.URL, c.SHA256 = "", server.URL+"/web.tgz", sum(archive) })
	want := render(t, web(nil))
	for range 2 {
		got, err := r.Render(t.Context(), c, layer, version)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%v %s", err, cmp.Diff(want, got))
		}
	}
	if asked != 1 {
		t.Errorf("the chart was read %d times, want once", asked)
	}
	kept := filepath.Join(r.Cache, sum(archive)+".tgz")
	if err := os.WriteFile(kept, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Render(t.Context(), c, layer, version); err != nil || asked != 2 {
		t.Errorf("a damaged cache: %v, %d reads", err, asked)
	}
	served = append([]byte{}, archive...)
	served[len(served)-1] ^= 1
	c.SHA256 = strings.Repeat("1", 64)
	if _, err := r.Render(t.Context(), c, layer, version); err == nil || !strings.Contains(err.Error(), "sha256: ") {
		t.Errorf("another file: %v", err)
	}
	if files, err := os.ReadDir(r.Cache); err != nil || len(files) != 1 {
		t.Errorf("the cache has %v %v, want one file", files, err)
	}
	c.URL = server.URL + "/absent.tgz"
	if _, err := r.Render(t.Context(), c, layer, version); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("no file: %v", err)
	}
}

// TestFunctions checks that what depends on chance, on the clock or on the order of a map is found, whatever a template does with it.
func TestFunctions(t *testing.T) {
	for text, guilty := range map[string]string{
		`{{ randAlphaNum 5 | b64enc }}`:                                       "randAlphaNum",
		`{{ $ca := genCA "a" 3 }}{{ (genSignedCert "b" nil nil 3 $ca).Key }}`: "genSignedCert",
		`{{ $ca := genCA "a" 3 }}x`:                                           "",
		`{{ now | date "05" }}{{ randInt 1 9 }}`:                              "now and randInt",
		`{{ date "2006" "x" }}`:                                               "now",
		`{{ date "15:04" 3600 }}`:                                             "",
		`{{ dateInZone "15:04" 3600 "Asia/Tokyo" }}`:                          "",
		`{{ shuffle "abcba" }}`:                                               "shuffle",
		`{{ htpasswd "a" "b" | sha256sum }}`:                                  "htpasswd",
		`{{ randBytes 3 }}{{ uuidv4 }}`:                                       "randBytes and uuidv4",
		`{{ keys (dict "b" 1 "a" 2 "c" 3) }}`:                                 "",
		`{{ ago 5 }}`:                                                         "ago",
		`{{ derivePassword 1 "long" "a" "b" "c" }}`:                           "",
		`{{ getHostByName "example.com" }}`:                                   "",
	} {
		dir := chartOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '"+text+"'}")
		_, err := Renderer{}.Render(t.Context(), definition.Chart{ReleaseName: "a", Namespace: "default", Path: dir}, "", version)
		if (err == nil) != (guilty == "") || err != nil && !strings.Contains(err.Error(), "by the function "+guilty+":") {
			t.Errorf("%s: %v, want %q", text, err, guilty)
		}
	}
}

// chartOf is a chart with one template.
func chartOf(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: one, version: 0.1.0}", "templates/a.yaml": text} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOwnCharts renders the charts of this repository, and charts whose templates fail.
func TestOwnCharts(t *testing.T) {
	root := filepath.Join("..", "..", "..", "deploy")
	for path, want := range map[string]string{
		"chart":                              "Deployment kube-system/cloud-controller-manager\n",
		"charts/azuredisk-csi-driver":        "CSIDriver disk.csi.azure.com\n",
		"charts/azurefile-csi-driver":        "CSIDriver file.csi.azure.com\n",
		"charts/cluster-autoscaler-provider": "Deployment kube-system/cluster-autoscaler-provider\n",
		"charts/kaz-shadow":                  "Deployment kube-system/kaz-shadow\n",
	} {
		c := definition.Chart{ReleaseName: "kaz", Namespace: "kube-system", Path: path, IncludeCRDs: true}
		all, err := Renderer{}.Render(t.Context(), c, filepath.Join(root, "cluster.yaml"), version)
		if err != nil || !strings.Contains(names(t, all), want) {
			t.Errorf("%s: %v\n%s", path, err, names(t, all))
		}
	}
	for text, want := range map[string]string{
		`{{ .Values.a.b.c }}`:                             "one/templates/a.yaml:1:",
		`{{ required "a password is needed" .Values.p }}`: "a password is needed",
		`{{ template "absent" }}`:                         `"absent"`,
		"a: [":                                            "template one/templates/a.yaml: ",
		"kind: Pod\nmetadata: {name: a}":                  "template one/templates/a.yaml: a Pod has no apiVersion",
	} {
		c := definition.Chart{ReleaseName: "a", Namespace: "default", Path: chartOf(t, text)}
		_, err := Renderer{}.Render(t.Context(), c, "", version)
		if err == nil || !strings.HasPrefix(err.Error(), "chart one: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzParse reads rendered templates: an object has a kind and a name, and what is written is read again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "---\n", "a: [",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: 'pre-install'}}\n---\n{}\n", "kind: Pod", "5", "null"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse("fuzz", text)
		if err != nil {
			return
		}
		written, err := manifests(all, definition.Chart{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, one := range written {
			again, err := parse("again", string(one))
			if err != nil {
				t.Fatalf("%v:\n%s", err, one)
			}
			count += len(again)
		}
		if count != len(all) {
			t.Errorf("%d objects became %d:\n%s", len(all), count, text)
		}
	})
}

// FuzzTemplate renders templates: no text makes the renderer panic, and the same text gives the same bytes.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{{ .Values.x }}", "{{ range until 3 }}---\n{{ end }}", "{{ fail `no` }}", "{{ genCA `a` 3 }}",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }}}", "{{ tpl .Values.t . }}", "{{ template `x` }}",
		"{{ index .Values `a` 3 }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "until") || strings.Contains(text, "repeat") || strings.Contains(text, "seq") || len(text) > 200 {
			return // takes long for great numbers
		}
		c := definition.Chart{ReleaseName: "a", Namespace: "default", Path: chartOf(t, text)}
		one, err := Renderer{}.Render(t.Context(), c, "", version)
		two, again := Renderer{}.Render(t.Context(), c, "", version)
		if (err == nil) != (again == nil) || !cmp.Equal(one, two) {
			t.Errorf("%v %v %s", err, again, cmp.Diff(one, two))
		}
	})
}

// FuzzArchive reads archives of charts.
func FuzzArchive(f *testing.F) {
	f.Add(pack(f))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		c, err := fromArchive("path", text)
		if err == nil && usable(c, version) == nil {
			_, _ = objectsOf(c, definition.Chart{ReleaseName: "a", Namespace: "default"}, version)
		}
	})
}
