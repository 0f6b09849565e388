package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// record is a name for an address. Azure chooses the value.
type record struct {
	Target string   `json:"target,omitempty"`
	Sinks  []string `json:"sinks,omitempty" azure:"set"`
	Order  []string `json:"order,omitempty"`
	TTL    *int     `json:"ttl,omitempty"`
	Owner  azure.ID `json:"owner,omitempty"`
}

func recordID(name string) azure.ID { return group.Resource("N/records", name) }

func wantRecord(name, target string) plan.Node {
	return plan.Wanted(azure.Resource[record]{ID: recordID(name), Properties: record{Target: target}}, "record "+name)
}

func ipOf(name string) string { return plan.Output(addressID(name), "properties.ip") }

const ipOfA = `{"id":"/subscriptions/s/resourceGroups/g/providers/N/addresses/a","properties":{"idle":4,"ip":"1.2.3.4"}}`

func TestOutputs(t *testing.T) {
	known := plan.NewSnapshot(azure.Document(ipOfA))
	at := func(target string) azure.Document {
		return azure.Document(`{"id":"` + string(recordID("r")) + `","etag":"1","properties":{"target":"` + target + `","note":"kept"}}`)
	}
	for name, test := range map[string]struct {
		have plan.Snapshot
		want plan.Graph
		text []string // of the plan's lines
		body string   // of its last step, once bound
	}{
		"of what is made": {
			want: graph(t, wantRecord("r", "ip "+ipOf("a")), wantAddress("a", 4)),
			text: []string{"1. create ", "2. create ", "     with properties.ip of a: known after addresses/a is created"},
			body: `{"properties":{"target":"ip 5.6.7.8"}}`,
		},
		"in what is updated": {
			have: plan.NewSnapshot(at("old")), want: graph(t, wantRecord("r", ipOf("a")), wantAddress("a", 4)),
			text: []string{"1. create ", "2. update ", `     properties.target: "old" -> (known after addresses/a is created)`},
			body: `{"id":"` + string(recordID("r")) + `","etag":"1","properties":{"target":"5.6.7.8","note":"kept"}}`,
		},
		"of what is there": {
			have: known, want: graph(t, wantRecord("r", ipOf("a")), wantAddress("a", 4)),
			text: []string{"1. create "}, body: `{"properties":{"target":"1.2.3.4"}}`,
		},
		"of what is there and not in the graph": {
			have: known, want: graph(t, wantRecord("r", ipOf("a"))),
			text: []string{"1. create "}, body: `{"properties":{"target":"1.2.3.4"}}`,
		},
		"of what is updated elsewhere": {
			have: known, want: graph(t, wantRecord("r", ipOf("a")), wantAddress("a", 30)),
			text: []string{"1. create ", "2. update ", "     properties.idle: 4 -> 30"},
		},
		"of what an update brings": {
			have: known, want: graph(t, wantRecord("r", plan.Output(addressID("a"), "properties.idle")), wantAddress("a", 30)),
			text: []string{"1. update ", "     properties.idle: 4 -> 30", "2. create ", "     with properties.idle of a: known after addresses/a is updated"},
			body: `{"properties":{"target":"30"}}`,
		},
		"at rest": {have: plan.NewSnapshot(azure.Document(ipOfA), at("1.2.3.4")), want: graph(t, wantRecord("r", ipOf("a")))},
		"of an action": {
			want: graph(t, plan.Action(addressID("a"), "keys", nil, "its keys"), wantRecord("r", plan.Output(addressID("a"), "keys[two].value"))),
			text: []string{"1. run ", "2. create ", "     with keys[two].value of a: known after keys of addresses/a is run"},
			body: `{"properties":{"target":"second"}}`,
		},
		"through another": {
			want: graph(t, wantRecord("s", plan.Output(recordID("r"), "properties.target")), wantRecord("r", ipOf("a")), wantAddress("a", 4)),
			text: []string{"1. create ", "2. create ", "     with properties.ip of a: known after addresses/a is created",
				"3. create ", "     with properties.target of r: known after records/r is created"},
			body: `{"properties":{"target":"5.6.7.8"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := diff(t, test.have, test.want)
			lines := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
			if p.Empty() {
				lines = nil
			}
			if len(lines) != len(test.text) {
				t.Fatalf("plan:\n%s", p)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, test.text[i]) {
					t.Errorf("line %q, want %q", line, test.text[i])
				}
			}
			if strings.Contains(p.String(), "\x00") || strings.Contains(p.String(), `\u0000`) {
				t.Errorf("marks are in the text:\n%s", p)
			}
			if test.body == "" {
				return
			}
			last := p.Steps[len(p.Steps)-1]
			bound, err := last.Bind(func(step int) azure.Document {
				return azure.Document(`{"properties":{"ip":"5.6.7.8","idle":30,"target":"5.6.7.8"},
					"keys":[{"name":"one","value":"first"},{"name":"Two","value":"second"}]}`)
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.body, string(bound.Body)); d != "" {
				t.Error("body (-want +got):\n" + d)
			}
		})
	}
}

func TestOutputsThatNothingMakes(t *testing.T) {
	known := plan.NewSnapshot(azure.Document(ipOfA))
	for name, test := range map[string]struct {
		want plan.Graph
		err  string
	}{
		"of what is not there":    {graph(t, wantRecord("r", ipOf("b"))), "addresses/b, which has none, and nothing writes it"},
		"at a path that is empty": {graph(t, wantRecord("r", plan.Output(addressID("a"), "properties.dns"))), "properties.dns of"},
		"of what goes": {graph(t, wantRecord("r", ipOf("a")), plan.Gone[address](addressID("a"), "x")),
			"addresses/a, which is deleted"},
		"of itself": {graph(t, wantRecord("r", plan.Output(recordID("r"), "properties.target"))), "needs an output that needs"},
		"of each other": {graph(t, wantRecord("r", plan.Output(recordID("s"), "a")), wantRecord("s", plan.Output(recordID("r"), "a"))),
			"needs an output that needs"},
		"that is no plain value": {graph(t, wantRecord("r", plan.Output(addressID("a"), "properties"))), "not a plain value"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := plan.Diff(known, test.want); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, want %q", err, test.err)
			}
		})
	}
	p := diff(t, plan.Snapshot{}, graph(t, wantRecord("r", ipOf("a")), wantAddress("a", 4)))
	_, err := p.Steps[1].Bind(func(int) azure.Document { return azure.Document(`{"properties":{"ip":""}}`) })
	if err == nil || !strings.Contains(err.Error(), "addresses/a has no properties.ip, which create") {
		t.Errorf("an answer without the value: %v", err)
	}
}

// A value takes its place in a set, and is there once. Other lists keep their order.
func TestOutputsInLists(t *testing.T) {
	want := record{Sinks: []string{ipOf("a"), "9.9.9.9", ipOf("b"), "5.6.7.8"}, Order: []string{"9", plan.Output(addressID("a"), "properties.idle")}}
	node := plan.Wanted(azure.Resource[record]{ID: recordID("r"), Properties: want}, "record r")
	p := diff(t, plan.Snapshot{}, graph(t, node, wantAddress("a", 4), wantAddress("b", 4)))
	bound, err := p.Steps[2].Bind(func(step int) azure.Document {
		return azure.Document(`{"properties":{"idle":4,"ip":"` + []string{"5.6.7.8", "7.7.7.7"}[step] + `"}}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(`{"properties":{"order":["9","4"],"sinks":["5.6.7.8","7.7.7.7","9.9.9.9"]}}`, string(bound.Body)); d != "" {
		t.Error("body (-want +got):\n" + d)
	}
}

// An id field can be an output; the step waits for the step that makes it.
func TestOutputsAsReferences(t *testing.T) {
	r := azure.Resource[record]{ID: recordID("r"), Properties: record{Owner: azure.ID(plan.Output(vmID("v"), "properties.principal"))}}
	p := diff(t, plan.Snapshot{}, graph(t, plan.Wanted(r, "r"), plan.Wanted(azure.Resource[machine]{ID: vmID("v")}, "v")))
	if len(p.Steps) != 2 || !p.Steps[1].ID.Equal(r.ID) || len(p.Steps[1].After) != 1 || len(p.Steps[1].Late) != 1 {
		t.Fatalf("plan:\n%s", p)
	}
	if r.Properties.Owner == "" || !strings.Contains(string(r.Properties.Owner), "principal") {
		t.Error("the wanted view was changed")
	}
}
