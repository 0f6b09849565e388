package loadbalancer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit/golden"
)

// TestGolden plays the stories in testdata/*.txtar. A story may begin with config.yaml, azure.yaml (documents put into
// the subscription) and nodes.yaml. Its files NAME.apply and NAME.delete are commits of Services, in their order. Each is
// followed by NAME.plan, which is what kaz does. NAME.both has Services of both kinds; the annotation "gone" marks the
// Services to delete. The files namespaces.yaml, endpoints.yaml and others.yaml are what the cluster knows besides:
// others.yaml has the Services outside of the commits. After every commit a second one must find nothing to do.
func TestGolden(t *testing.T) { golden.Run(t, tell) }

// tell runs a story and returns its archive with the plans made anew.
func tell(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	in := loadbalancer.Input{Config: config(), Nodes: machines(2)}
	w := newSubscription(2)
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		stem, kind, _ := strings.Cut(f.Name, ".")
		if kind != "plan" {
			out.Files = append(out.Files, f)
		}
		switch kind {
		case "apply", "delete", "both":
			in.Services = services(t, f.Data, kind == "delete")
			out.Files = append(out.Files, txtar.File{Name: stem + ".plan", Data: []byte(commit(t, w, in))})
		case "yaml":
			setting(t, stem, f.Data, w, &in)
		}
	}
	return out
}

func setting(t *testing.T, what string, data []byte, w *subscription, in *loadbalancer.Input) {
	switch what {
	case "config":
		decode(t, data, &in.Config)
	case "nodes":
		in.Nodes = nil
		for _, doc := range documents(data) {
			n := &v1.Node{}
			decode(t, doc, n)
			in.Nodes = append(in.Nodes, n)
		}
	case "namespaces":
		in.Namespaces = nil
		decode(t, data, &in.Namespaces)
	case "others":
		in.Others = nil
		for _, s := range services(t, data, false) {
			in.Others = append(in.Others, s.Service)
		}
	case "endpoints":
		in.Endpoints = nil
		decode(t, data, &in.Endpoints)
	case "azure":
		for _, doc := range documents(data) {
			var o object
			decode(t, doc, &o)
			failed := sub(o, "properties")["provisioningState"] == "Failed"
			w.put(azure.ID(o["id"].(string)), o)
			if failed {
				sub(o, "properties")["provisioningState"] = "Failed"
			}
		}
	default:
		t.Fatalf("unknown file %s.yaml", what)
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
}

func documents(data []byte) [][]byte { return bytes.Split(data, []byte("\n---\n")) }

func services(t *testing.T, data []byte, gone bool) []loadbalancer.Service {
	var out []loadbalancer.Service
	for _, doc := range documents(data) {
		s := &v1.Service{}
		decode(t, doc, s)
		out = append(out, loadbalancer.Service{Service: s, Gone: gone || s.Annotations["gone"] == "true"})
	}
	return out
}

// commit applies and describes what was done.
func commit(t *testing.T, w *subscription, in loadbalancer.Input) string {
	t.Helper()
	var b strings.Builder
	rounds, err := w.commit(in)
	said := map[plan.Problem]bool{}
	for i, r := range rounds {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, p := range r.problems {
			if !said[p] {
				said[p] = true
				fmt.Fprintf(&b, "%s %s\n", map[bool]string{true: "warning", false: "problem"}[p.Warning], p.Reason+" "+p.Error())
			}
		}
		b.WriteString(r.plan.String())
		for n, s := range r.plan.Steps {
			if s.Op == plan.Create {
				fmt.Fprintf(&b, "body of %d: %s\n", n+1, indented(t, s.Body))
			}
		}
	}
	if err != nil {
		t.Fatalf("%v after\n%s", err, b.String())
	}
	if again, err := w.commit(in); err != nil || writes(again) > 0 {
		t.Fatalf("a second commit is not empty: %v\n%v", err, again[len(again)-1].plan)
	}
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range in.Services {
		var ips []string
		for _, ingress := range status[s.Key()] {
			ips = append(ips, ingress.IP)
		}
		if !s.Gone {
			fmt.Fprintf(&b, "status of %s: %s\n", s.Key(), ips)
		}
	}
	return b.String()
}

func indented(t *testing.T, d azure.Document) string {
	var b bytes.Buffer
	if err := json.Indent(&b, d, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNeedsNamesAllThatDesiredReads checks that the snapshot that Needs asks for is all that Desired reads.
func TestNeedsNamesAllThatDesiredReads(t *testing.T) {
	w := newSubscription(2)
	in := loadbalancer.Input{Config: config(), Nodes: machines(2),
		Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	for _, withNodes := range []bool{true, false} {
		in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: in.Services[0].Service, Gone: true}}}
		if withNodes {
			in.Nodes = machines(2)
		}
		all := plan.NewSnapshot()
		for range 3 {
			in.Have = all
			ids, lists := loadbalancer.Needs(in)
			for _, id := range ids {
				if d, ok := w.snapshot().Get(id); ok {
					all = all.With(d)
				}
			}
			for _, q := range lists {
				all = all.With(w.snapshot().List(q.Scope, q.Type)...)
			}
		}
		var plans []string
		for _, have := range []plan.Snapshot{all, w.snapshot()} {
			in.Have = have
			g, _, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(have, g)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p.String())
		}
		if d := cmp.Diff(plans[1], plans[0]); d != "" {
			t.Error("(-all of Azure +what was asked for):\n" + d)
		}
		if !slices.ContainsFunc(strings.Split(plans[0], "\n"), func(l string) bool { return strings.Contains(l, "delete "+lbID) }) {
			t.Error("the load balancer is not deleted:\n" + plans[0])
		}
	}
}
