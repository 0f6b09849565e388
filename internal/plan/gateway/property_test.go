package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// body returns the document that a decision writes, or the one that is there if nothing differs.
func (w *facts) body(t rapid.TB) azure.Document {
	t.Helper()
	steps, err := plan.Diff(w.in.Have, w.desired().Graph)
	if err != nil {
		t.Fatal(err)
	}
	if steps.Empty() {
		return w.doc
	}
	return steps.Steps[0].Body
}

// drawIngresses draws Ingresses that meet at few hosts, paths, Services and ports, with annotations of which some are not allowed.
func drawIngresses(t *rapid.T) (all []*networking.Ingress) {
	one := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	annotations := [][2]string{
		{"ssl-redirect", "true"}, {"ssl-redirect", "maybe"}, {"use-private-ip", "true"}, {"override-frontend-port", "8443"}, {"rule-priority", "100"},
		{"hostname-extension", "b.x.com,*.x.com"}, {"cookie-based-affinity", "true"}, {"backend-path-prefix", "/v2/"}, {"appgw-ssl-profile", "absent"},
		{"request-timeout", "0"}, {"rewrite-rule-set-custom-resource", "rw"}, {"backend-protocol", "https"},
	}
	for n := range rapid.IntRange(0, 8).Draw(t, "ingresses") {
		i := &networking.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("i%d", n), Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(epoch.AddDate(0, 0, rapid.IntRange(0, 3).Draw(t, "age"))),
		}}
		for range rapid.IntRange(0, 3).Draw(t, "annotations") {
			a := rapid.SampledFrom(annotations).Draw(t, "annotation")
			i.Annotations["appgw.ingress.kubernetes.io/"+a[0]] = a[1]
		}
		if secret := one("secret", "", "", "tls", "absent"); secret != "" {
			i.Spec.TLS = []networking.IngressTLS{{SecretName: secret}}
		}
		backend := func() networking.IngressBackend {
			return networking.IngressBackend{Service: &networking.IngressServiceBackend{
				Name: one("service", "web", "b", "none"), Port: networking.ServiceBackendPort{Number: 80},
			}}
		}
		if rapid.Bool().Draw(t, "has a default") {
			i.Spec.DefaultBackend = new(backend())
		}
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			rule := networking.IngressRule{Host: one("host", "a.x.com", "b.x.com", "*.x.com", "*.y.x.com", ""), IngressRuleValue: networking.IngressRuleValue{
				HTTP: &networking.HTTPIngressRuleValue{},
			}}
			for range rapid.IntRange(1, 3).Draw(t, "paths") {
				kind := networking.PathType(one("type", "Exact", "Prefix", "ImplementationSpecific"))
				rule.HTTP.Paths = append(rule.HTTP.Paths, networking.HTTPIngressPath{
					Path: one("path", "/", "/a", "/a/b", "/a*", "bad", ""), PathType: &kind, Backend: backend(),
				})
			}
			i.Spec.Rules = append(i.Spec.Rules, rule)
		}
		all = append(all, i)
	}
	return all
}

// streaming returns a facts whose gateway has a listener for TCP that others have made, too.
func streaming(t testing.TB) *facts {
	w := newFacts(t)
	w.change([]byte(`{properties: {
 frontendPorts: [{name: tcp, properties: {port: 5432}}], listeners: [{name: tcp, properties: {new: true, protocol: Tcp,
		frontendIPConfiguration: {id: GATE/frontendIPConfigurations/public}, frontendPort: {id: GATE/frontendPorts/tcp}}}],
		backendSettingsCollection: [{name: tcp, properties: {port: 5432, protocol: Tcp, timeout: 20}}],
		routingRules: [{name: tcp, properties: {priority: 2, listener: {id: GATE/listeners/tcp},
		backendAddressPool: {id: GATE/backendAddressPools/other}, backendSettings: {id: GATE/backendSettingsCollection/tcp}}}]}}`))
	return w
}

// drawFacts draws a facts whose gateway already has what served other Ingresses.
func drawFacts(outer *testing.T, t *rapid.T, secrets *facts) *facts {
	w := streaming(outer)
	w.parseCluster("service default/web 80:8080 10.0.0.1\nservice default/b 80:8081 10.0.1.1 10.0.1.2\n" +
		"rewrite default/rw {rewriteRules: [{name: a, ruleSequence: 1}]}\n")
	w.secrets, w.made = secrets.secrets, secrets.objects()
	w.in.Ingresses = drawIngresses(t)
	w.doc = forgetSecrets(w.body(t))
	w.in.Have = plan.NewSnapshot(w.doc)
	w.in.Ingresses = drawIngresses(t)
	return w
}

