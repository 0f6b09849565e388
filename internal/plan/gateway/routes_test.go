package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/gateway/routing"
	"kaz/internal/plan/gateway/gatewayapi"
)

// asked is a request of a client, and got what becomes of it.
type asked struct {
	method, path, query string
	header              http.Header
}

type got struct {
	service string // or a status code
	path    string
	header  string // X-Set
}

// drawRoutes draws HTTPRoutes of one Gateway that meet at few paths, headers, parameters and methods. Each rule has a Service of its own.
func drawRoutes(t *rapid.T, w *facts) (all []*gatewayv1.HTTPRoute) {
	for n := range rapid.IntRange(1, 4).Draw(t, "routes") {
		h := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("r%d", n), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(n%2) * time.Hour)),
		}}
		h.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gate"}}
		for m := range rapid.IntRange(1, 3).Draw(t, "rules") {
			service := fmt.Sprintf("s%d-%d", n, m)
			w.service(metav1.ObjectMeta{Namespace: "default", Name: service}, "80:8080", []string{fmt.Sprintf("10.3.%d.%d", n, m+1)})
			h.Spec.Rules = append(h.Spec.Rules, drawRule(t, service))
		}
		all = append(all, h)
	}
	return all
}

func drawRule(t *rapid.T, service string) gatewayv1.HTTPRouteRule {
	rule := gatewayv1.HTTPRouteRule{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: new(gatewayv1.PortNumber(80))},
	}}}}
	for range rapid.IntRange(1, 2).Draw(t, "matches") {
		m := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{
			Type: new(rapid.SampledFrom([]gatewayv1.PathMatchType{gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix}).Draw(t, "type")),
			// Dots and pluses are none of a regular expression.
			Value: new(rapid.SampledFrom([]string{"/", "/a", "/A", "/a/b", "/a/B", "/a.c", "/a/b/"}).Draw(t, "path")),
		}}
		if rapid.IntRange(0, 3).Draw(t, "has a header") == 0 {
			m.Headers = append(m.Headers, gatewayv1.HTTPHeaderMatch{Name: "X-Version", Value: rapid.SampledFrom([]string{"1", "2.0"}).Draw(t, "header")})
		}
		if rapid.IntRange(0, 3).Draw(t, "has a parameter") == 0 {
			m.QueryParams = append(m.QueryParams, gatewayv1.HTTPQueryParamMatch{Name: "q", Value: rapid.SampledFrom([]string{"1", "x y"}).Draw(t, "value")})
		}
		if rapid.IntRange(0, 4).Draw(t, "has a method") == 0 {
			m.Method = new(gatewayv1.HTTPMethodPost)
		}
		rule.Matches = append(rule.Matches, m)
	}
	prefixes := !slices.ContainsFunc(rule.Matches, func(m gatewayv1.HTTPRouteMatch) bool { return *m.Path.Type == gatewayv1.PathMatchExact })
	switch filter := rapid.IntRange(0, 4).Draw(t, "filter"); {
	case filter == 0:
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{
			Add: []gatewayv1.HTTPHeader{{Name: "X-Set", Value: service}},
		}}}
	case filter == 1 && prefixes:
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: &gatewayv1.HTTPURLRewriteFilter{
			Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/new")},
		}}}
	}
	return rule
}

func drawAsked(t *rapid.T) asked {
	a := asked{
		method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"),
		path:   rapid.SampledFrom([]string{"/", "/a", "/A", "/a/", "/a/b", "/A/b", "/a/B", "/a/b/c", "/ab", "/abc", "/a/x", "/.kaz/404", "/aXc", "/c"}).Draw(t, "path"),
		query:  rapid.SampledFrom([]string{"", "q=1", "p=2&q=1", "q=11", "q=x+y", "q=x%20y", "xq=1"}).Draw(t, "query"),
		header: http.Header{},
	}
	if v := rapid.SampledFrom([]string{"", "1", "2.0", "2x0"}).Draw(t, "header"); v != "" {
		a.header.Set("X-Version", v)
	}
	if rapid.Bool().Draw(t, "has X-Set") {
		a.header.Set("X-Set", "had")
	}
	return a
}

// best is a match that a request has, with the numbers that order matches: the highest go first.
type best struct {
	rank [6]int
	rule gatewayv1.HTTPRouteRule
	by   gatewayv1.HTTPRouteMatch
}

