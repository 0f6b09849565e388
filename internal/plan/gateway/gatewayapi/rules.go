package gatewayapi

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	networking "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/route"
)

// ruleSet is the rules of a route.
type ruleSet struct {
	made       []made
	refused    problem // of the first rule that an application gateway cannot do
	unresolved problem // of the first reference that leads nowhere
	taken      problem // that an older route has what a stream route asks for
	policies   []*policy
}

// made is a route of a rule. A redirect depends on the listener.
type made struct {
	route.Route
	redirect *redirect
}

// rules reads the rules of a route. A rule that an application gateway cannot do is left out.
func (r *reader) rules(h *gatewayv1.HTTPRoute) ruleSet {
	var s ruleSet
	rank := 0
	for i, rule := range h.Spec.Rules {
		one := ruleReader{reader: r, route: h, rule: rule}
		all := one.read()
		s.policies = append(s.policies, one.policies...)
		if one.refused != "" {
			if !s.refused.is() {
				s.refused = because(gatewayv1.RouteReasonUnsupportedValue, "spec.rules[%d].%s", i, one.refused)
			}
			continue
		}
		if one.unresolved.is() && !s.unresolved.is() {
			s.unresolved = one.unresolved
		}
		for _, m := range all {
			m.Rank = rank
			rank++
			s.made = append(s.made, m)
		}
	}
	return s
}

// ruleReader reads one rule.
type ruleReader struct {
	*reader
	route      *gatewayv1.HTTPRoute
	rule       gatewayv1.HTTPRouteRule
	change     route.Change
	redirect   *redirect
	refused    string
	unresolved problem
	policies   []*policy // for its backends
}

func (r *ruleReader) refuse(format string, args ...any) {
	if r.refused == "" {
		r.refused = fmt.Sprintf(format, args...)
	}
}

func (r *ruleReader) read() []made {
	for i, f := range r.rule.Filters {
		r.filter(i, f)
	}
	if r.rule.Retry != nil {
		r.refuse("retry is set; an application gateway does not try a request again")
	}
	if r.rule.SessionPersistence != nil {
		r.refuse("sessionPersistence is set; it is not supported")
	}
	target := r.target()
	matches := r.rule.Matches
	if len(matches) == 0 {
		matches = []gatewayv1.HTTPRouteMatch{{}}
	}
	var all []made
	for i, m := range matches {
		path, when := r.match(i, m)
		if r.redirect != nil && len(when) > 0 {
			r.refuse("matches[%d] looks at more than the path; an application gateway redirects by the path alone", i)
		}
		all = append(all, made{redirect: r.redirect, Route: route.Route{
			Object: objectOf(r.route), Path: path, When: when, Sensitive: r.redirect == nil, Target: target, Change: r.change,
		}})
	}
	return all
}

// match reads the conditions of a match.
func (r *ruleReader) match(i int, m gatewayv1.HTTPRouteMatch) (route.Path, []route.Condition) {
	path := route.Path{Match: route.All}
	if m.Path != nil {
		literal := value(m.Path.Value, "/")
		switch kind := value(m.Path.Type, gatewayv1.PathMatchPathPrefix); kind {
		case gatewayv1.PathMatchExact:
			path = route.Path{Match: route.Exact, Literal: literal}
		case gatewayv1.PathMatchPathPrefix:
			if literal = strings.TrimRight(literal, "/"); literal != "" {
				path = route.Path{Match: route.Element, Literal: literal}
			}
		default:
			r.refuse("matches[%d].path.type is %s; an application gateway has Exact and PathPrefix", i, kind)
		}
		if strings.Contains(literal, "*") {
			r.refuse("matches[%d].path.value is %q; an application gateway has no path with *", i, literal)
		}
	}
	var when []route.Condition
	if m.Method != nil {
		when = append(when, route.Condition{Part: route.Method, Pattern: regexp.QuoteMeta(string(*m.Method))})
	}
	seen := map[string]bool{}
	for j, h := range m.Headers {
		if name := strings.ToLower(string(h.Name)); !seen[name] { // of several conditions for a header the first one counts
			seen[name] = true
			exact := value(h.Type, gatewayv1.HeaderMatchExact) == gatewayv1.HeaderMatchExact
			when = append(when, route.Condition{Part: route.Header, Name: string(h.Name),
				Pattern: r.pattern(fmt.Sprintf("matches[%d].headers[%d]", i, j), h.Value, exact, regexp.QuoteMeta)})
		}
	}
	for j, q := range m.QueryParams {
		exact := value(q.Type, gatewayv1.QueryParamMatchExact) == gatewayv1.QueryParamMatchExact
		when = append(when, route.Condition{Part: route.Query, Name: string(q.Name),
			Pattern: r.pattern(fmt.Sprintf("matches[%d].queryParams[%d]", i, j), q.Value, exact, route.Encoded)})
	}
	return path, when
}

