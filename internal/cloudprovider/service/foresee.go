package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// foresight is what comes after a plan that waits for the addresses of new public IPs,
// as far as it can be told: the next plan, made with addresses that nobody has.
type foresight struct {
	plan  plan.Plan
	shall world
	names *strings.Replacer // says what stands in for an address
}

// foresee makes the next plan where nothing but addresses is waited for. What cannot be
// foreseen is told when it is there.
func (t *target) foresee(have plan.Snapshot, p plan.Plan) (foresight, bool) {
	f := foresight{shall: outcome(have, p), names: strings.NewReplacer()}
	if len(p.Pending) == 0 {
		return f, false
	}
	made := make([]azure.Document, 0, len(p.Steps))
	var names []string
	for i, s := range slices.Backward(p.Steps) { // so that no address begins one that is named after it
		doc, address, ok := imagined(s, i)
		if !ok {
			return f, false
		}
		made = append(made, doc)
		names = append(names, address, "the address of "+s.ID.Name())
	}
	next := have.With(made...)
	told := t.problems
	graph, err := t.Desired(next)
	t.problems = told
	if err != nil || len(graph.Pending) > 0 {
		return f, false
	}
	if f.plan, err = plan.Diff(next, graph); err != nil {
		return f, false
	}
	f.shall, f.names = outcome(next, f.plan), strings.NewReplacer(names...)
	return f, true
}

// Where imagined addresses come from: ranges that nobody can have.
const (
	imaginedIPv4 = "250.0.0.0"
	imaginedIPv6 = "100::"
)

// imagined is the public IP that the i-th step makes, with an imagined address.
func imagined(s plan.Step, i int) (azure.Document, string, bool) {
	if s.Op != plan.Create || !sameType(s.ID, network.PublicIPAddresses) {
		return nil, "", false
	}
	dec := json.NewDecoder(bytes.NewReader(s.Body))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, "", false
	}
	properties, ok := doc["properties"].(map[string]any)
	if !ok {
		return nil, "", false
	}
	address := netip.MustParseAddr(imaginedIPv6)
	if version, _ := properties["publicIPAddressVersion"].(string); !strings.EqualFold(version, "IPv6") {
		address = netip.MustParseAddr(imaginedIPv4)
	}
	for range i {
		address = address.Next()
	}
	doc["id"], doc["name"], properties["ipAddress"] = s.ID, s.ID.Name(), address.String()
	text, err := json.Marshal(doc)
	return text, address.String(), err == nil
}

// steps are the foreseen steps, with numbers after those that come first.
func (f foresight) steps(first int) []ExplainedStep {
	all := explainedSteps(f.plan)
	for i := range all {
		s := &all[i]
		s.Number += first
		s.Text = f.names.Replace(s.Text)
		for j := range s.After {
			s.After[j] += first
		}
		for j, c := range s.Changes {
			s.Changes[j] = f.names.Replace(c)
		}
	}
	return all
}

// name says in parts what stands in for an address.
func (f foresight) name(parts []Part) {
	for i := range parts {
		p := &parts[i]
		if p.Kind == kindAddress && p.State == Missing {
			p.Shall = "a new address"
		}
		p.Shall = f.names.Replace(p.Shall)
	}
}

func writeLater(b *strings.Builder, later []ExplainedStep) {
	if len(later) == 0 {
		return
	}
	b.WriteString("and when the addresses are there:\n")
	for _, s := range later {
		fmt.Fprintf(b, "%d. %s\n", s.Number, s.Text)
		for _, c := range s.Changes {
			b.WriteString("     " + c + "\n")
		}
	}
}