// matched reads a request as the Gateway API says it, without any gateway.
func matched(routes []*gatewayv1.HTTPRoute, a asked) got {
	var found []best
	for _, h := range routes {
		for i, rule := range h.Spec.Rules {
			for _, m := range rule.Matches {
				path := strings.TrimSuffix(*m.Path.Value, "/")
				exact := *m.Path.Type == gatewayv1.PathMatchExact
				if exact && a.path != *m.Path.Value || !exact && a.path != path && !strings.HasPrefix(a.path, path+"/") || !fits(m, a) {
					continue
				}
				b := best{rule: rule, by: m, rank: [6]int{0, len(path), 0, len(m.Headers), len(m.QueryParams), -i}}
				if exact {
					b.rank[0] = 1
				}
				if m.Method != nil {
					b.rank[2] = 1
				}
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		return got{service: "404"}
	}
	top := slices.MaxFunc(found, func(x, y best) int { return slices.Compare(x.rank[:5], y.rank[:5]) })
	return change(top, a)
}

func fits(m gatewayv1.HTTPRouteMatch, a asked) bool {
	query, _ := url.ParseQuery(a.query) // the queries are good
	for _, h := range m.Headers {
		if a.header.Get(string(h.Name)) != h.Value {
			return false
		}
	}
	for _, q := range m.QueryParams {
		if query.Get(string(q.Name)) != q.Value {
			return false
		}
	}
	return m.Method == nil || string(*m.Method) == a.method
}

func change(b best, a asked) got {
	g := got{service: string(b.rule.BackendRefs[0].Name), path: a.path, header: a.header.Get("X-Set")}
	for _, f := range b.rule.Filters {
		if f.RequestHeaderModifier != nil {
			g.header = strings.TrimPrefix(g.header+","+f.RequestHeaderModifier.Add[0].Value, ",")
		}
		if f.URLRewrite != nil {
			g.path = "/new" + strings.TrimPrefix(a.path, strings.TrimSuffix(*b.by.Path.Value, "/"))
		}
	}
	return g
}

// through sends a request through the gateway's document as the local Azure reads it.
func through(t rapid.TB, site *routing.Site, a asked, exact bool) got {
	t.Helper()
	x := &routing.Exchange{Method: a.method, Host: "h", Path: a.path, Query: a.query, Original: a.path + "?" + a.query, Header: a.header.Clone(),
		Response: http.Header{}, Proto: "HTTP/1.1"}
	chosen, ends := site.Route(x, exact)
	if !ends || chosen.Backend == nil {
		t.Fatalf("%+v: nothing is chosen", a)
	}
	if code, is := strings.CutPrefix(chosen.Backend.Path, "/"); is {
		return got{service: strings.TrimSuffix(code, "/")}
	}
	if len(chosen.Backend.Members) != 1 {
		t.Fatalf("%+v: %s", a, chosen.Backend)
	}
	parts := strings.Split(chosen.Backend.Members[0].Host, ".")
	n, _ := strconv.Atoi(parts[2])
	m, _ := strconv.Atoi(parts[3])
	return got{service: fmt.Sprintf("s%d-%d", n, m-1), path: x.Path, header: x.Header.Get("X-Set")}
}

// serving adds a Gateway for any host at port 80 and its class, and a Service that answers with status codes.
func (w *facts) serving(routes ...*gatewayv1.HTTPRoute) {
	w.in.API = gatewayapi.Objects{
		Classes: []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayapi.Controller}}},
		Gateways: []*gatewayv1.Gateway{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gate"}, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "class", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}}},
	}
	for _, r := range routes {
		w.in.API.Routes = append(w.in.API.Routes, r)
	}
	w.in.Applications = gatewayapi.Assign(w.in.API, []azure.ID{gatewayID}, nil)
	w.service(metav1.ObjectMeta{Namespace: "kube-system", Name: "answers"}, "8124:8124", []string{"10.4.0.1"})
	w.services[len(w.services)-1].Spec.Ports[0].Name = "answers"
	w.endpoints[len(w.endpoints)-1].Ports[0].Name = new("answers")
	w.in.Answers = "kube-system/answers"
}

// TestRoutesLikeTheGatewayAPI compares what the gateway does with requests with what the Gateway API says, whether or not the gateway looks at
// the case of letters in paths.
func TestRoutesLikeTheGatewayAPI(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newFacts(t)
		routes := drawRoutes(rt, w)
		w.serving(routes...)
		body := w.body(rt)
		checkDocument(t, body)
		for _, p := range w.desired().Problems { // what there is no room for is not served at all
			routes = slices.DeleteFunc(routes, func(h *gatewayv1.HTTPRoute) bool { return !p.Warning && p.Object == "HTTPRoute/"+gatewayapi.KeyOf(h) })
		}
		var doc map[string]any
		if err := json.Unmarshal(body, &doc); err != nil {
			rt.Fatal(err)
		}
		public := map[string]netip.Addr{azure.ID("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/p").Key(): netip.MustParseAddr("203.0.113.1")}
		table, err := routing.Compile(doc, routing.Facts{Public: public})
		if err != nil || len(table.Problems) > 0 {
			rt.Fatal(err, table.Problems)
		}
		i := slices.IndexFunc(table.Fronts, func(f routing.Front) bool { return f.At.Port() == 80 })
		site := table.Fronts[i].Site("h")
		for range 20 {
			a := drawAsked(rt)
			want := matched(byAge(routes), a)
			for _, exact := range []bool{false, true} {
				have := through(rt, site, a, exact)
				if strings.HasPrefix(a.path, "/.kaz/") && have.service == "404" { // that is ours, if there is something there
					continue
				}
				if have != want {
					text, _ := json.MarshalIndent(routes, "", " ")
					rt.Fatalf("exact %t: %+v: %+v, want %+v\n%s\n%s", exact, a, have, want, text, body)
				}
			}
		}
	})
}

