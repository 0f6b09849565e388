package explain

import (
	"cmp"
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/gatewayapi"
)

// APIGateway is the explanation of a Gateway of the Gateway API.
type APIGateway struct {
	Name       string      `json:"apiGateway"` // NAMESPACE/NAME
	Class      string      `json:"class"`
	Conditions []Condition `json:"conditions,omitempty"`
	Entries    []Entry     `json:"entries,omitempty"`
	Sets       []Parent    `json:"listenerSets,omitempty"`
	Common
}

// Entry is a listener of a Gateway.
type Entry struct {
	Name       string      `json:"name"`
	Protocol   string      `json:"protocol"`
	Port       int32       `json:"port"`
	Hostname   string      `json:"hostname,omitempty"` // "" for any
	Routes     int32       `json:"attachedRoutes"`
	Conditions []Condition `json:"conditions"`
}

// Condition is what is decided about an object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// InStatus is how the status of the object differs, "" if it does not.
	InStatus string `json:"inStatus,omitempty"`
}

// Route is the explanation of a route.
type Route struct {
	Kind      string   `json:"kind"`  // HTTPRoute, TCPRoute or TLSRoute
	Name      string   `json:"route"` // NAMESPACE/NAME
	Hostnames []string `json:"hostnames,omitempty"`
	Rules     []Rule   `json:"rules,omitempty"`
	Parents   []Parent `json:"parents,omitempty"`
	Common
}

// Rule is a rule of a route in words.
type Rule struct {
	Matches  []string `json:"matches"`
	Filters  []string `json:"filters,omitempty"`
	Backends []string `json:"backends,omitempty"`
}

// Parent is a parent of a route, or a ListenerSet of a Gateway.
type Parent struct {
	Name       string      `json:"name"`
	Note       string      `json:"note,omitempty"` // why there are no conditions
	Conditions []Condition `json:"conditions,omitempty"`
}

// rulesOf lists what a route asks for.
func rulesOf(r gatewayapi.Route) (all []Rule) {
	requests, isHTTP := r.(*gatewayv1.HTTPRoute)
	for n, backends := range gatewayapi.BackendsOf(r) {
		one := Rule{Matches: []string{"all connections"}}
		if isHTTP {
			one = requestsOf(requests.Spec.Rules[n])
		}
		for _, b := range backends {
			one.Backends = append(one.Backends, backendText(r.GetNamespace(), b))
		}
		all = append(all, one)
	}
	return all
}

// requestsOf says which requests a rule takes, and what it does with them.
func requestsOf(rule gatewayv1.HTTPRouteRule) (one Rule) {
	for _, m := range rule.Matches {
		one.Matches = append(one.Matches, matchText(m))
	}
	if len(rule.Matches) == 0 {
		one.Matches = []string{"all requests"}
	}
	for _, f := range rule.Filters {
		one.Filters = append(one.Filters, string(f.Type))
	}
	return one
}

// matchText is a match in words: "GET /a (PathPrefix), header X-A is b".
func matchText(m gatewayv1.HTTPRouteMatch) string {
	text := "any path"
	if m.Path != nil && m.Path.Value != nil {
		text = *m.Path.Value
		if m.Path.Type != nil {
			text += " (" + string(*m.Path.Type) + ")"
		}
	}
	if m.Method != nil {
		text = string(*m.Method) + " " + text
	}
	for _, h := range m.Headers {
		text += fmt.Sprintf(", header %s is %s", h.Name, h.Value)
	}
	for _, q := range m.QueryParams {
		text += fmt.Sprintf(", query parameter %s is %s", q.Name, q.Value)
	}
	return text
}

// backendText is a backend in words: "Service shop/web port 80, weight 9".
func backendText(namespace string, b gatewayv1.BackendRef) string {
	kind, port := "Service", gatewayv1.PortNumber(0)
	if b.Kind != nil {
		kind = string(*b.Kind)
	}
	if b.Namespace != nil {
		namespace = string(*b.Namespace)
	}
	if b.Port != nil {
		port = *b.Port
	}
	text := fmt.Sprintf("%s %s/%s port %d", kind, namespace, b.Name, port)
	if b.Weight != nil {
		text += fmt.Sprintf(", weight %d", *b.Weight)
	}
	return text
}

// String returns the rule as text.
func (r Rule) String() string {
	text := strings.Join(r.Matches, " or ")
	if len(r.Filters) > 0 {
		text += " by " + strings.Join(r.Filters, ", ")
	}
	if len(r.Backends) > 0 {
		text += " to " + strings.Join(r.Backends, " and ")
	}
	return text
}

// String returns the condition as text.
func (c Condition) String() string {
	text := fmt.Sprintf("%s %s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	if c.InStatus != "" {
		text += "; in the status: " + c.InStatus
	}
	return text
}

// String returns the explanation as text.
func (v APIGateway) String() string {
	var p printer
	p.line("object", "Gateway %s, class %s: %s", v.Name, v.Class, v.State)
	p.conditions(v.Conditions)
	for _, e := range v.Entries {
		p.line("entry", "%s, %s at port %d for %s, %s", e.Name, e.Protocol, e.Port, cmp.Or(e.Hostname, "any host"),
			counted(int(e.Routes), "route"))
		p.conditions(e.Conditions)
	}
	for _, set := range v.Sets {
		p.line("listener set", "%s", set.Name)
		p.conditions(set.Conditions)
	}
	v.writeGateway(&p)
	v.writeAddress(&p)
	v.writeRest(&p)
	return p.String()
}

func (p *printer) conditions(all []Condition) {
	for _, c := range all {
		p.line("", "%s", c)
	}
}

// String returns the explanation as text.
func (v Route) String() string {
	var p printer
	p.line("object", "%s %s: %s", v.Kind, v.Name, v.State)
	if len(v.Hostnames) > 0 {
		p.line("hosts", "%s", strings.Join(v.Hostnames, ", "))
	}
	for n, r := range v.Rules {
		p.line(fmt.Sprintf("rule %d", n), "%s", r)
	}
	for _, parent := range v.Parents {
		p.line("parent", "%s", strings.TrimSuffix(parent.Name+": "+parent.Note, ": "))
		p.conditions(parent.Conditions)
	}
	v.writeGateway(&p)
	if v.Address != "" {
		p.line("address", "%s", v.Address)
	}
	v.writeRest(&p)
	return p.String()
}
