package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/gateway/status"
	"kaz/internal/plan/gateway/gatewayapi"
)

// ExplainGateway explains a Gateway. Now is for the expiry of certificates.
func (f *Facts) ExplainGateway(now time.Time) (APIGateway, error) {
	g := f.gateway
	d := f.decision(now)
	out := APIGateway{Name: gatewayapi.KeyOf(g), Class: string(g.Spec.GatewayClassName)}
	for _, a := range g.Status.Addresses {
		d.Status = append(d.Status, a.Value)
	}
	if !d.takesGateway(g) {
		d.State = Foreign
		out.Common = d.Common
		return out, nil
	}
	d.keys = routesOf(g, d.API)
	d.secrets = secretsOf(g, d.API)
	if err := d.decide(); err != nil {
		return out, err
	}
	d.chain()
	d.Listeners = slices.DeleteFunc(d.Listeners, func(l Listener) bool { return !d.isOf(l, g) })
	want := d.decided.API.Gateways[gatewayapi.KeyOf(g)]
	for _, a := range want.Addresses {
		d.Address = a.Value
	}
	if d.decided.Hold != nil {
		want = status.NotProgrammed(want, g.Generation, gatewayv1.GatewayReasonNoResources, "Nothing is written: "+d.decided.Hold.Error())
	}
	out.Conditions = conditions(g.Status.Conditions, want.Conditions)
	for _, l := range want.Listeners {
		out.Entries = append(out.Entries, entryOf(g, l))
	}
	for _, set := range d.API.SetsOf(gatewayapi.KeyOf(g)) {
		s := d.decided.API.Sets[gatewayapi.KeyOf(set)]
		out.Sets = append(out.Sets, Parent{Name: gatewayapi.KeyOf(set), Conditions: conditions(set.Status.Conditions, s.Conditions)})
	}
	if d.decided.Hold == nil {
		d.refuse(out.Conditions, "")
		for _, e := range out.Entries {
			d.refuse(e.Conditions, "listener "+e.Name+": ")
		}
	}
	d.problems()
	d.state(isTrue(want.Conditions, string(gatewayv1.GatewayConditionProgrammed)))
	d.statusWaits(out.Conditions)
	out.Common = d.Common
	return out, nil
}

// ExplainRoute explains a route. Now is for the expiry of certificates.
func (f *Facts) ExplainRoute(now time.Time) (Route, error) {
	r := f.route
	d := f.decision(now)
	out := Route{Kind: gatewayapi.RouteKind(r), Name: gatewayapi.KeyOf(r), Rules: rulesOf(r)}
	for _, h := range gatewayapi.HostnamesOf(r) {
		out.Hostnames = append(out.Hostnames, string(h))
	}
	if !d.takesRoute(r) {
		d.State = Foreign
		out.Parents = parentsOf(r, nil)
		out.Common = d.Common
		return out, nil
	}
	d.uses = gatewayapi.RouteUses(r).Services
	for _, g := range d.API.Gateways {
		if slices.Contains(d.API.GatewaysOf(r), gatewayapi.KeyOf(g)) {
			d.secrets = append(d.secrets, secretsOf(g, d.API)...)
		}
	}
	if err := d.decide(); err != nil {
		return out, err
	}
	d.chain()
	out.Parents = parentsOf(r, d.decided.API.Routes[gatewayapi.RouteKey(r)])
	for _, p := range out.Parents {
		d.refuse(p.Conditions, p.Name+": ")
	}
	d.problems()
	_, served := d.decided.Served[f.Subject.key()]
	d.state(served)
	for _, p := range out.Parents {
		d.statusWaits(p.Conditions)
	}
	out.Common = d.Common
	return out, nil
}

