package core

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/address"
)

// route is a [behaviour.Route] with its pattern cut up.
type route struct {
	behaviour.Route
	parts []string
}

func newRoute(r behaviour.Route) route {
	return route{Route: r, parts: address.Segments(r.Pattern)}
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

// findRoute finds the route that a request is to, if any.
func (f *front) findRoute(r *request) {
	parts := address.Segments(r.http.URL.Path)
	for i := range f.routes {
		if param, ok := f.routes[i].match(r.method, parts); ok {
			r.route, r.param = &f.routes[i], param
			return
		}
	}
}

func (f *front) serveRoute(r *request) (err error) {
	r.wait = f.latency.Plain(string(behaviour.Get))
	do := func(t *transaction) error {
		subscription := r.param["subscription"]
		if err := t.resolver().CheckSubscription(subscription); err != nil {
			return err
		}
		scope := azure.SubscriptionID(subscription)
		if group := r.param["group"]; group != "" {
			scope = azure.GroupID(subscription, group)
		}
		if r.route.Permission != "" {
			if err := t.access.Authorize(r.caller.Principal, r.route.Permission, scope); err != nil {
				return err
			}
		}
		if r.route.Writes {
			if err := t.Unlocked(scope, "write"); err != nil {
				return err
			}
		}
		c := &behaviour.Call{World: t, Body: r.body, Query: r.query, Param: r.param, Caller: r.caller, Host: r.host}
		answer, err := r.route.Do(c)
		if err != nil {
			return err
		}
		r.reply = reply{status: answer.Status, body: answer.Body}
		for name, value := range answer.Header {
			r.reply.set(name, value)
		}
		r.reply.freeze()
		return nil
	}
	if r.route.Writes {
		return f.write(do)
	}
	f.read(func(t *transaction) { err = do(t) })
	return err
}

// poll answers a request to the URL of an operation.
func (f *front) poll(r *request) error {
	r.wait = f.latency.Plain("poll")
	f.read(func(t *transaction) { r.reply = t.starter().poll(r) })
	if r.reply.status == 0 { // it was forgotten since it was found
		return behaviour.Gateway(http.StatusNotFound, "NotFound", "The operation %q is not known any more.", r.http.URL.Path)
	}
	return nil
}

// signature fills the parameters of poll URLs that Azure signs with.
func signature(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
