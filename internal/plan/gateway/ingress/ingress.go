// Package ingress makes the intermediate form of Ingresses, with the annotations of the Application Gateway Ingress Controller (AGIC).
// Layer L1.
//
// A problem of one Ingress never changes what another one gets.
package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/route"
)

// Kind is the kind of the objects.
const Kind = "Ingress"

// Reasons of problems; most are those of AGIC's events.
const (
	ReasonAnnotation  = "InvalidAnnotation"
	ReasonPath        = "UnsupportedPath"
	ReasonBackend     = "UnsupportedBackend"
	ReasonService     = "ServiceNotFound"
	ReasonPort        = "PortResolutionError"
	ReasonSecret      = "SecretNotFound"
	ReasonCertificate = "NoPreInstalledSslCertificate"
	ReasonProfile     = "NoPreInstalledSslProfile"
	ReasonRoot        = "NoPreInstalledRootCertificate"
	ReasonRewrite     = "NoPreInstalledRewriteRuleSet"
	ReasonRedirect    = "RedirectWithNoTLS"
	ReasonPrivateIP   = "NoPrivateIP"
	ReasonPublicIP    = "NoPublicIP"
	ReasonProbe       = "ProbeNotUsable"
	ReasonPool        = "TooManyEndpoints"
	ReasonEndpoints   = "EndpointsEmpty"
	ReasonProhibited  = "ProhibitedTarget"
)

// Options are settings of the controller for all Ingresses.
type Options struct {
	// Private serves all Ingresses at the private address.
	Private bool
	// PrefixAsText makes the path /foo of type Prefix match /foobar, too, as AGIC does.
	PrefixAsText bool
	// HTTPWithoutTLS serves Ingresses with ssl-redirect and no certificate over HTTP.
	HTTPWithoutTLS bool
	// PolicyAtListener gives the listener the firewall policy of every Ingress, as AGIC's ATTACH_WAF_POLICY_TO_LISTENER does.
	PolicyAtListener bool
}

// RewriteObjects finds the rewrite rules of an AzureApplicationGatewayRewrite. The error says why there are none.
type RewriteObjects func(namespace, name string) (network.GatewayRewriteSet, error)

// Input is what the Ingresses are read with.
type Input struct {
	Options
	Ingresses []*networking.Ingress
	Objects   *cluster.Objects
	Gateway   live.Gateway
	Rewrites  RewriteObjects
	// Prohibited are the hosts and paths that Ingresses do not get.
	Prohibited prohibited.Targets
}

// Object returns the object of an Ingress.
func Object(i *networking.Ingress) route.Object {
	return route.Object{Kind: Kind, Namespace: i.Namespace, Name: i.Name, Created: i.CreationTimestamp.Time}
}

// Read returns the sites of all Ingresses, the oldest first. An Ingress with a problem that is no warning may have no sites.
func Read(in Input) ([]route.Site, []plan.Problem) {
	ordered := slices.Clone(in.Ingresses)
	slices.SortFunc(ordered, func(a, b *networking.Ingress) int { return route.Compare(Object(a), Object(b)) })
	var sites []route.Site
	var problems []plan.Problem
	for _, i := range ordered {
		r := reader{Input: in, ingress: i, object: Object(i), backends: map[string]*route.Backend{}}
		sites = append(sites, r.read()...)
		problems = append(problems, r.problems...)
	}
	return sites, problems
}

// reader reads one Ingress.
type reader struct {
	Input
	ingress  *networking.Ingress
	object   route.Object
	backends map[string]*route.Backend // by Service and port
	rewrite  route.Rewrite
	dropped  bool
	problems []plan.Problem
}

