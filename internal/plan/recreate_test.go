package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// A router's ports cannot exist without their address, nor its rules without their port. A network interface can
// exist without an address.
type (
	zonal struct {
		Zone string           `json:"zone,omitempty"`
		Lock *azure.Reference `json:"lock,omitempty"`
	}
	router struct {
		Ports []azure.Child[port]       `json:"ports,omitempty"`
		Rules []azure.Child[routerRule] `json:"rules,omitempty"`
	}
	port struct {
		Address *azure.Reference `json:"address,omitempty" azure:"required"`
	}
	routerRule struct {
		Port *azure.Reference `json:"port,omitempty" azure:"required"`
	}
	networkInterface struct {
		Address   *azure.Reference  `json:"address,omitempty"`
		Addresses []azure.Reference `json:"addresses,omitempty"`
		Speed     int               `json:"speed,omitempty"`
	}
)

var (
	routerID    = group.Resource("N/routers", "r")
	interfaceID = group.Resource("N/interfaces", "c")
	childID     = addressID("a").Child("names", "n")
)

func wantZonal(name, zone string) plan.Node {
	n := plan.Wanted(azure.Resource[zonal]{ID: addressID(name), Properties: zonal{Zone: zone}}, "address "+name)
	n.Immutable = []string{"properties.zone"}
	return n
}

func wantRouter(addresses ...string) plan.Node {
	r := azure.Resource[router]{ID: routerID}
	for _, a := range addresses {
		r.Properties.Ports = append(r.Properties.Ports,
			azure.Child[port]{Name: a, Properties: port{Address: azure.Ref(addressID(a))}})
		r.Properties.Rules = append(r.Properties.Rules,
			azure.Child[routerRule]{Name: "to-" + a, Properties: routerRule{Port: azure.Ref(routerID.Child("ports", a))}})
	}
	return plan.Wanted(r, "the router")
}

func wantCard(speed int, address string) plan.Node {
	return plan.Wanted(azure.Resource[networkInterface]{ID: interfaceID, Properties: networkInterface{
		Speed: speed, Address: azure.Ref(addressID(address)), Addresses: []azure.Reference{{ID: addressID(address)}},
	}}, "the interface")
}

