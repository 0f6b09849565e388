package azure_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kaz/internal/azure"
)

type ruleView struct {
	Port     int              `json:"port"`
	Floating *bool            `json:"floating,omitempty"`
	Protocol string           `json:"protocol,omitempty" azure:"fold"`
	Probe    *azure.Reference `json:"probe,omitempty" azure:"exact"`
	State    string           `json:"provisioningState,omitempty" azure:"read"`
}

type balancerView struct {
	Rules    []azure.Child[ruleView] `json:"rules,omitempty"`
	Sources  []string                `json:"sources,omitempty" azure:"set"`
	Members  []azure.Reference       `json:"members,omitempty"`
	Sequence []string                `json:"sequence,omitempty"`
}

type balancer = azure.Resource[balancerView]

const have = `{"id":"/subscriptions/s/x","name":"lb","etag":"W/1","location":"eastus","kind":"foreign",
 "tags":{"Owner":"me","old":"1"},
 "properties":{"provisioningState":"Succeeded","outboundRules":[{"name":"o"}],
  "rules":[{"name":"Web","id":"/r/web","etag":"W/1","properties":{"port":80,"protocol":"Tcp","unknown":{"a":1.50},"probe":{"id":"/p"},"provisioningState":"Succeeded"}},
           {"name":"other","properties":{"port":1}}],
  "sources":["b","A"],"members":[{"id":"/M/1","extra":true}],"sequence":["x","y"]}}`

func rule(name string, port int, edit ...func(*ruleView)) azure.Child[ruleView] {
	r := azure.Child[ruleView]{Name: name, Properties: ruleView{Port: port}}
	for _, e := range edit {
		e(&r.Properties)
	}
	return r
}

func probed(r *ruleView) { r.Probe = azure.Ref("/P") }

func TestOverlay(t *testing.T) {
	both := []azure.Child[ruleView]{rule("web", 80, probed), rule("other", 1)}
	for _, test := range []struct {
		name string
		want balancer
		diff []string
	}{
		{"nothing stated", balancer{}, nil},
		{"the same in other words", balancer{
			Location: "East US", Tags: azure.Tags{"owner": "me"},
			Properties: balancerView{Rules: both, Sources: []string{"a", "b"}, Members: []azure.Reference{{ID: "/m/1"}},
				Sequence: []string{"x", "y"}},
		}, nil},
		{"field changed", balancer{Properties: balancerView{Rules: []azure.Child[ruleView]{rule("web", 81, probed), rule("other", 1)}}},
			[]string{"properties.rules[Web].properties.port: 80 -> 81"}},
		{"exact field left out", balancer{Properties: balancerView{Rules: []azure.Child[ruleView]{rule("web", 80), rule("other", 1)}}},
			[]string{`properties.rules[Web].properties.probe: - {"id":"/p"}`}},
		{"pointer to false is stated",
			balancer{Properties: balancerView{Rules: []azure.Child[ruleView]{rule("web", 80, probed),
				rule("other", 1, func(r *ruleView) { r.Floating = new(false) })}}},
			[]string{"properties.rules[other].properties.floating: + false"}},
		{"element removed and added", balancer{Properties: balancerView{Rules: []azure.Child[ruleView]{rule("other", 1), rule("new", 2)}}},
			[]string{
				`properties.rules[Web]: - {"etag":"W/1","id":"/r/web","name":"Web","properties":{"port":80,"probe":{"id":"/p"},"protocol":"Tcp","provisioningState":"Succeeded","unknown":{"a":1.50}}}`,
				`properties.rules[new]: + {"name":"new","properties":{"port":2}}`,
			}},
		{"list emptied", balancer{Properties: balancerView{Members: []azure.Reference{}}},
			[]string{`properties.members[1]: - {"extra":true,"id":"/M/1"}`}},
		{"order of a sequence", balancer{Properties: balancerView{Sequence: []string{"y", "x"}}},
			[]string{`properties.sequence: ["x","y"] -> ["y","x"]`}},
		{"tags", balancer{Tags: azure.Tags{"OLD": azure.DropTag, "owner": "you", "new": "3", "absent": azure.DropTag}},
			[]string{`tags[new]: + "3"`, `tags[old]: - "1"`, `tags[Owner]: "me" -> "you"`}},
		{"read-only fields are not compared", balancer{ID: "/other", Etag: "W/9", Name: "x"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, changes, err := azure.Overlay(azure.Document(have), test.want)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, c := range changes {
				lines = append(lines, c.String())
			}
			if d := cmp.Diff(test.diff, lines); d != "" {
				t.Error("changes (-want +got):\n" + d)
			}
			for _, kept := range []string{"kind", "properties.outboundRules", "properties.provisioningState", "etag"} {
				if d := cmp.Diff(at(t, have, kept), at(t, string(got), kept)); d != "" {
					t.Errorf("%s was touched:\n%s", kept, d)
				}
			}
			if _, again, _ := azure.Overlay(got, test.want); len(again) > 0 {
				t.Errorf("a second time still changes %v", again)
			}
		})
	}
}