// takesGateway says why the application gateway does not serve a Gateway.
func (d *decision) takesGateway(g *gatewayv1.Gateway) bool {
	is := func(o *gatewayv1.Gateway) bool { return gatewayapi.KeyOf(o) == gatewayapi.KeyOf(g) }
	if slices.ContainsFunc(d.API.Gateways, is) {
		return true
	}
	ours := gatewayapi.Objects{Classes: d.API.Classes, Gateways: []*gatewayv1.Gateway{g}}.Ours()
	switch {
	case g.DeletionTimestamp != nil:
		d.wait("Kubernetes to delete the Gateway: its deletion has begun, and the gateway no longer serves it")
	case d.elsewhere(g.Namespace):
	case len(ours) == 0:
		d.problem("its class %s is no GatewayClass with the controller %s", g.Spec.GatewayClassName, gatewayapi.Controller)
	case gatewayapi.AddressOf(g) != "":
		d.problem("its address %s is not one of the application gateway %s, which has %s", gatewayapi.AddressOf(g),
			d.Config.Gateway.Name(), orText(strings.Join(slices.DeleteFunc([]string{d.PublicIP, d.PrivateIP},
				func(a string) bool { return a == "" }), " and "), "none"))
	default:
		d.problem("the application gateway %s has none of its ports and hosts free: other Gateways have them", d.Config.Gateway.Name())
	}
	return false
}

// elsewhere says that the controller does not watch a namespace.
func (d *decision) elsewhere(namespace string) bool {
	if len(d.Namespaces) == 0 || slices.Contains(d.Namespaces, namespace) {
		return false
	}
	d.problem("the controller serves the namespaces %s; add %s to --watch-namespaces", strings.Join(d.Namespaces, ", "), namespace)
	return true
}

// takesRoute says why the application gateway does not serve a route.
func (d *decision) takesRoute(r gatewayapi.Route) bool {
	switch {
	case r.GetDeletionTimestamp() != nil:
		d.wait("Kubernetes to delete the %s: its deletion has begun, and the gateway no longer serves it", gatewayapi.RouteKind(r))
	case d.elsewhere(r.GetNamespace()):
	case slices.ContainsFunc(d.API.Gateways, func(g *gatewayv1.Gateway) bool {
		return slices.Contains(d.API.GatewaysOf(r), gatewayapi.KeyOf(g))
	}):
		return true
	default:
		d.problem("none of its parents is a Gateway that the application gateway %s serves", d.Config.Gateway.Name())
	}
	return false
}

// routesOf returns the keys of the routes that refer to a Gateway.
func routesOf(g *gatewayv1.Gateway, among gatewayapi.Objects) (keys []string) {
	for _, r := range among.Routes {
		if slices.Contains(among.GatewaysOf(r), gatewayapi.KeyOf(g)) {
			keys = append(keys, gatewayapi.RouteKey(r))
		}
	}
	return keys
}

// secretsOf returns the Secrets of a Gateway and of its ListenerSets.
func secretsOf(g *gatewayv1.Gateway, among gatewayapi.Objects) []string {
	all := gatewayapi.GatewayUses(g).Secrets
	for _, s := range among.SetsOf(gatewayapi.KeyOf(g)) {
		all = append(all, gatewayapi.SetUses(s).Secrets...)
	}
	return all
}

// isOf reports whether a listener of the application gateway can be that of a Gateway, or of one of its ListenerSets: a route can have
// several Gateways.
func (d *decision) isOf(l Listener, g *gatewayv1.Gateway) bool {
	all := slices.Clone(g.Spec.Listeners)
	for _, s := range d.API.SetsOf(gatewayapi.KeyOf(g)) {
		for _, e := range s.Spec.Listeners {
			all = append(all, gatewayv1.Listener(e))
		}
	}
	return slices.ContainsFunc(all, func(x gatewayv1.Listener) bool {
		if x.Protocol == gatewayv1.TCPProtocolType {
			return x.Port == l.Port
		}
		return x.Port == l.Port && (x.Hostname == nil || *x.Hostname == "" || slices.ContainsFunc(l.Hosts, func(host string) bool {
			suffix, wild := strings.CutPrefix(string(*x.Hostname), "*")
			return strings.EqualFold(host, string(*x.Hostname)) || wild && strings.HasSuffix(host, strings.ToLower(suffix))
		}))
	})
}