func byAge(routes []*gatewayv1.HTTPRoute) []*gatewayv1.HTTPRoute {
	return slices.SortedFunc(slices.Values(routes), func(a, b *gatewayv1.HTTPRoute) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// readAPI reads objects of the Gateway API in place of those before, beside a class and the Service that answers with status codes. Their order
// is that of their ages.
func (w *facts) readAPI(text []byte) {
	w.serving()
	w.in.API.Gateways = nil
	w.in.Public, w.in.Private = "203.0.113.1", "10.1.0.10"
	for n, one := range strings.Split(string(text), "\n---\n") {
		var o struct{ Kind string }
		if err := yaml.Unmarshal([]byte(one), &o); err != nil {
			w.t.Fatal(err)
		}
		switch o.Kind {
		case "Gateway":
			w.in.API.Gateways = append(w.in.API.Gateways, read[gatewayv1.Gateway](w.t, one, n))
		case "ListenerSet":
			w.in.API.ListenerSets = append(w.in.API.ListenerSets, read[gatewayv1.ListenerSet](w.t, one, n))
		case "HTTPRoute":
			w.in.API.Routes = append(w.in.API.Routes, read[gatewayv1.HTTPRoute](w.t, one, n))
		case "TCPRoute":
			w.in.API.Routes = append(w.in.API.Routes, read[gatewayv1.TCPRoute](w.t, one, n))
		case "TLSRoute":
			w.in.API.Routes = append(w.in.API.Routes, read[gatewayv1.TLSRoute](w.t, one, n))
		case "ReferenceGrant":
			w.in.API.Grants = append(w.in.API.Grants, read[gatewayv1.ReferenceGrant](w.t, one, n))
		case "BackendTLSPolicy":
			w.in.API.TLSPolicies = append(w.in.API.TLSPolicies, read[gatewayv1.BackendTLSPolicy](w.t, one, n))
		case "ConfigMap":
			w.in.API.ConfigMaps = append(w.in.API.ConfigMaps, read[corev1.ConfigMap](w.t, one, n))
		case "Namespace":
			w.in.API.Namespaces = append(w.in.API.Namespaces, read[corev1.Namespace](w.t, one, n))
		default:
			w.t.Fatalf("kind %q is not known", o.Kind)
		}
	}
	w.in.Applications = gatewayapi.Assign(w.in.API, []azure.ID{gatewayID}, nil)
}

// read reads an object. Its namespace is default, and it is n minutes younger than the first one.
func read[T any, P interface {
	*T
	metav1.Object
}](t testing.TB, text string, n int) *T {
	t.Helper()
	o := P(new(T))
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(epoch.Add(time.Duration(n) * time.Minute)))
	return o
}

// statuses are the statuses of a result as text.
func statuses(r gatewayapi.Result) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Gateways)) {
		s := r.Gateways[key]
		fmt.Fprintf(&b, "Gateway %s:%s", key, conditions(s.Conditions))
		for _, a := range s.Addresses {
			b.WriteString(" at " + a.Value)
		}
		if s.AttachedListenerSets != nil {
			fmt.Fprintf(&b, " with %d listener sets", *s.AttachedListenerSets)
		}
		for _, l := range s.Listeners {
			fmt.Fprintf(&b, "\n  %s: %d routes of %d kinds%s", l.Name, l.AttachedRoutes, len(l.SupportedKinds), conditions(l.Conditions))
		}
		b.WriteString("\n")
	}
	for _, key := range slices.Sorted(maps.Keys(r.Sets)) {
		s := r.Sets[key]
		fmt.Fprintf(&b, "ListenerSet %s:%s", key, conditions(s.Conditions))
		for _, l := range s.Listeners {
			fmt.Fprintf(&b, "\n  %s: %d routes of %d kinds%s", l.Name, l.AttachedRoutes, len(l.SupportedKinds), conditions(l.Conditions))
		}
		b.WriteString("\n")
	}
	for _, key := range slices.Sorted(maps.Keys(r.Routes)) {
		for _, p := range r.Routes[key] {
			fmt.Fprintf(&b, "%s of %s:%s\n", strings.Replace(key, "/", " ", 1), p.ParentRef.Name, conditions(p.Conditions))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Policies)) {
		for _, a := range r.Policies[key] {
			fmt.Fprintf(&b, "BackendTLSPolicy %s of %s:%s\n", key, a.AncestorRef.Name, conditions(a.Conditions))
		}
	}
	return b.String()
}

// conditions names what is as it should be, and says the rest whole.
func conditions(all []metav1.Condition) string {
	var b strings.Builder
	for _, c := range all {
		good := c.Status == metav1.ConditionTrue
		if c.Type == string(gatewayv1.ListenerConditionConflicted) || c.Type == string(gatewayv1.RouteConditionPartiallyInvalid) {
			good = !good
		}
		if good && c.Reason == c.Type {
			b.WriteString(" " + c.Type)
		} else if !good || c.Reason != string(gatewayv1.ListenerReasonNoConflicts) {
			fmt.Fprintf(&b, "\n    %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return b.String()
}
