package routes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/routes"
	"kaz/internal/testkit/golden"
)

// TestGolden runs the decision of each testdata/*.txtar. The input is table.yaml (absent for a missing table),
// nodes.yaml, config.yaml and changes.yaml. The output is plan and known. A second decision must change nothing.
func TestGolden(t *testing.T) { golden.Run(t, tell) }

func tell(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	in := routes.Input{Config: routes.Config{Subscription: "s", ResourceGroup: "rg", Table: "rt", Location: "westeurope"}}
	out := &txtar.Archive{Comment: archive.Comment}
	into := map[string]any{"config.yaml": &in.Config, "nodes.yaml": &in.Nodes, "changes.yaml": &in.Changes}
	for _, f := range archive.Files {
		switch {
		case f.Name == "table.yaml":
			in.Have = plan.NewSnapshot(table(t, f.Data))
		case into[f.Name] != nil:
			if err := yaml.UnmarshalStrict(f.Data, into[f.Name]); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		default:
			continue
		}
		out.Files = append(out.Files, f)
	}
	known, err := routes.Known(in)
	if err != nil {
		t.Fatal(err)
	}
	out.Files = append(out.Files, txtar.File{Name: "known", Data: []byte(lines(known))})
	text, after := decide(t, in)
	out.Files = append(out.Files, txtar.File{Name: "plan", Data: []byte(text)})
	in.Have = after
	if again, _, err := routes.Desired(in); err != nil {
		t.Fatal(err)
	} else if p, err := plan.Diff(after, again); err != nil || !p.Empty() {
		t.Errorf("not at rest: %v %v", p, err)
	}
	return out
}

func lines(known []routes.Route) string {
	var b strings.Builder
	for _, r := range known {
		fmt.Fprintf(&b, "%s: %s -> %s\n", r.Name, r.CIDR, r.Node)
	}
	return b.String()
}

const tableID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/routeTables/rt"

// table parses a table in the form "name: prefix hop".
func table(t *testing.T, data []byte) azure.Document {
	var given struct {
		Tags   map[string]string
		Routes []map[string]string
		Many   int
	}
	if err := yaml.UnmarshalStrict(data, &given); err != nil {
		t.Fatal(err)
	}
	list := []any{}
	for _, one := range given.Routes {
		for name, to := range one {
			list = append(list, route(name, strings.Fields(to)...))
		}
	}
	for i := range given.Many {
		list = append(list, route(fmt.Sprintf("foreign-%d", i), fmt.Sprintf("192.168.%d.%d/32", i/250, i%250), "10.0.0.1"))
	}
	text, err := json.Marshal(map[string]any{
		"id": tableID, "name": "rt", "etag": "1", "location": "westeurope", "tags": given.Tags,
		"properties": map[string]any{"disableBgpRoutePropagation": true, "routes": list},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// route returns a route like Azure, with fields that kaz does not know.
func route(name string, to ...string) map[string]any {
	properties := map[string]any{"addressPrefix": to[0], "hasBgpOverride": false, "nextHopType": "Internet"}
	if len(to) > 1 {
		properties["nextHopType"], properties["nextHopIpAddress"] = network.VirtualAppliance, to[1]
	}
	return map[string]any{"name": name, "id": tableID + "/routes/" + name, "etag": "1", "properties": properties}
}

// decide returns the plan and the state after it.
func decide(t *testing.T, in routes.Input) (string, plan.Snapshot) {
	t.Helper()
	graph, problems, err := routes.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(in.Have, graph)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(p.String())
	for _, problem := range problems {
		word := "refused"
		if problem.Warning {
			word = "warning"
		}
		fmt.Fprintf(&b, "%s: %s: %s: %s\n", word, problem.Object, problem.Reason, problem.Message)
	}
	after := in.Have
	for _, s := range p.Steps {
		doc := string(s.Body)
		if s.Op == plan.Create {
			doc = `{"id":"` + tableID + `","name":"rt",` + strings.TrimPrefix(doc, "{")
		}
		after = after.With(azure.Document(doc))
	}
	return b.String(), after
}