// conditions compares wanted conditions with those in the status of an object.
func conditions(have, want []metav1.Condition) (all []Condition) {
	for _, w := range want {
		one := Condition{Type: w.Type, Status: string(w.Status), Reason: w.Reason, Message: w.Message, InStatus: "none"}
		for _, h := range have {
			if h.Type != w.Type {
				continue
			}
			one.InStatus = ""
			if h.Status != w.Status || h.Reason != w.Reason {
				one.InStatus = fmt.Sprintf("%s (%s)", h.Status, h.Reason)
			} else if h.ObservedGeneration != w.ObservedGeneration {
				one.InStatus = fmt.Sprintf("of generation %d", h.ObservedGeneration)
			}
		}
		all = append(all, one)
	}
	return all
}

// entryOf is a listener of a Gateway with its wanted status.
func entryOf(g *gatewayv1.Gateway, want gatewayv1.ListenerStatus) Entry {
	e := Entry{Name: string(want.Name), Routes: want.AttachedRoutes}
	for _, l := range g.Spec.Listeners {
		if l.Name == want.Name {
			e.Protocol, e.Port = string(l.Protocol), l.Port
			if l.Hostname != nil {
				e.Hostname = string(*l.Hostname)
			}
		}
	}
	var have []metav1.Condition
	for _, l := range g.Status.Listeners {
		if l.Name == want.Name {
			have = l.Conditions
		}
	}
	e.Conditions = conditions(have, want.Conditions)
	return e
}

// parentsOf lists the parents of a route with what is decided about them.
func parentsOf(r gatewayapi.Route, want []gatewayv1.RouteParentStatus) (all []Parent) {
	refs, status := gatewayapi.ParentsOf(r)
	for _, ref := range refs {
		p := Parent{Name: parentName(r, ref)}
		i := slices.IndexFunc(want, func(w gatewayv1.RouteParentStatus) bool { return equality.Semantic.DeepEqual(w.ParentRef, ref) })
		if i < 0 {
			p.Note = "not served by this application gateway"
			all = append(all, p)
			continue
		}
		var have []metav1.Condition
		for _, h := range *status {
			if h.ControllerName == gatewayapi.Controller && equality.Semantic.DeepEqual(h.ParentRef, ref) {
				have = h.Conditions
			}
		}
		p.Conditions = conditions(have, want[i].Conditions)
		all = append(all, p)
	}
	return all
}

// parentName is a parent of a route in words: "Gateway shop/gate, listener http, port 80".
func parentName(r gatewayapi.Route, ref gatewayv1.ParentReference) string {
	kind, namespace := gatewayapi.KindGateway, r.GetNamespace()
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	text := kind + " " + namespace + "/" + string(ref.Name)
	if ref.SectionName != nil {
		text += ", listener " + string(*ref.SectionName)
	}
	if ref.Port != nil {
		text += fmt.Sprintf(", port %d", *ref.Port)
	}
	return text
}

// isBad reports whether a condition says that something is not as the object asks. Two of them say so by being true.
func (c Condition) isBad() bool {
	bad := metav1.ConditionFalse
	if c.Type == string(gatewayv1.ListenerConditionConflicted) || c.Type == string(gatewayv1.RouteConditionPartiallyInvalid) {
		bad = metav1.ConditionTrue
	}
	return c.Status == string(bad)
}

// refuse reports the conditions that are bad. What two conditions say for one reason is said once.
func (d *decision) refuse(all []Condition, of string) {
	said := map[string]bool{}
	for _, c := range all {
		if c.isBad() && !said[c.Message] {
			said[c.Message] = true
			d.problem("%s%s is %s (%s): %s", of, c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

func isTrue(all []metav1.Condition, name string) bool {
	return slices.ContainsFunc(all, func(c metav1.Condition) bool { return c.Type == name && c.Status == metav1.ConditionTrue })
}

// statusWaits says that conditions are not yet in the status of an object that is served.
func (d *decision) statusWaits(all []Condition) {
	const wait = "the controller to write the conditions into the status"
	differs := slices.ContainsFunc(all, func(c Condition) bool { return c.InStatus != "" })
	if d.State == Served && differs && !slices.Contains(d.Waits, wait) {
		d.wait(wait)
	}
}