// pattern returns the regular expression for a value.
func (r *ruleReader) pattern(field, text string, exact bool, quote func(string) string) string {
	if exact {
		return quote(text)
	}
	if _, err := regexp.Compile(text); err != nil {
		r.refuse("%s.value is no regular expression: %v", field, err)
	}
	return text
}

// filter reads a filter.
func (r *ruleReader) filter(i int, f gatewayv1.HTTPRouteFilter) {
	field := fmt.Sprintf("filters[%d]", i)
	switch {
	case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
		r.change.Request = r.headers(field+".requestHeaderModifier", *f.RequestHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
		r.change.Response = r.headers(field+".responseHeaderModifier", *f.ResponseHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
		r.rewrite(field+".urlRewrite", *f.URLRewrite)
	case f.Type == gatewayv1.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
		r.redirectTo(field+".requestRedirect", *f.RequestRedirect)
	default:
		r.refuse("%s.type is %s; an application gateway has RequestHeaderModifier, ResponseHeaderModifier, URLRewrite and RequestRedirect",
			field, f.Type)
	}
	if r.redirect != nil && !r.change.IsZero() {
		r.refuse("%s: an application gateway cannot redirect a request and change it", field)
	}
}

// headers reads a change of headers.
func (r *ruleReader) headers(field string, f gatewayv1.HTTPHeaderFilter) route.HeaderChange {
	read := func(kind string, from []gatewayv1.HTTPHeader) (all []route.HeaderValue) {
		for i, h := range from {
			r.literal(fmt.Sprintf("%s.%s[%d].value", field, kind, i), h.Value)
			all = append(all, route.HeaderValue{Name: string(h.Name), Value: h.Value})
		}
		return all
	}
	c := route.HeaderChange{Set: read("set", f.Set), Add: read("add", f.Add), Remove: f.Remove}
	for _, h := range slices.Concat(c.Set, c.Add) {
		r.header(field, h.Name)
	}
	for _, name := range c.Remove {
		r.header(field, name)
	}
	return c
}

// header refuses headers that an application gateway does not change.
func (r *ruleReader) header(field, name string) {
	if slices.Contains([]string{"connection", "upgrade", "x-original-host"}, strings.ToLower(name)) {
		r.refuse("%s has the header %s, which an application gateway does not change", field, name)
	}
}

// literal refuses what an application gateway would take for a variable.
func (r *ruleReader) literal(field, text string) {
	if strings.ContainsAny(text, "{}") {
		r.refuse("%s is %q; an application gateway takes braces for variables", field, text)
	}
}

func (r *ruleReader) rewrite(field string, f gatewayv1.HTTPURLRewriteFilter) {
	r.change.Host = string(value(f.Hostname, ""))
	if f.Path == nil {
		return
	}
	switch f.Path.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		r.change.Full = f.Path.ReplaceFullPath
	case gatewayv1.PrefixMatchHTTPPathModifier:
		r.change.Prefix = f.Path.ReplacePrefixMatch
	}
	for _, path := range []*string{r.change.Full, r.change.Prefix} {
		r.literal(field+".path", value(path, ""))
	}
	if r.change.Full != nil && *r.change.Full == "" {
		root := "/"
		r.change.Full = &root
	}
}

// redirect is a redirect. Its URL depends on the listener.
type redirect struct {
	kind, scheme, host, path string
	port                     int32
}

const usualRedirect = 302

// redirectTypes are Azure's types of redirects.
var redirectTypes = map[int]string{
	301: network.PermanentRedirect, usualRedirect: network.FoundRedirect, 303: network.SeeOtherRedirect, 307: network.TemporaryRedirect,
}

func (r *ruleReader) redirectTo(field string, f gatewayv1.HTTPRequestRedirectFilter) {
	code := value(f.StatusCode, usualRedirect)
	kind, ok := redirectTypes[code]
	if !ok {
		r.refuse("%s.statusCode is %d; an application gateway has 301, 302, 303 and 307", field, code)
	}
	r.redirect = &redirect{kind: kind, scheme: value(f.Scheme, ""), host: string(value(f.Hostname, "")), port: int32(value(f.Port, 0))}
	switch {
	case f.Path == nil:
	case f.Path.Type == gatewayv1.FullPathHTTPPathModifier && f.Path.ReplaceFullPath != nil:
		r.redirect.path = "/" + strings.TrimPrefix(*f.Path.ReplaceFullPath, "/")
	default:
		r.refuse("%s.path.type is %s; an application gateway has ReplaceFullPath", field, f.Path.Type)
	}
	if r.redirect.host == "" && len(r.route.Spec.Hostnames) == 0 {
		r.refuse("%s.hostname is not set, and spec.hostnames is empty; an application gateway redirects to a host that is known", field)
	}
	if slices.ContainsFunc(r.route.Spec.Hostnames, func(h gatewayv1.Hostname) bool { return strings.Contains(string(h), "*") }) &&
		r.redirect.host == "" {
		r.refuse("%s.hostname is not set, and spec.hostnames has a wildcard; an application gateway redirects to a "+
			"host that is known", field)
	}
}

// url is where the redirect leads from a host of a listener.
func (d redirect) url(host string, l *listener) (string, bool) {
	if d.host != "" {
		host = d.host
	}
	if host == "" || strings.Contains(host, "*") {
		return "", false
	}
	const httpPort, httpsPort = 80, 443
	scheme, port := d.scheme, d.port
	if scheme == "" {
		scheme = strings.ToLower(string(l.Protocol))
		if port == 0 {
			port = l.Port
		}
	}
	if port != 0 && (scheme != "http" || port != httpPort) && (scheme != "https" || port != httpsPort) {
		host = fmt.Sprintf("%s:%d", host, port)
	}
	return scheme + "://" + host + d.path, true
}

// target reads the backends of a rule.
func (r *ruleReader) target() route.Target {
	if r.redirect != nil {
		return route.Target{}
	}
	timeout := r.timeout()
	var shares []route.Share
	for i, ref := range r.rule.BackendRefs {
		weight := value(ref.Weight, 1)
		if len(ref.Filters) > 0 {
			r.refuse("backendRefs[%d].filters is set; an application gateway has filters of rules alone", i)
		}
		b, p := r.backend(ref, timeout)
		if p.is() && !r.unresolved.is() {
			r.unresolved = p
		}
		if b != nil && weight > 0 {
			shares = append(shares, route.Share{Backend: b, Weight: weight})
		}
	}
	switch len(shares) {
	case 0:
		return route.Target{Status: route.InternalError}
	case 1:
		return route.Target{Backend: shares[0].Backend}
	}
	for _, s := range shares[1:] {
		if s.Settings.Port != shares[0].Settings.Port {
			r.refuse("backendRefs lead to the ports %d and %d of pods; an application gateway shares requests among backends with one port",
				shares[0].Settings.Port, s.Settings.Port)
		}
	}
	return route.Target{Shares: shares}
}

const (
	defaultTimeout = 30
	mostTimeout    = 86400
)

// timeout returns how long a backend may take, in seconds.
func (r *ruleReader) timeout() int32 {
	if r.rule.Timeouts == nil {
		return defaultTimeout
	}
	least := int32(math.MaxInt32)
	for name, text := range map[string]*gatewayv1.Duration{
		"request": r.rule.Timeouts.Request, "backendRequest": r.rule.Timeouts.BackendRequest,
	} {
		if text == nil {
			continue
		}
		d, err := time.ParseDuration(string(*text))
		switch {
		case err == nil && d == 0:
			least = min(least, mostTimeout)
		case err != nil || d < time.Second || d%time.Second != 0 || d > mostTimeout*time.Second:
			r.refuse("timeouts.%s is %s; an application gateway has whole seconds from 1s to %ds", name, *text, mostTimeout)
		default:
			least = min(least, int32(d/time.Second))
		}
	}
	if least == math.MaxInt32 {
		return defaultTimeout
	}
	return least
}

// backend returns the backend that a reference leads to, nil if it must get no requests.
func (r *ruleReader) backend(ref gatewayv1.HTTPBackendRef, timeout int32) (*route.Backend, problem) {
	port, p := r.service(r.route, ref.BackendRef)
	if p.is() {
		return nil, p
	}
	if p := port.Protocol; p == "kubernetes.io/h2c" {
		return nil, because(gatewayv1.RouteReasonUnsupportedProtocol, "service %s/%s: appProtocol is %s; an application gateway "+
			"speaks HTTP/1.1 to backends", port.Namespace, ref.Name, p)
	}
	b := &route.Backend{
		Namespace: port.Namespace, Service: port.Service, Port: fmt.Sprint(port.Port), Pool: port.Pool,
		Settings: network.GatewaySettings{
			Port: port.Target, Protocol: network.GatewayHTTP, CookieBasedAffinity: network.SwitchedOff, RequestTimeout: timeout,
		},
		Probe: cluster.Healthy(network.GatewayHTTP),
	}
	if timeout != defaultTimeout {
		b.Variant = fmt.Sprintf("timeout-%d", timeout)
	}
	port.Like(&b.Probe)
	all := r.policiesOf(b.Namespace, b.Service, port.Name)
	r.policies = append(r.policies, all...)
	if b = secured(b, all, network.GatewayHTTPS); b != nil && len(all) > 0 {
		b.Probe.Host = b.Settings.ServerName
	}
	return b, problem{}
}

// service resolves a backend of a route to a port of a Service.
func (r *reader) service(from Route, ref gatewayv1.BackendRef) (cluster.Port, problem) {
	if group, kind := value(ref.Group, ""), value(ref.Kind, kindService); group != "" || kind != kindService {
		return cluster.Port{}, because(gatewayv1.RouteReasonInvalidKind, "backend %s is a %s of group %q; allowed is a Service", ref.Name,
			kind, group)
	}
	kind, own := RouteKind(from), from.GetNamespace()
	namespace := string(value(ref.Namespace, gatewayv1.Namespace(own)))
	if !r.permitted(reference{kind, own, kindService, namespace, string(ref.Name)}) {
		return cluster.Port{}, because(gatewayv1.RouteReasonRefNotPermitted,
			"no ReferenceGrant in namespace %s allows %ss of %s to use Service %s", namespace, kind, own, ref.Name)
	}
	port := r.Cluster.Port(namespace, string(ref.Name), networking.ServiceBackendPort{Number: int32(value(ref.Port, 0))})
	if port.Missing != nil {
		return port, because(gatewayv1.RouteReasonBackendNotFound, "%v", port.Missing)
	}
	return port, problem{}
}

// secured gives a backend what its BackendTLSPolicies say, of which the first one counts. A policy that is not accepted leaves no backend:
// nothing must go to it without TLS.
func secured(b *route.Backend, all []*policy, protocol string) *route.Backend {
	if len(all) == 0 {
		return b
	}
	p := all[0]
	if p.accepted.is() {
		return nil
	}
	b.Settings.Protocol, b.Settings.ServerName, b.Authorities = protocol, string(p.Spec.Validation.Hostname), p.roots
	b.Probe.Protocol = protocol
	return b
}