// asMade is the snapshot after a plan for an empty one, with etags and the fields that
// Azure adds.
func asMade(t *testing.T, nodes ...plan.Node) plan.Snapshot {
	t.Helper()
	have := plan.Snapshot{}
	for _, s := range diff(t, have, graph(t, nodes...)).Steps {
		var doc map[string]any
		if err := json.Unmarshal(s.Body, &doc); err != nil {
			t.Fatal(err)
		}
		doc["id"], doc["etag"], doc["more"] = string(s.ID), "W/1", "kept"
		properties, _ := doc["properties"].(map[string]any)
		for _, list := range []string{"ports", "rules"} {
			parts, _ := properties[list].([]any)
			for _, p := range parts {
				part := p.(map[string]any)
				part["id"], part["more"] = string(s.ID.Child(list, part["name"].(string))), "kept"
			}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		have = have.With(text)
	}
	return have
}

func TestRecreate(t *testing.T) {
	const anew = ", made anew as properties.zone cannot be changed"
	named := plan.Wanted(azure.Resource[struct{}]{ID: childID}, "its name")
	for name, test := range map[string]struct {
		have, want []plan.Node
		plan       []string
	}{
		"alone": {
			have: []plan.Node{wantZonal("a", "1")}, want: []plan.Node{wantZonal("a", "2")},
			plan: []string{"1. delete a: address a" + anew, "2. create a: address a (after 1)"},
		},
		"only what differs": {
			have: []plan.Node{wantZonal("a", "1"), wantZonal("b", "1")}, want: []plan.Node{wantZonal("b", "2"), wantZonal("a", "1")},
			plan: []string{"1. delete b: address b" + anew, "2. create b: address b (after 1)"},
		},
		"with a part and a rule that must go meanwhile": {
			have: []plan.Node{wantZonal("a", "1"), wantZonal("b", "1"), wantRouter("a", "b")},
			want: []plan.Node{wantZonal("a", "2"), wantZonal("b", "1"), wantRouter("a", "b")},
			plan: []string{
				"1. update r: the router, without what is made anew", "-ports[a]", "-rules[to-a]",
				"2. delete a: address a" + anew + " (after 1)", "3. create a: address a (after 2)",
				"4. update r: the router (after 1, 3)", "+ports[a]", "+rules[to-a]",
			},
		},
		"with fields that must go meanwhile": {
			have: []plan.Node{wantZonal("a", "1"), wantCard(1, "a")}, want: []plan.Node{wantCard(2, "a"), wantZonal("a", "2")},
			plan: []string{
				"1. update c: the interface, without what is made anew", "-address", "-addresses[a]",
				"2. delete a: address a" + anew + " (after 1)", "3. create a: address a (after 2)",
				"4. update c: the interface (after 1, 3)", "+address.id", "+addresses[a]", "~speed",
			},
		},
		"that its user leaves": {
			have: []plan.Node{wantZonal("a", "1"), wantZonal("b", "1"), wantCard(1, "a")},
			want: []plan.Node{wantZonal("a", "2"), wantCard(1, "b"), wantZonal("b", "1")},
			plan: []string{"1. update c: the interface", "~address.id", "-addresses[a]", "+addresses[b]",
				"2. delete a: address a" + anew + " (after 1)", "3. create a: address a (after 2)"},
		},
		"that its user goes from": {
			have: []plan.Node{wantZonal("a", "1"), wantCard(1, "a")}, want: []plan.Node{wantZonal("a", "2"), plan.Gone[struct {
				Address *azure.Reference `json:"address"`
			}](interfaceID, "the interface is deleted")},
			plan: []string{"1. delete c: the interface is deleted", "2. delete a: address a" + anew + " (after 1)",
				"3. create a: address a (after 2)"},
		},
		"with what is below": {
			have: []plan.Node{wantZonal("a", "1"), named}, want: []plan.Node{named, wantZonal("a", "2")},
			plan: []string{"1. delete a: address a" + anew, "2. create a: address a (after 1)", "3. create n: its name (after 2)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := asMade(t, test.have...)
			p := diff(t, have, graph(t, test.want...))
			if d := cmp.Diff(test.plan, brief(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s\n%s", d, p)
			}
			for _, s := range p.Steps {
				switch {
				case s.Op != plan.Update:
				case len(s.Late) > 0:
					bound, err := s.Bind(func(int) azure.Document { return azure.Document(`{"etag":"W/2"}`) })
					if err != nil || bound.IfMatch != "W/2" {
						t.Errorf("%s matches %q, %v", s, bound.IfMatch, err)
					}
					fallthrough
				default:
					if !strings.Contains(string(s.Body), `"more":"kept"`) || s.IfMatch == "" {
						t.Errorf("%s has lost something: %s", s, s.Body)
					}
				}
			}
		})
	}
}

// brief is a plan's text with short names.
func brief(p plan.Plan) []string {
	var lines []string
	for line := range strings.Lines(p.String()) {
		line = strings.TrimSuffix(line, "\n")
		change, isChange := strings.CutPrefix(line, "     properties.")
		path, rest, _ := strings.Cut(change, ": ")
		switch {
		case isChange && (rest[0] == '-' || rest[0] == '+'):
			line = rest[:1] + path
		case isChange:
			line = "~" + path
		default:
			head, tail, _ := strings.Cut(line, "/")
			id, why, _ := strings.Cut("/"+tail, ":")
			line = head + azure.ID(id).Name() + ":" + why
		}
		lines = append(lines, line)
	}
	return lines
}

// A resource that refers to it in a field that cannot be changed is made anew too. A resource that takes an output
// from that one is updated afterwards.
func TestRecreateSpreads(t *testing.T) {
	fixed := wantCard(1, "a")
	fixed.Immutable = []string{"properties.address"}
	named := wantRecord("n", plan.Output(interfaceID, "properties.mac"))
	have := asMade(t, wantZonal("a", "1"), wantCard(1, "a")).With(
		azure.Document(`{"id":"`+string(interfaceID)+`","etag":"1","properties":{"mac":"m","address":{"id":"`+string(addressID("a"))+`"},
			"addresses":[{"id":"`+string(addressID("a"))+`"}],"speed":1}}`),
		azure.Document(`{"id":"`+string(recordID("n"))+`","properties":{"target":"m"}}`))
	if p := diff(t, have, graph(t, wantZonal("a", "1"), fixed, named)); !p.Empty() {
		t.Fatalf("not at rest before:\n%s", p)
	}
	p := diff(t, have, graph(t, wantZonal("a", "2"), fixed, named))
	want := []string{
		"1. delete c: the interface, made anew as properties.address cannot be changed",
		"2. delete a: address a, made anew as properties.zone cannot be changed (after 1)",
		"3. create a: address a (after 2)", "4. create c: the interface (after 1, 3)", "5. update n: record n (after 4)", "~target",
	}
	if d := cmp.Diff(want, brief(p)); d != "" {
		t.Errorf("plan (-want +got):\n%s\n%s", d, p)
	}
	shared := wantZonal("a", "2").Owning()
	if _, err := plan.Diff(have, graph(t, shared)); err == nil || !strings.Contains(err.Error(), "elements of others") {
		t.Errorf("a shared document would be made anew: %v", err)
	}
}
