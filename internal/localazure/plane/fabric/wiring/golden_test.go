package wiring_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/wiring"
)

var update = flag.Bool("update", false, "write what is into the golden files")

// story is the input of a test: documents and state.
type story struct {
	documents []map[string]any
	state     wiring.State
}

func parseStory(t testing.TB, archive *txtar.Archive) story {
	t.Helper()
	var s story
	var state struct{ Attached, Healthy []string }
	for _, f := range archive.Files {
		var err error
		switch f.Name {
		case "documents.yaml":
			err = yaml.UnmarshalStrict(f.Data, &s.documents)
		case "state.yaml":
			err = yaml.UnmarshalStrict(f.Data, &state)
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	s.state = wiring.State{Instance: "gold", Attached: map[string]wiring.Attachment{}, Healthy: map[string]bool{}}
	for i, id := range state.Attached {
		s.state.Attached[azure.ID(id).Key()] = wiring.Attachment{Namespace: "/run/machine/" + azure.ID(id).Name(), Device: "eth0",
			Made: uint64(i + 1)}
	}
	for _, key := range state.Healthy {
		s.state.Healthy[key] = true
	}
	return s
}

func (s story) compile(t testing.TB) wiring.Net {
	t.Helper()
	docs := wiring.NewDocuments()
	if problems := docs.Read(s.all); len(problems) > 0 {
		t.Fatal(problems)
	}
	return wiring.Compile(docs, s.state)
}

func (s story) all(yield func(azure.ID, map[string]any) bool) {
	for _, d := range s.documents {
		id, _ := d["id"].(string)
		if !yield(azure.ID(id), d) {
			return
		}
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
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = archive
	}
	return all
}

// Each testdata/*.txtar has documents and the compiled state of the kernel.
func TestStories(t *testing.T) {
	all := stories(t)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := all[file]
			got := parseStory(t, archive).compile(t).String()
			for i := range archive.Files {
				f := &archive.Files[i]
				if f.Name != "want" {
					continue
				}
				if *update {
					f.Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", file, diff)
				}
			}
		})
	}
}

// An undecodable document is named, and the others are compiled.
func TestUndecodableDocuments(t *testing.T) {
	s := parseStory(t, stories(t)["testdata/routes.txtar"])
	id := "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/odd"
	s.documents = append(s.documents, map[string]any{"id": id, "properties": map[string]any{"loadBalancingRules": "many"}})
	docs := wiring.NewDocuments()
	problems := docs.Read(s.all)
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), id) {
		t.Errorf("problems %v, want one about %s", problems, id)
	}
	if net := wiring.Compile(docs, s.state); len(net.Routers) != 1 {
		t.Errorf("routers %v", net.Routers)
	}
}

// Compile does not fail on any documents.
func FuzzCompile(f *testing.F) {
	for _, archive := range stories(f) {
		text, err := json.Marshal(parseStory(f, archive).documents)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s story
		if json.Unmarshal([]byte(text), &s.documents) != nil {
			return
		}
		s.state = wiring.State{Instance: "fuzz", Attached: map[string]wiring.Attachment{}}
		for i, d := range s.documents {
			id, _ := d["id"].(string)
			s.state.Attached[azure.ID(id).Key()] = wiring.Attachment{Namespace: fmt.Sprint("/", i), Device: "eth0"}
		}
		docs := wiring.NewDocuments()
		docs.Read(s.all)
		_ = wiring.Compile(docs, s.state).String()
	})
}
