package routing_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/gateway/routing"
)

var update = flag.Bool("update", false, "write what is into the golden files")

const network = azure.ID("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network")

// facts are what the documents of the stories refer to.
func facts() routing.Facts {
	return routing.Facts{
		Public: map[string]netip.Addr{(network + "/publicIPAddresses/p").Key(): netip.MustParseAddr("198.18.0.7")},
		Members: map[string][]string{
			(network + "/applicationGateways/web/backendAddressPools/pool").Key(): {"10.1.0.7"},
		},
	}
}

func stories(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	all := map[string]*txtar.Archive{}
	for _, file := range files {
		if all[file], err = txtar.ParseFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each testdata/*.txtar has a document and the table that it compiles to.
func TestStories(t *testing.T) {
	for file, archive := range stories(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			var doc map[string]any
			if err := yaml.Unmarshal(archive.Files[0].Data, &doc); err != nil {
				t.Fatal(err)
			}
			config, err := routing.Compile(doc, facts())
			if err != nil {
				t.Fatal(err)
			}
			want := &archive.Files[1]
			if *update {
				want.Data = []byte(config.String())
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), config.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	front := routing.Front{Sites: []routing.Site{
		{Listener: "wild", Hosts: []string{"*.example.com"}}, {Listener: "exact", Hosts: []string{"a.example.com"}},
		{Listener: "letter", Hosts: []string{"x?.test", "*.*.test"}}, {Listener: "any"},
	}}
	for host, want := range map[string][2]string{
		// the site, and the site whose certificate the client gets
		"a.example.com": {"wild", "exact"}, "A.Example.com.": {"wild", "exact"}, "b.example.com": {"wild", "wild"},
		"example.com": {"any", "any"}, "xy.test": {"letter", "letter"}, "x.test": {"any", "any"}, "a.b.test": {"letter", "letter"},
		"": {"any", "any"}, "*.example.com": {"wild", "wild"},
	} {
		if got := front.Site(host); got.Listener != want[0] {
			t.Errorf("%q: site %s, want %s", host, got.Listener, want[0])
		}
		if got := front.Certified(host); got.Listener != want[1] {
			t.Errorf("%q: certificate of %s, want %s", host, got.Listener, want[1])
		}
	}
	if empty := (&routing.Front{}); empty.Site("a") != nil || empty.Certified("a") != nil {
		t.Error("a front without sites has one")
	}
}

func TestPaths(t *testing.T) {
	site := routing.Site{Paths: []routing.Path{{Name: "a", Patterns: []string{"/a"}, Action: to("exact")},
		{Name: "b", Patterns: []string{"/a/*", "/b*"}, Action: to("prefix")}}, Default: to("default")}
	for path, want := range map[string][2]string{
		"/a": {"exact", "/a"}, "/A": {"exact", "/A"}, "/a/": {"prefix", "/a/"}, "/a/x": {"prefix", "/a/"}, "/b": {"prefix", "/b"},
		"/bx": {"prefix", "/b"}, "/": {"default", ""}, "": {"default", ""}, "*": {"default", ""}, "/x/../a": {"exact", "/a"},
		"/a/..": {"default", ""}, "/a/.": {"prefix", "/a/"}, "//a": {"exact", "/a"},
	} {
		action, literal := site.Choose(path, false)
		if action.Backend.Pool != want[0] || literal != want[1] {
			t.Errorf("%q: %s, %q, want %v", path, action.Backend.Pool, literal, want)
		}
	}
	if action, _ := site.Choose("/A", true); action.Backend.Pool != "default" {
		t.Errorf("/A with regard to case: %s", action.Backend.Pool)
	}
}

func to(pool string) routing.Action { return routing.Action{Backend: &routing.Backend{Pool: pool}} }

// The documented examples of the backend path override.
func TestOverride(t *testing.T) {
	for _, c := range [][4]string{
		{"/override/", "/home/", "", "/override/home/"}, {"/override/", "/home/secondhome/", "", "/override/home/secondhome/"},
		{"/override/", "/pathrule/home/", "/pathrule", "/override/home/"},
		{"/override/", "/pathrule/home/secondhome/", "/pathrule", "/override/home/secondhome/"},
		{"/override/", "/pathrule/home/", "/pathrule/home", "/override/"},
		{"/override/", "/pathrule/home/secondhome/", "/pathrule/home", "/override/secondhome/"},
		{"/override/", "/pathrule/", "/pathrule/", "/override/"}, {"", "/x", "/x", "/x"}, {"/v2", "/x", "/x", "/v2"},
		{"/", "/canary/x/y", "/canary/", "/x/y"}, {"/v2", "/", "", "/v2"},
	} {
		if got := routing.Override(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("path %s of settings for %s, of which %q is fixed: %s, want %s", c[0], c[1], c[2], got, c[3])
		}
	}
}

// Any document compiles to a table that decides about any request, without a panic.
func FuzzDocuments(f *testing.F) {
	for _, archive := range stories(f) {
		text, err := yaml.YAMLToJSON(archive.Files[0].Data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "a.example.com", "/api/x", "x=1")
	}
	f.Fuzz(func(t *testing.T, text, host, path, query string) {
		var doc map[string]any
		if json.Unmarshal([]byte(text), &doc) != nil {
			return
		}
		routing.Frontends(doc)
		config, err := routing.Compile(doc, facts())
		if err != nil {
			return
		}
		_ = config.String()
		for i := range config.Fronts {
			front := &config.Fronts[i]
			if len(front.Sites) == 0 {
				t.Errorf("front %s has no site", front.At)
			}
			front.Certified(host)
			site := front.Site(host)
			if site == nil {
				continue
			}
			action, literal := site.Choose(path, false)
			x := routing.Exchange{Method: "GET", Host: host, Path: path, Query: query, Header: http.Header{}, Response: http.Header{}}
			x.Request(action.Rewrites)
			x.Respond(action.Rewrites)
			if action.Redirect != nil {
				action.Redirect.Location(host, path, query)
			}
			if action.Backend != nil {
				if path := routing.Override(action.Backend.Path, x.Path, literal); path == "" && x.Path != "" {
					t.Errorf("path %q is empty for the backend", x.Path)
				}
			}
		}
	})
}
