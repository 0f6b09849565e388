package front

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/verbs"
	"kaz/internal/localazure/core/world"
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
func (f *Front) findRoute(r *exchange) {
	parts := address.Segments(r.URL.Path)
	for i := range f.routes {
		if param, ok := f.routes[i].match(r.Method, parts); ok {
			r.route, r.param = &f.routes[i], param
			return
		}
	}
}

func (f *Front) serveRoute(r *exchange) (err error) {
	r.Wait = f.world.Latency.Plain(string(behaviour.Get))
	do := func(t *world.Transaction) error {
		subscription := r.param["subscription"]
		if err := t.Resolver().CheckSubscription(subscription); err != nil {
			return err
		}
		scope := azure.SubscriptionID(subscription)
		if group := r.param["group"]; group != "" {
			scope = azure.GroupID(subscription, group)
		}
		if r.route.Permission != "" {
			if err := t.Access.Authorize(r.Caller.Principal, r.route.Permission, scope); err != nil {
				return err
			}
		}
		if r.route.Writes {
			if err := checks.In(t).Unlocked(scope, "write"); err != nil {
				return err
			}
		}
		c := &behaviour.Call{World: t.World, Body: r.Body, Query: r.Query, Param: r.param, Caller: r.Caller, Host: r.Host}
		t.By = r.author()
		answer, err := r.route.Do(c)
		if err != nil {
			return err
		}
		r.reply = message.Reply{Status: answer.Status, Body: answer.Body}
		for name, value := range answer.Header {
			r.reply.Set(name, value)
		}
		r.reply.Freeze()
		return nil
	}
	if r.route.Writes {
		return f.world.Write(do)
	}
	f.world.Read(func(t *world.Transaction) { err = do(t) })
	return err
}

// poll answers a request to the URL of an operation.
func (f *Front) poll(r *exchange) error {
	r.Wait = f.world.Latency.Plain("poll")
	f.world.Read(func(t *world.Transaction) { r.reply = verbs.Poll(t, r.Request) })
	if r.reply.Status == 0 { // it was forgotten since it was found
		return behaviour.Gateway(http.StatusNotFound, "NotFound", "The operation %q is not known any more.", r.URL.Path)
	}
	return nil
}
