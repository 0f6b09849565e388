package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/plan"
)

// preview is what comes after a plan that waits for the addresses of new public IPs: the next
// plan, made with addresses that stand in for them.
type preview struct {
	plan  plan.Plan
	after state
	names *strings.Replacer // says what stands in for an address
}

// previewOf makes the next plan where nothing but addresses is waited for.
func previewOf(t decision.Target, p plan.Plan) (preview, bool) {
	f := preview{after: outcome(t.Have, p), names: strings.NewReplacer()}
	if len(p.Pending) == 0 {
		return f, false
	}
	made := make([]azure.Document, 0, len(p.Steps))
	var names []string
	for i, s := range slices.Backward(p.Steps) { // so that no address begins one that is named after it
		doc, address, ok := standIn(s, i)
		if !ok {
			return f, false
		}
		made = append(made, doc)
		names = append(names, address, "the address of "+s.ID.Name())
	}
	next := t.Have.With(made...)
	d, err := t.Decide(next)
	if err != nil || len(d.Graph.Pending) > 0 {
		return f, false
	}
	if f.plan, err = plan.Diff(next, d.Graph); err != nil {
		return f, false
	}
	f.after, f.names = outcome(next, f.plan), strings.NewReplacer(names...)
	return f, true
}

// Where the addresses come from that stand in: ranges that Azure gives to no resource.
const (
	standInIPv4 = "250.0.0.0"
	standInIPv6 = "100::"
)

// standIn is the public IP that the i-th step makes, with an address that stands in.
func standIn(s plan.Step, i int) (azure.Document, string, bool) {
	if s.Op != plan.Create || !s.ID.Is(network.PublicIPAddresses) {
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
	address := netip.MustParseAddr(standInIPv6)
	if version, _ := properties["publicIPAddressVersion"].(string); !strings.EqualFold(version, "IPv6") {
		address = netip.MustParseAddr(standInIPv4)
	}
	for range i {
		address = address.Next()
	}
	doc["id"], doc["name"], properties["ipAddress"] = s.ID, s.ID.Name(), address.String()
	text, err := json.Marshal(doc)
	return text, address.String(), err == nil
}

// steps are the previewed steps, with numbers after those that come first.
func (f preview) steps(first int) []ExplainedStep {
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
func (f preview) name(parts []Part) {
	for i := range parts {
		p := &parts[i]
		if p.Kind == kindAddress && p.State == ToCreate {
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
