package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/testkit/golden"
)

// TestGolden runs the decision of each testdata/*.txtar. The input is ingresses.yaml, cluster (see parseCluster), gateway.yaml (changes of
// the usual document) and options.yaml; routes.yaml has objects of the Gateway API. The output is what the gateway then does, the problems, the
// statuses, and the changes by a next cluster, which is in the files with the suffix 2. A second decision on the same facts must change nothing.
func TestGolden(t *testing.T) { golden.Run(t, tell) }

func tell(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	w := newFacts(t)
	out := &txtar.Archive{Comment: archive.Comment}
	settled := false
	settle := func() {
		text, problems := w.decide()
		out.Files = append(out.Files, txtar.File{Name: "gateway", Data: []byte(text)}, txtar.File{Name: "problems", Data: []byte(problems)})
		if len(w.in.API.Classes) > 0 {
			out.Files = append(out.Files, txtar.File{Name: "statuses", Data: []byte(statuses(w.desired().API))})
		}
		settled = true
	}
	for _, f := range archive.Files {
		switch f.Name {
		case "gateway", "problems", "statuses":
			continue
		case "ingresses.yaml":
			if settled = len(w.in.Ingresses) > 0 && !settled; settled {
				settle()
			}
			w.ingresses(f.Data)
			settled = false
		case "routes.yaml":
			if settled = len(w.in.API.Classes) > 0 && !settled; settled {
				settle()
			}
			w.readAPI(f.Data)
			settled = false
		case "cluster":
			w.parseCluster(string(f.Data))
		case "gateway.yaml":
			w.change(f.Data)
		case "options.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &w.in.Config); err != nil {
				t.Fatal(err)
			}
		case "then":
			settle()
		default:
			t.Fatalf("file %s is not known", f.Name)
		}
		out.Files = append(out.Files, f)
	}
	if !settled {
		settle()
	}
	return out
}

// decide plans on the document, writes the plan into it and returns what the gateway does then, and the problems.
func (w *facts) decide() (text, problems string) {
	w.t.Helper()
	d := w.desired()
	var b strings.Builder
	for _, p := range d.Problems {
		word := "refused"
		if p.Warning {
			word = "warning"
		}
		b.WriteString(word + ": " + p.Object + ": " + p.Reason + ": " + p.Message + "\n")
	}
	if d.Hold != nil {
		b.WriteString("nothing is written: " + d.Hold.Error() + "\n")
	}
	steps, err := plan.Diff(w.in.Have, d.Graph)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(steps.Steps) > 1 {
		w.t.Errorf("%d writes", len(steps.Steps))
	}
	for _, s := range steps.Steps {
		checkDocument(w.t, s.Body)
		w.doc = forgetSecrets(s.Body)
		w.in.Have = plan.NewSnapshot(w.doc)
	}
	again, err := plan.Diff(w.in.Have, w.desired().Graph)
	if err != nil || !again.Empty() {
		w.t.Errorf("not at rest: %v %v", again, err)
	}
	return render(w.t, w.doc), b.String()
}

func (w *facts) desired() planner.Decision {
	w.t.Helper()
	w.in.Objects = w.objects()
	d, err := planner.Desired(w.in)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// forgetSecrets returns a document as Azure shows it after a write: without the data of certificates.
func forgetSecrets(doc azure.Document) azure.Document {
	return doc.Without(azure.Part{Path: "properties.sslCertificates.properties.data"}, azure.Part{Path: "properties.sslCertificates.properties.password"})
}

// checkDocument checks what Azure asks of a document: limits, unique names and priorities, and references to what is there.
func checkDocument(t testing.TB, doc azure.Document) {
	t.Helper()
	g, err := azure.Decode[network.ApplicationGateway](doc)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, id := range azure.Parts(gatewayID, g.Properties) {
		if there[id.Key()] {
			t.Errorf("%s is there twice", id)
		}
		there[id.Key()] = true
	}
	for _, list := range []string{"sslProfiles", "trustedRootCertificates", "frontendIPConfigurations"} {
		var all struct {
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(doc, &all); err != nil {
			t.Fatal(err)
		}
		var children []struct{ Name string }
		_ = json.Unmarshal(all.Properties[list], &children) // there may be none
		for _, c := range children {
			there[gatewayID.Child(list, c.Name).Key()] = true
		}
	}
	p := g.Properties
	for _, id := range azure.References(p) {
		if id.Under(gatewayID) && !there[id.Key()] {
			t.Errorf("%s is referred to and not there", id)
		}
	}
	const most = 100
	for list, n := range map[string]int{
		"listeners": len(p.Listeners), "pools": len(p.Pools), "settings": len(p.Settings), "probes": len(p.Probes), "ports": len(p.Ports),
		"redirects": len(p.Redirects), "certificates": len(p.Certificates), "rules": len(p.Rules),
	} {
		if n > most {
			t.Errorf("%d %s", n, list)
		}
	}
	priorities, listeners := map[int32]bool{}, map[azure.ID]bool{}
	rule := func(name string, priority int32, listener azure.ID) {
		if priorities[priority] || listeners[listener] || priority < 1 || priority > 20000 {
			t.Errorf("rule %s has priority %d and listener %s", name, priority, listener)
		}
		priorities[priority], listeners[listener] = true, true
	}
	for _, r := range p.Rules {
		rule(r.Name, r.Properties.Priority, r.Properties.Listener.To())
	}
	for _, r := range p.StreamRules {
		rule(r.Name, r.Properties.Priority, r.Properties.Listener.To())
	}
	protocols := map[string]string{}
	listener := func(frontend, port *azure.Reference, protocol string) {
		at := string(frontend.To() + port.To())
		if had := protocols[at]; had != "" && had != protocol {
			t.Errorf("%s has the protocols %s and %s", at, had, protocol)
		}
		protocols[at] = protocol
	}
	for _, l := range p.StreamListeners {
		listener(l.Properties.Frontend, l.Properties.Port, l.Properties.Protocol)
	}
	for _, l := range p.Listeners {
		if q := l.Properties; protocols[string(q.Frontend.To()+q.Port.To())] != "" {
			listener(q.Frontend, q.Port, q.Protocol)
		}
	}
}
