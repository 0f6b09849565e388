package emulator

import (
	"net/http"
	"strings"

	"kaz/internal/emulator/behaviour"
)

// route is a [behaviour.Route] with its pattern cut up.
type route struct {
	behaviour.Route
	parts []string
}

func newRoute(r behaviour.Route) route {
	parts, _ := segments(r.Pattern)
	return route{Route: r, parts: parts}
}

// match gives the names in the pattern when the path fits it.
func (rt *route) match(method string, parts []string) (map[string]string, bool) {
	if len(parts) != len(rt.parts) || method != rt.Method && (method != http.MethodHead || rt.Method != http.MethodGet) {
		return nil, false
	}
	param := map[string]string{}
	for i, p := range rt.parts {
		if name, ok := strings.CutPrefix(p, "{"); ok {
			param[strings.TrimSuffix(name, "}")] = parts[i]
		} else if !strings.EqualFold(p, parts[i]) {
			return nil, false
		}
	}
	return param, true
}

// subscription is the start of a path of the subscription that a route names.
func (rt *route) subscription(param map[string]string) []string {
	name := param["subscription"]
	if name == "" {
		return nil
	}
	return []string{"subscriptions", name}
}

func (e *Emulator) route(r *request) (*route, map[string]string) {
	parts, ok := segments(r.http.URL.Path)
	if !ok {
		return nil, nil
	}
	for i := range e.routes {
		if param, ok := e.routes[i].match(r.method, parts); ok {
			return &e.routes[i], param
		}
	}
	return nil, nil
}

func (e *Emulator) serveRoute(r *request, rt *route, param map[string]string) (err error) {
	if !rt.Open {
		if err := e.admit(r); err != nil {
			return err
		}
	}
	r.wait = e.latency.plain(string(behaviour.Get))
	do := func(t *transaction) error {
		if err := t.checkSubscription(rt.subscription(param)); err != nil {
			return err
		}
		if err := t.authorizeRoute(r, rt, param["subscription"]); err != nil {
			return err
		}
		c := &behaviour.Call{World: t, Body: r.body, Query: r.query, Param: param, Principal: r.principal, Host: r.host}
		answer, err := rt.Do(c)
		if err != nil {
			return err
		}
		r.reply = reply{status: answer.Status, body: answer.Body}
		for name, value := range answer.Header {
			r.set(name, value)
		}
		t.freeze(r)
		return nil
	}
	if rt.Writes {
		return e.write(do)
	}
	e.read(func(t *transaction) { err = do(t) })
	return err
}

// poll answers a request to the URL of an operation.
func (e *Emulator) poll(r *request) error {
	r.wait = e.latency.plain("poll")
	e.read(func(t *transaction) {
		path := pollKey(strings.TrimSuffix(r.http.URL.Path, "/"))
		o := t.operations.byPath[path]
		if o == nil {
			return // forgotten since it was found
		}
		p := o.kind.Style.Protocol
		result := t.operations.results[path] || r.query.Get("monitor") == "true"
		answer := p.Poll(o.Operation, result)
		r.reply = reply{status: answer.Status, body: answer.Body}
		t.freeze(r)
		if !o.End.IsZero() {
			return
		}
		if answer.Status == http.StatusAccepted && p.Result != nil {
			r.set("Location", t.pollURL(r, p, p.Result(o.Operation)))
		}
		t.latency.retryAfter(r.headers(), waitOf(o.kind, o.Verb).Later)
	})
	if r.reply.status == 0 {
		return gateway(http.StatusNotFound, "NotFound", "The operation %q is not known any more.", r.http.URL.Path)
	}
	return nil
}