func (r *reader) warn(reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	p := plan.Problem{Object: r.object.Key(), Reason: reason, Message: message, Warning: true}
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// drop notes why the Ingress is not served at all.
func (r *reader) drop(reason, format string, args ...any) {
	r.dropped = true
	r.problems = append(r.problems, plan.Problem{Object: r.object.Key(), Reason: reason, Message: fmt.Sprintf(format, args...) +
		"; the Ingress is not served"})
}

// value reads an annotation. For a value that is not allowed it returns the default, about which there is a warning.
func value[T any](r *reader, a key.Annotation[T]) T {
	v, _ := a.Read(r.ingress.Annotations)
	return v
}

func (r *reader) read() []route.Site {
	for _, wrong := range key.GatewayWarnings(r.ingress.Annotations) {
		r.warn(ReasonAnnotation, "%v", wrong)
	}
	r.checkAddress()
	r.rewrite = r.rewriteSet()
	var sites []route.Site
	for _, rule := range r.ingress.Spec.Rules {
		sites = append(sites, r.rule(rule)...)
	}
	if len(r.ingress.Spec.Rules) == 0 && r.ingress.Spec.DefaultBackend != nil {
		if routes := r.defaults("", nil, nil); len(routes) > 0 {
			sites = append(sites, r.sites(nil, routes)...)
		}
	}
	if r.dropped {
		return nil
	}
	return sites
}

func (r *reader) private() bool { return r.Private || value(r, key.PrivateIP) }

func (r *reader) checkAddress() {
	if _, ok := r.Gateway.Frontend(r.private()); ok {
		return
	}
	if r.private() {
		r.drop(ReasonPrivateIP, "%s: the application gateway %s has no private address; want one with a private frontend IP configuration",
			key.PrivateIP.Name, r.Gateway.ID.Name())
		return
	}
	r.drop(ReasonPublicIP, "the application gateway %s has no public address; want one with a public frontend IP configuration, "+
		"or %s: \"true\"", r.Gateway.ID.Name(), key.PrivateIP.Name)
}

// rewriteSet returns the rewrite rules of all paths.
func (r *reader) rewriteSet() route.Rewrite {
	installed, object := value(r, key.RewriteSet), value(r, key.RewriteObject)
	switch {
	case installed != "" && object != "":
		r.warn(ReasonAnnotation, "%s: %q and %s: %q exclude each other; neither is used", key.RewriteSet.Name, installed,
			key.RewriteObject.Name, object)
	case installed != "":
		if !live.Has(r.Gateway.Properties.RewriteSets, installed) {
			r.drop(ReasonRewrite, "%s: the application gateway has no rewrite rule set %q", key.RewriteSet.Name, installed)
		}
		return route.Rewrite{Installed: installed}
	case object != "":
		if r.Rewrites == nil {
			r.warn(ReasonRewrite, "%s: no AzureApplicationGatewayRewrite is read here; nothing is rewritten", key.RewriteObject.Name)
			return route.Rewrite{}
		}
		set, err := r.Rewrites(r.ingress.Namespace, object)
		if err != nil {
			r.warn(ReasonRewrite, "%s: %v; nothing is rewritten", key.RewriteObject.Name, err)
			return route.Rewrite{}
		}
		return route.Rewrite{Namespace: r.ingress.Namespace, Name: object, Set: set}
	}
	return route.Rewrite{}
}

// rule returns the sites of a rule: one for the hosts with the same certificate, and those of redirects to them.
func (r *reader) rule(rule networking.IngressRule) []route.Site {
	var hosts []string
	if rule.Host != "" {
		hosts = append([]string{strings.ToLower(rule.Host)}, value(r, key.MoreHosts)...)
		slices.Sort(hosts[1:])
		hosts = slices.Compact(hosts)
	}
	var routes []route.Route
	if rule.HTTP != nil {
		for _, p := range rule.HTTP.Paths {
			if !r.prohibits(hosts, p.Path) {
				routes = append(routes, r.path(rule.Host, p)...)
			}
		}
	}
	if !slices.ContainsFunc(routes, func(x route.Route) bool { return x.Path.Match == route.All }) {
		routes = append(routes, r.defaults(rule.Host, hosts, routes)...)
	}
	if len(routes) == 0 {
		return nil
	}
	return r.sites(hosts, routes)
}

// prohibits reports whether a path of hosts belongs to others. No hosts stand for all hosts.
func (r *reader) prohibits(hosts []string, path string) bool {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, host := range hosts {
		if object, ok := r.Prohibited.Prohibit(host, path); ok {
			r.warn(ReasonProhibited, "%s %s prohibits path %q of host %q; the path is not served", prohibited.Kind, object, path, host)
			return true
		}
	}
	return false
}

// defaults returns the route of spec.defaultBackend. Another object's route for all paths goes before it, if there are other routes.
func (r *reader) defaults(host string, hosts []string, others []route.Route) []route.Route {
	b := r.ingress.Spec.DefaultBackend
	if b == nil || r.prohibits(hosts, "/") {
		return nil
	}
	match := route.All
	if len(others) > 0 {
		match = route.Fallback
	}
	return r.to(host, route.Path{Match: match}, *b)
}

// to returns the route from a path to a backend, none if the backend is not supported.
func (r *reader) to(host string, path route.Path, b networking.IngressBackend) []route.Route {
	if b.Service == nil {
		kind := "nothing"
		if b.Resource != nil {
			kind = b.Resource.Kind + " " + b.Resource.Name
		}
		r.warn(ReasonBackend, "a backend is %s; allowed is a Service", kind)
		return nil
	}
	return []route.Route{{
		Object: r.object, Path: path, Target: route.Target{Backend: r.backend(host, path.Literal, *b.Service)},
		FirewallPolicy: azure.ID(value(r, key.FirewallPolicy)), Rewrite: r.rewrite,
	}}
}

func (r *reader) path(host string, p networking.HTTPIngressPath) []route.Route {
	kind := networking.PathTypeImplementationSpecific
	if p.PathType != nil {
		kind = *p.PathType
	}
	path, err := pathOf(p.Path, kind, r.PrefixAsText)
	if err != nil {
		r.warn(ReasonPath, "path %q of type %s of host %q: %v; the path is not served", p.Path, kind, host, err)
		return nil
	}
	return r.to(host, path, p.Backend)
}

// pathOf returns the paths that a path of an Ingress stands for.
func pathOf(text string, kind networking.PathType, prefixAsText bool) (route.Path, error) {
	literal, starred := strings.CutSuffix(text, "*")
	switch {
	case kind == networking.PathTypeExact && text == "/":
		return route.Path{}, fmt.Errorf("an application gateway cannot match / alone; allowed are longer paths, or the type Prefix")
	case literal == "" || literal == "/":
		return route.Path{Match: route.All}, nil
	case !strings.HasPrefix(literal, "/"):
		return route.Path{}, fmt.Errorf("it does not begin with /")
	case strings.ContainsAny(literal, "*?# \t"):
		return route.Path{}, fmt.Errorf("it has a blank, a ?, a # or a * before its end")
	case kind == networking.PathTypeExact, kind == networking.PathTypeImplementationSpecific && !starred:
		return route.Path{Match: route.Exact, Literal: literal}, nil
	case kind == networking.PathTypeImplementationSpecific, prefixAsText:
		return route.Path{Match: route.Text, Literal: literal}, nil
	}
	return route.Path{Match: route.Element, Literal: strings.TrimRight(literal, "/")}, nil
}

// sites returns the sites of hosts with the same routes.
func (r *reader) sites(hosts []string, routes []route.Route) []route.Site {
	site := route.Site{
		Object: r.object, Private: r.private(), Hosts: hosts, Priority: value(r, key.RulePriority), Routes: routes,
		Port: cmp.Or(value(r, key.FrontendPort), httpPort),
	}
	everything := slices.ContainsFunc(routes, func(x route.Route) bool { return x.Path.Match == route.All })
	if everything || r.PolicyAtListener {
		site.FirewallPolicy = azure.ID(value(r, key.FirewallPolicy))
	}
	secured, plain := r.secured(hosts)
	var sites []route.Site
	for _, s := range secured {
		https := site
		https.Hosts, https.TLS, https.Port = s.hosts, s.tls, cmp.Or(value(r, key.FrontendPort), httpsPort)
		sites = append(sites, https)
		if value(r, key.SSLRedirect) {
			sites = append(sites, r.redirect(https)...)
		}
	}
	if plain == nil {
		return sites
	}
	if value(r, key.SSLRedirect) && !r.HTTPWithoutTLS {
		r.drop(ReasonRedirect, "%s: \"true\": there is no certificate for host %q; want one in spec.tls, or %s", key.SSLRedirect.Name,
			strings.Join(plain, ", "), key.SSLCertificate.Name)
		return sites
	}
	site.Hosts = plain
	if len(hosts) == 0 {
		site.Hosts = nil
	}
	return append(sites, site)
}

// The ports of listeners without an annotation.
const (
	httpPort  = 80
	httpsPort = 443
)

// redirect is the site that redirects from port 80 to an HTTPS site with the same hosts.
func (r *reader) redirect(https route.Site) []route.Site {
	if https.Port == httpPort {
		r.warn(ReasonAnnotation, "%s: %d is the port of HTTPS, so nothing is redirected there as %s asks; allowed is another port",
			key.FrontendPort.Name, https.Port, key.SSLRedirect.Name)
		return nil
	}
	from := https
	from.TLS, from.FirewallPolicy, from.Port = nil, "", httpPort
	from.Routes = []route.Route{{Object: r.object, Path: route.Path{Match: route.All}, Target: route.Target{RedirectTo: https.Port}}}
	return []route.Site{from}
}
