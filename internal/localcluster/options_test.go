package localcluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/host/process"
	"kaz/internal/localcluster/site"
)

// A file that is not an archive of images is refused before the start.
func TestImageArchives(t *testing.T) {
	archive := func(names ...string) string {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for _, n := range names {
			if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	for content, want := range map[string]string{
		archive("blobs/sha256/0", "index.json"): "",
		archive("./oci-layout", "./index.json"): "",
		archive("layer.tar", "manifest.json"):   "",
		archive("etc/passwd"):                   "neither index.json nor manifest.json",
		"no archive at all":                     "not an archive",
	} {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := UpOptions{Images: []string{file}}
		err := o.check()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)):
			t.Errorf("%q: %v, want %q and the file's name", content, err, want)
		}
	}
	o := UpOptions{NodesKind: NodesHollow, Images: []string{"nowhere.tar"}}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "nowhere.tar") || !strings.Contains(err.Error(), "simulated") {
		t.Errorf("hollow nodes with an image: %v", err)
	}
}

// A cluster keeps its application gateways: their number grows only.
func TestGateways(t *testing.T) {
	for _, n := range []int{-1, 51} {
		o := UpOptions{Gateways: n}
		if err := o.check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--gateways %d: want 1 to 50", n)) {
			t.Errorf("%d application gateways: %v", n, err)
		}
	}
	engine := UpOptions{Engine: true, Gateways: 1}
	if err := engine.check(); err == nil || !strings.Contains(err.Error(), "--engine makes no application gateway") {
		t.Errorf("application gateways of the cluster engine: %v", err)
	}
	group, err := process.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	for _, test := range []struct {
		options UpOptions
		have    site.Site
		want    int
		refused string
	}{
		{UpOptions{}, site.Site{}, 0, ""},
		{UpOptions{Gateway: true}, site.Site{}, 1, ""},
		{UpOptions{Gateways: 3}, site.Site{}, 3, ""},
		{UpOptions{Gateway: true, Gateways: 3}, site.Site{Gateway: site.GatewayName}, 3, ""},
		{UpOptions{}, site.Site{Gateway: site.GatewayName, Gateways: 3}, 3, ""},
		{UpOptions{Gateway: true}, site.Site{Gateway: site.GatewayName, Gateways: 3}, 3, ""},
		{UpOptions{Gateways: 4}, site.Site{Gateway: site.GatewayName, Gateways: 3}, 4, ""},
		{UpOptions{Gateways: 2}, site.Site{Gateway: site.GatewayName, Gateways: 3}, 3, "has 3; want at least 3"},
	} {
		c := &cluster{UpOptions: test.options, group: group, record: startRecord{Site: test.have}}
		err := c.chooseGateways()
		if n := len(c.record.Site.GatewayIDs()); n != test.want || len(c.gatewaySteps()) != min(n, 1) {
			t.Errorf("%+v with %+v: %d application gateways, want %d", test.options, test.have, n, test.want)
		}
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%+v with %+v: %v, want %q", test.options, test.have, err, test.refused)
		}
	}
}

// Images need real nodes, whether the options or the existing cluster choose the kind.
func TestWantedNodes(t *testing.T) {
	images := []string{"web.tar"}
	for _, test := range []struct {
		options    UpOptions
		have, want string
		refused    string // "" for accepted
	}{
		{UpOptions{}, "", "", ""},
		{UpOptions{}, NodesHollow, NodesHollow, ""},
		{UpOptions{Images: images}, "", NodesReal, ""},
		{UpOptions{Images: images}, NodesReal, NodesReal, ""},
		{UpOptions{Images: images, NodesKind: NodesReal}, "", NodesReal, ""},
		{UpOptions{Images: images}, NodesHollow, "", "--image: the cluster in /dir has hollow nodes"},
		{UpOptions{NodesKind: NodesReal}, NodesHollow, "", "--nodes-kind real: the cluster in /dir has hollow nodes"},
	} {
		got, err := wantedNodes(test.options, test.have, "/dir")
		if got != test.want || (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%+v with %q: %q, %v", test.options, test.have, got, err)
		}
	}
}

// The kind of an existing cluster counts before anything of this machine is checked.
func TestImageForHollowNodes(t *testing.T) {
	group, err := process.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	c := &cluster{UpOptions: UpOptions{Images: []string{"web.tar"}}, group: group, record: startRecord{Instance: "a", NodesKind: NodesHollow}}
	if err := c.choose(t.Context()); err == nil || !strings.Contains(err.Error(), "allowed with real nodes") {
		t.Errorf("choose: %v", err)
	}
}

// A cluster keeps its release: that of its first start, or the default.
func TestChooseRelease(t *testing.T) {
	byDefault := startRecord{Site: site.Site{ScaleSets: []string{"nodes0"}}}
	chosen := byDefault
	chosen.Release = "1.35.4"
	for _, test := range []struct {
		record  startRecord
		given   []string
		want    string
		refused string
	}{
		{startRecord{}, nil, "", ""},
		{startRecord{}, []string{"1.34.4"}, "1.34.4", ""},
		{chosen, nil, "1.35.4", ""},
		{chosen, []string{"1.35.4"}, "1.35.4", ""},
		{chosen, []string{"1.36.3"}, "", "--kubernetes 1.36.3: the cluster in DIR has 1.35.4, and that cannot be changed; want another --dir"},
		{byDefault, []string{"1.36.3"}, "", ""},
		{byDefault, []string{"1.37.2"}, "", "--kubernetes 1.37.2: the cluster in DIR has 1.36.3, and that cannot be changed; want another --dir"},
	} {
		got, err := chooseRelease(test.given, test.record, "DIR")
		if got != test.want || fmt.Sprint(err) != cmp.Or(test.refused, "<nil>") {
			t.Errorf("%+v with %q: %q, %v", test.record, test.given, got, err)
		}
	}
}