func TestOverlayRefusesWhatIsNoDocument(t *testing.T) {
	if _, _, err := azure.Overlay(azure.Document(`{"id":`), balancer{}); err == nil {
		t.Error("half a document was accepted")
	}
}

func at(t *testing.T, doc, path string) any {
	t.Helper()
	var x any
	if err := json.Unmarshal([]byte(doc), &x); err != nil {
		t.Fatal(err)
	}
	for _, key := range splitPath(path) {
		object, _ := x.(map[string]any)
		x = object[key]
	}
	return x
}

func splitPath(path string) (keys []string) {
	start := 0
	for i, r := range path + "." {
		if r == '.' {
			keys = append(keys, path[start:i])
			start = i + 1
		}
	}
	return keys
}

// Fields that the view does not know survive every overlay, wherever they are. A second overlay changes nothing more.
func TestOverlayKeepsUnknownFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := genDocument(t)
		want := genWant(t)
		got, _, err := azure.Overlay(doc, want)
		if err != nil {
			t.Fatal(err)
		}
		if _, again, err := azure.Overlay(got, want); err != nil || len(again) > 0 {
			t.Fatalf("not at rest: %v %v\n%s", again, err, got)
		}
		var before, after struct {
			Unknown    any `json:"unknown"`
			Properties struct {
				Unknown any              `json:"unknown"`
				Rules   []map[string]any `json:"rules"`
			} `json:"properties"`
		}
		mustDecode(t, doc, &before)
		mustDecode(t, got, &after)
		if d := cmp.Diff(before.Unknown, after.Unknown) + cmp.Diff(before.Properties.Unknown, after.Properties.Unknown); d != "" {
			t.Fatal(d)
		}
		wanted := map[string]bool{}
		for _, r := range want.Properties.Rules {
			wanted[r.Name] = true
		}
		unknown := map[any]any{}
		for _, r := range before.Properties.Rules {
			unknown[r["name"]] = r["unknown"]
		}
		for _, r := range after.Properties.Rules {
			if want.Properties.Rules != nil && !wanted[r["name"].(string)] {
				t.Fatalf("rule %v is there and was not wanted", r["name"])
			}
			if d := cmp.Diff(unknown[r["name"]], r["unknown"]); d != "" {
				t.Fatalf("unknown field of rule %v: %s", r["name"], d)
			}
		}
		if want.Properties.Rules != nil && len(after.Properties.Rules) != len(wanted) {
			t.Fatalf("%d rules, want %d", len(after.Properties.Rules), len(wanted))
		}
	})
}

func mustDecode(t *rapid.T, doc azure.Document, into any) {
	if err := json.Unmarshal(doc, into); err != nil {
		t.Fatal(err)
	}
}

var ruleNames = []string{"a", "b", "c", "d"}