// TestProperties checks what holds for all Ingresses.
func TestProperties(t *testing.T) {
	secrets := newFacts(t)
	secrets.parseCluster("secret default/tls\n")
	foreign := foreignOf(t, streaming(t).doc)
	rapid.Check(t, func(r *rapid.T) {
		w := drawFacts(t, r, secrets)
		before := w.in.Have
		body := w.body(r)
		checkDocument(t, body)
		for name, text := range foreign {
			if now := foreignOf(t, body)[name]; now != text {
				r.Errorf("%s, which belongs to others, is %s, was %s", name, now, text)
			}
		}
		for range 3 {
			rand.Shuffle(len(w.in.Ingresses), func(i, j int) {
				w.in.Ingresses[i], w.in.Ingresses[j] = w.in.Ingresses[j], w.in.Ingresses[i]
			})
			if again := w.body(r); !bytes.Equal(again, body) {
				r.Fatalf("another order of the same Ingresses gives another document:\n%s\n%s", body, again)
			}
		}
		// An Ingress that is refused leaves no trace.
		d := w.desired()
		kept := slices.DeleteFunc(slices.Clone(w.in.Ingresses), func(i *networking.Ingress) bool {
			return slices.ContainsFunc(d.Problems, func(p plan.Problem) bool {
				return !p.Warning && strings.HasSuffix(p.Object, "/"+i.Name)
			})
		})
		w.in.Ingresses = kept
		if without := w.body(r); !bytes.Equal(without, body) {
			r.Errorf("Ingresses that are not served change the document:\n%s\n%s", body, without)
		}
		w.doc = forgetSecrets(body)
		w.in.Have = plan.NewSnapshot(w.doc)
		if steps, err := plan.Diff(w.in.Have, w.desired().Graph); err != nil || !steps.Empty() {
			r.Errorf("not at rest: %v %v", steps, err)
		}
		// While something is undecided, nothing is removed.
		w.in.Have, w.in.Ingresses, w.in.Undecided = before, nil, true
		if kept := w.body(r); !bytes.Equal(kept, w.docOf(before)) && len(foreignOf(t, kept)) != len(foreign) {
			r.Error("something is removed while Ingresses are undecided")
		}
	})
}

func (w *facts) docOf(s plan.Snapshot) azure.Document {
	d, _ := s.Get(gatewayID)
	return d
}

// foreignOf returns the texts of all children that do not have the cluster's prefix, and of members that no planner knows.
func foreignOf(t testing.TB, doc azure.Document) map[string]string {
	t.Helper()
	var g struct {
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(doc, &g); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"unknown": string(g.Properties["unknown"])}
	for list, text := range g.Properties {
		var children []json.RawMessage
		if json.Unmarshal(text, &children) != nil {
			continue
		}
		for _, c := range children {
			var head struct{ Name string }
			if err := json.Unmarshal(c, &head); err == nil && !strings.HasPrefix(head.Name, "k8s-abc-") {
				all[list+"/"+head.Name] = string(c)
			}
		}
	}
	return all
}

// TestIdenticalBytes builds the same document a thousand times.
func TestIdenticalBytes(t *testing.T) {
	w := newFacts(t)
	w.parseCluster("service default/web 80:8080 10.0.0.1\nsecret default/tls\n")
	for n := range 4 {
		i := ingressOf(n)
		i.Spec.TLS = []networking.IngressTLS{{SecretName: "tls"}}
		i.Annotations = map[string]string{"appgw.ingress.kubernetes.io/ssl-redirect": "true"}
		w.in.Ingresses = append(w.in.Ingresses, i)
	}
	first := w.body(t)
	for range 1000 {
		if again := w.body(t); !bytes.Equal(first, again) {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

// ingressOf returns an Ingress with a host of its own and two paths to the Service web.
func ingressOf(n int) *networking.Ingress {
	backend := networking.IngressBackend{Service: &networking.IngressServiceBackend{Name: "web", Port: networking.ServiceBackendPort{Number: 80}}}
	return &networking.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("i%d", n), CreationTimestamp: metav1.NewTime(epoch)},
		Spec: networking.IngressSpec{Rules: []networking.IngressRule{{Host: fmt.Sprintf("h%d.x.com", n), IngressRuleValue: networking.IngressRuleValue{
			HTTP: &networking.HTTPIngressRuleValue{Paths: []networking.HTTPIngressPath{
				{Path: "/", PathType: new(networking.PathTypePrefix), Backend: backend}, {Path: "/a", PathType: new(networking.PathTypePrefix), Backend: backend},
			}},
		}}}},
	}
}

// BenchmarkDesired makes a document of 500 Ingresses at 90 hosts, with 90 Services and 4 endpoints each, from nothing.
func BenchmarkDesired(b *testing.B) {
	w := newFacts(b)
	var lines strings.Builder
	const hosts = 90
	for n := range hosts {
		fmt.Fprintf(&lines, "service default/s%d 80:8080 10.0.%d.1 10.0.%d.2 10.0.%d.3 10.0.%d.4\n", n, n, n, n, n)
	}
	w.parseCluster(lines.String())
	for n := range 500 {
		i := ingressOf(n)
		i.Name = fmt.Sprintf("i%d", n%hosts) // settings are counted by Ingress: there is room for 100
		i.Namespace, i.Spec.Rules[0].Host = "default", fmt.Sprintf("h%d.x.com", n%hosts)
		for p := range i.Spec.Rules[0].HTTP.Paths {
			path := &i.Spec.Rules[0].HTTP.Paths[p]
			path.Path = fmt.Sprintf("/%d/%d", n, p)
			path.Backend.Service = &networking.IngressServiceBackend{Name: fmt.Sprintf("s%d", n%hosts), Port: networking.ServiceBackendPort{Number: 80}}
		}
		w.in.Ingresses = append(w.in.Ingresses, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if body := w.body(b); len(body) < 100_000 {
			b.Fatalf("%d bytes", len(body))
		}
	}
}
