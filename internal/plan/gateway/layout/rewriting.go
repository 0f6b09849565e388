package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/route"
)

// pathVariable is the path that the client sent, also after rewrites.
const pathVariable = "var_uri_path"

// rewriting is a rewrite rule set in the making. Later rules have higher sequences.
type rewriting struct {
	rules      []network.GatewayRewriteRule
	conditions int
	headers    int
}

const firstSequence = 100

func (w *rewriting) add(conditions []network.GatewayRewriteCondition, actions network.GatewayRewriteActions) {
	n := len(w.rules)
	w.conditions += len(conditions)
	w.headers += len(actions.RequestHeaders) + len(actions.ResponseHeaders)
	w.rules = append(w.rules, network.GatewayRewriteRule{
		Name: fmt.Sprintf("rule-%d", n+1), Sequence: int32(firstSequence + n), Conditions: conditions, Actions: actions,
	})
}

// send sends requests to another path rule.
func (w *rewriting) send(conditions []network.GatewayRewriteCondition, path string) {
	w.add(conditions, network.GatewayRewriteActions{URL: &network.GatewayURLChange{Path: path, Reroute: true}})
}

// change does what a route changes. With restore, the request gets the path that the client sent.
func (w *rewriting) change(r route.Route, when []network.GatewayRewriteCondition, restore bool) {
	c := r.Change
	actions := network.GatewayRewriteActions{
		RequestHeaders: headers(c.Request), ResponseHeaders: headers(c.Response),
	}
	if c.Host != "" {
		actions.RequestHeaders = append(actions.RequestHeaders, network.GatewayHeader{Name: "Host", Value: c.Host})
	}
	switch {
	case c.Full != nil:
		actions.URL = &network.GatewayURLChange{Path: *c.Full}
	case restore:
		actions.URL = &network.GatewayURLChange{Path: "{" + pathVariable + "}"}
	}
	if len(actions.RequestHeaders)+len(actions.ResponseHeaders) > 0 || actions.URL != nil {
		w.add(when, actions)
	}
	if c.Prefix != nil {
		w.replacePrefix(r.Path, *c.Prefix, when)
	}
	w.append("http_req_", c.Request.Add, when, func(h []network.GatewayHeader) network.GatewayRewriteActions {
		return network.GatewayRewriteActions{RequestHeaders: h}
	})
	w.append("http_resp_", c.Response.Add, when, func(h []network.GatewayHeader) network.GatewayRewriteActions {
		return network.GatewayRewriteActions{ResponseHeaders: h}
	})
}

// headers are those that are set, and those that are removed.
func headers(c route.HeaderChange) []network.GatewayHeader {
	var all []network.GatewayHeader
	for _, h := range c.Set {
		all = append(all, network.GatewayHeader{Name: h.Name, Value: h.Value})
	}
	for _, name := range c.Remove {
		all = append(all, network.GatewayHeader{Name: name})
	}
	return all
}

// replacePrefix replaces what a path fixes. What is below keeps its place.
func (w *rewriting) replacePrefix(p route.Path, by string, when []network.GatewayRewriteCondition) {
	by = strings.TrimRight(by, "/")
	fixed := strings.TrimRight(p.Literal, "/")
	quoted := strings.TrimSuffix(strings.TrimPrefix(route.Path{Match: route.Exact, Literal: fixed}.Pattern(), "^"), "$")
	below := network.GatewayRewriteCondition{Variable: pathVariable, Pattern: "^" + quoted + "(/.*)$"}
	w.add(append(slices.Clone(when), below), network.GatewayRewriteActions{
		URL: &network.GatewayURLChange{Path: by + "{" + pathVariable + "_1}"},
	})
	if fixed == "" {
		return
	}
	alone := network.GatewayRewriteCondition{Variable: pathVariable, Pattern: "^" + quoted + "$"}
	w.add(append(slices.Clone(when), alone), network.GatewayRewriteActions{URL: &network.GatewayURLChange{Path: cmp.Or(by, "/")}})
}

// append adds values to headers, which may have some.
func (w *rewriting) append(variable string, add []route.HeaderValue, when []network.GatewayRewriteCondition,
	actions func([]network.GatewayHeader) network.GatewayRewriteActions,
) {
	for _, h := range add {
		has := network.GatewayRewriteCondition{Variable: variable + h.Name, Pattern: "."}
		more := network.GatewayHeader{Name: h.Name, Value: "{" + variable + h.Name + "}," + h.Value}
		w.add(append(slices.Clone(when), has), actions([]network.GatewayHeader{more}))
		has.Negate = true
		w.add(append(slices.Clone(when), has), actions([]network.GatewayHeader{{Name: h.Name, Value: h.Value}}))
	}
}