func genDocument(t *rapid.T) azure.Document {
	unknown := func(label string) any {
		return rapid.SampledFrom([]any{nil, 1.0, "text", true, []any{"x", 2.0}, map[string]any{"deep": []any{map[string]any{}}}}).Draw(t,
			label)
	}
	rules := []any{}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(ruleNames), rapid.ID[string]).Draw(t, "rules") {
		rules = append(rules,
			map[string]any{"name": name, "unknown": unknown("rule"),
				"properties": map[string]any{"port": rapid.IntRange(1, 3).Draw(t, "port")}})
	}
	text, err := json.Marshal(map[string]any{
		"id": "/subscriptions/s", "unknown": unknown("root"),
		"properties": map[string]any{"unknown": unknown("properties"), "rules": rules},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func genWant(t *rapid.T) balancer {
	var want balancer
	if rapid.Bool().Draw(t, "states rules") {
		want.Properties.Rules = []azure.Child[ruleView]{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(ruleNames), rapid.ID[string]).Draw(t, "wanted") {
			want.Properties.Rules = append(want.Properties.Rules, rule(name, rapid.IntRange(1, 3).Draw(t, "wanted port")))
		}
	}
	want.Properties.Sources = rapid.SliceOfDistinct(rapid.SampledFrom(ruleNames), rapid.ID[string]).Draw(t, "sources")
	return want
}

func TestReferences(t *testing.T) {
	r := balancer{ID: "/self", Properties: balancerView{
		Rules:   []azure.Child[ruleView]{rule("web", 80, probed)},
		Members: []azure.Reference{{ID: "/m/1"}, {}},
	}}
	if d := cmp.Diff([]azure.ID{"/P", "/m/1"}, azure.References(r)); d != "" {
		t.Error(d)
	}
}

func TestErrorKinds(t *testing.T) {
	for _, test := range []struct {
		status int
		codes  []string
		want   azure.Kind
	}{
		{401, nil, azure.Denied},
		{403, nil, azure.Denied},
		{404, nil, azure.NotFound},
		{408, nil, azure.Unavailable},
		{409, nil, azure.Busy},
		{410, nil, azure.NotFound},
		{412, nil, azure.Changed},
		{429, nil, azure.Throttled},
		{404, []string{"ResourceNotFound"}, azure.NotFound},
		{409, []string{"Conflict"}, azure.Busy},
		{412, []string{"PreconditionFailed"}, azure.Changed},
		{400, []string{"PublicIPAddressCannotBeDeleted"}, azure.InUse},
		{400, []string{"InUseRouteTableCannotBeDeleted"}, azure.InUse},
		{400, []string{"PublicIPPrefixCannotBeDeleted"}, azure.InUse},
		{400, []string{"SubnetCannotBeUpdated"}, azure.InUse},
		{400, []string{"SomethingNewNotFound"}, azure.NotFound},
		{409, []string{"SomethingNewAlreadyExists"}, azure.Exists},
		{429, []string{"RetryableError", "ReferencedResourceNotProvisioned"}, azure.Busy},
		{409, []string{"Conflict", "SubnetIsFull"}, azure.Quota},
		{400, []string{"SomethingNewNotFound", "SomethingNewCannotBeDeleted"}, azure.InUse},
		{429, []string{"OperationNotAllowed", "TooManyRequests"}, azure.Throttled},
		{409, []string{"OperationNotAllowed"}, azure.Busy},
		{409, []string{"OperationNotAllowed", "QuotaExceeded"}, azure.Quota},
		{200, []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}, azure.Changed},
		{403, []string{"LinkedAuthorizationFailed"}, azure.Denied},
		{503, nil, azure.Unavailable},
		{418, nil, azure.Invalid},
		{0, nil, azure.Internal},
	} {
		if got := azure.Classify(test.status, test.codes...); got != test.want {
			t.Errorf("%d %v: %v, want %v", test.status, test.codes, got, test.want)
		}
	}
	err := fmt.Errorf("attach: %w", &azure.Error{Kind: azure.Quota, Op: "PUT", ID: "/x", Code: "C", Message: "m"})
	if azure.KindOf(err) != azure.Quota || err.Error() != "attach: PUT /x: quota (C): m" {
		t.Errorf("%v is of kind %v", err, azure.KindOf(err))
	}
}
