package records_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"kaz/internal/plan/records"
	"kaz/internal/testkit/golden"
)

// story is the input of a golden file.
type story struct {
	Have   map[string]map[string]any // properties by type and name: "A app"
	Adjust []records.Endpoint        // what ExternalDNS wants, before it makes changes of it
	records.Changes
	Cluster     string
	Protect     []string
	MostDeleted int
	Mark        *records.Marks // what is known of the clusters, in place of changes; all orphans are removed
}

// TestGolden tells the story of each testdata/*.txtar: story.yaml, and the answer of the planner.
func TestGolden(t *testing.T) { golden.Run(t, tell) }

func tell(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	var s story
	if err := yaml.UnmarshalStrict(archive.Files[0].Data, &s); err != nil {
		t.Fatal(err)
	}
	zones := []records.Zone{zone, corner}
	out := &txtar.Archive{Comment: archive.Comment, Files: archive.Files[:1]}
	add := func(name, text string) { out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(text)}) }
	if len(s.Adjust) > 0 {
		adjusted, problems := records.Adjust(zones, s.Adjust, s.Cluster)
		add("adjusted", encode(t, adjusted)+lines(problems))
	}
	have := read(t, s.Have)
	if len(have.Sets) > 0 {
		add("read", encode(t, have.Endpoints(s.Cluster)))
	}
	o := records.Options{DefaultTTL: 300, MostDeleted: s.MostDeleted, Cluster: s.Cluster}
	for _, p := range s.Protect {
		o.Protect = append(o.Protect, regexp.MustCompile(p))
	}
	p := records.Decide(have, s.Changes, o)
	if s.Mark != nil {
		s.Mark.Orphans = have.Orphans(s.Cluster)
		p = have.Mark(*s.Mark, o)
	}
	var text strings.Builder
	for _, h := range p.Hosts {
		fmt.Fprintf(&text, "%s\n", h.Name)
		for _, step := range h.Steps {
			traffic(&text, step.Before)
			fmt.Fprintf(&text, "  %s\n", step)
			if step.Body != nil {
				fmt.Fprintf(&text, "    %s\n", step.Body)
			}
			if step.Restore != nil {
				fmt.Fprintf(&text, "    or else %s\n", step.Restore)
			}
			traffic(&text, step.After)
		}
	}
	add("plan", text.String()+lines(p.Problems))
	return out
}

// traffic shows writes of Traffic Manager.
func traffic(text *strings.Builder, writes []records.Write) {
	for _, w := range writes {
		fmt.Fprintf(text, "  %s\n", w)
		if w.Body != nil {
			fmt.Fprintf(text, "    %s\n", w.Body)
		}
	}
}

// read returns the record sets of a story. Those below in.example.com are in the private zone.
func read(t *testing.T, have map[string]map[string]any) records.Snapshot {
	s := records.Snapshot{Zones: []records.Zone{zone, corner}, Sets: map[records.Key]records.Set{}}
	for key, properties := range have {
		z := zone
		kind, name, _ := strings.Cut(key, " ")
		if inner, ok := strings.CutSuffix(name, ".in"); ok {
			z, name = corner, inner
		}
		doc, err := json.Marshal(map[string]any{
			"id": string(z.ID) + "/" + kind + "/" + name, "name": name, "type": z.ID.Type() + "/" + kind, "etag": "1", "properties": properties,
		})
		if err != nil {
			t.Fatal(err)
		}
		set, err := records.Read(z, doc)
		if err != nil {
			t.Fatal(err)
		}
		s.Sets[set.Key()] = set
	}
	return s
}

func encode(t *testing.T, endpoints []records.Endpoint) string {
	var text strings.Builder
	for _, e := range endpoints {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(string(line) + "\n")
	}
	return text.String()
}

func lines(problems []records.Problem) string {
	var text strings.Builder
	for _, p := range problems {
		text.WriteString("! " + p.String() + "\n")
	}
	return text.String()
}
