package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/merge"
)

// decision is the explanation in the making.
type decision struct {
	*Facts
	Common
	children
	secrets []string // with certificates, by namespace/name
	uses    []string // Services, by namespace/name
	now     time.Time
	steps   []azure.Change // what the controller would change, with values, which must not be shown
}

func (f *Facts) decision(now time.Time) decision {
	d := decision{Facts: f, now: now, children: children{keys: []string{f.Subject.key()}, health: f.Health}}
	d.Gateway.ID = string(f.Gateway)
	d.messages()
	return d
}

// decide decides as the controller does after a restart, with all objects that it serves.
func (d *decision) decide() error {
	in := planner.Facts{
		Ingresses: d.Ingresses, Objects: d.Objects, Rewrites: d.Rewrites, API: d.API, Public: d.PublicIP, Private: d.PrivateIP,
		Prohibited: d.Prohibited,
	}.Input(d.Config.Config)
	in.Have = d.Have
	var err error
	if d.decided, err = planner.Desired(in); err != nil {
		return err
	}
	return d.compare()
}

// chain finds what serves the object, from listeners to endpoints.
func (d *decision) chain() {
	d.gateway()
	d.listeners()
	d.backends()
	d.services()
}

// Explain explains an Ingress. Now is for the expiry of certificates.
func (f *Facts) Explain(now time.Time) (Ingress, error) {
	d := f.decision(now)
	out := Ingress{Ingress: f.Subject.Namespace + "/" + f.Subject.Name, Class: f.className()}
	out.asks(f.Ingress)
	d.inStatus()
	if !f.isServed() {
		d.foreign()
		out.Common = d.Common
		return out, nil
	}
	for _, t := range out.TLS {
		d.secrets = append(d.secrets, f.Ingress.Namespace+"/"+t.Secret)
	}
	for _, a := range out.Asks {
		if a.Service != "" {
			d.uses = append(d.uses, f.Ingress.Namespace+"/"+a.Service)
		}
	}
	if err := d.decide(); err != nil {
		return out, err
	}
	d.chain()
	d.problems()
	_, served := d.decided.Served[f.Subject.key()]
	d.state(served)
	out.Common = d.Common
	return out, nil
}

func (d *decision) problem(format string, args ...any) {
	d.Problems = append(d.Problems, fmt.Sprintf(format, args...))
}

func (d *decision) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

func (d *decision) wait(format string, args ...any) {
	d.Waits = append(d.Waits, fmt.Sprintf(format, args...))
}

// asks lists what the Ingress asks for.
func (v *Ingress) asks(i *networking.Ingress) {
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			ask := askFor(p.Backend)
			ask.Host, ask.Path = rule.Host, p.Path
			if p.PathType != nil {
				ask.PathType = string(*p.PathType)
			}
			v.Asks = append(v.Asks, ask)
		}
	}
	if i.Spec.DefaultBackend != nil {
		v.Asks = append(v.Asks, askFor(*i.Spec.DefaultBackend))
	}
	for _, t := range i.Spec.TLS {
		v.TLS = append(v.TLS, TLS{Hosts: t.Hosts, Secret: t.SecretName})
	}
}

// inStatus lists the addresses in the status of the Ingress.
func (d *decision) inStatus() {
	for _, address := range d.Ingress.Status.LoadBalancer.Ingress {
		d.Status = append(d.Status, cmp.Or(address.IP, address.Hostname))
	}
}

func askFor(b networking.IngressBackend) Ask {
	if b.Service == nil {
		return Ask{}
	}
	return Ask{Service: b.Service.Name, Port: cmp.Or(b.Service.Port.Name, fmt.Sprint(b.Service.Port.Number))}
}

// foreign says why the controller does not serve the Ingress.
func (d *decision) foreign() {
	d.State = Foreign
	c := d.Class
	switch {
	case d.Ingress.DeletionTimestamp != nil:
		d.wait("Kubernetes to delete the Ingress: its deletion has begun, and the gateway no longer serves it")
	case len(d.Namespaces) > 0 && !slices.Contains(d.Namespaces, d.Ingress.Namespace):
		d.problem("the controller serves the namespaces %s; add %s to --watch-namespaces", strings.Join(d.Namespaces, ", "),
			d.Ingress.Namespace)
	case d.Ingress.Annotations[ingress.ClassAnnotation] != "":
		d.problem("the annotation %s: %q is not %q; an annotation decides alone", ingress.ClassAnnotation,
			d.Ingress.Annotations[ingress.ClassAnnotation], c.Value)
	case d.Ingress.Spec.IngressClassName == nil:
		d.problem("the Ingress has no class; set spec.ingressClassName: %s, or the controller's --ingress-without-class", c.Name)
	case *d.Ingress.Spec.IngressClassName != c.Name:
		d.problem("spec.ingressClassName: %q is not %q", *d.Ingress.Spec.IngressClassName, c.Name)
	case !slices.ContainsFunc(d.Classes, func(k *networking.IngressClass) bool { return k.Name == c.Name }):
		d.problem("there is no IngressClass %s; make one with the controller %s", c.Name, c.Controller)
	default:
		d.problem("the IngressClass %s has a controller other than %s", c.Name, c.Controller)
	}
}

// compare finds what the controller would change.
func (d *decision) compare() error {
	graph := d.decided.Graph
	if d.decided.Hold != nil && !d.decided.IsEmpty() { // a stopped gateway is compared, too
		if err := graph.Add(d.Node(d.decided.Live, d.decided.Result, d.Identity, merge.Missing{})); err != nil {
			return err
		}
	}
	p, err := plan.Diff(d.Have, graph)
	if err != nil {
		return err
	}
	for _, step := range p.Steps {
		for _, c := range step.Changes {
			d.changes, d.steps = append(d.changes, strings.ToLower(c.Path)), append(d.steps, c)
		}
	}
	return nil
}

// gateway says what the gateway is.
func (d *decision) gateway() {
	p, g := d.decided.Live.Properties, &d.Gateway
	g.Operational, g.Provisioning = p.OperationalState, p.ProvisioningState
	g.Private, g.Public = d.PrivateIP, d.PublicIP
	for _, key := range d.keys {
		if atPrivate, ok := d.decided.Served[key]; ok {
			d.Address = g.Public
			if atPrivate {
				d.Address = g.Private
			}
		}
	}
}

// listeners lists the listeners that lead to the object.
func (d *decision) listeners() {
	for _, l := range d.decided.Gateway.Listeners {
		if !d.needs(l.Name) {
			continue
		}
		p := l.Properties
		one := d.listener(d.part("httpListeners", l.Name), p.Frontend, p.Port, p.Certificate)
		one.Protocol, one.Hosts = p.Protocol, p.HostNames
		for _, r := range d.decided.Gateway.Rules {
			if sameName(r.Properties.Listener.To().Name(), l.Name) {
				one.Rule, one.Priority = d.part("requestRoutingRules", r.Name), r.Properties.Priority
				d.paths(&one, r.Properties)
			}
		}
		d.Listeners = append(d.Listeners, one)
	}
	d.streams()
}

// streams lists the listeners of TCP and TLS that lead to the object.
func (d *decision) streams() {
	for _, l := range d.decided.Gateway.StreamListeners {
		if !d.needs(l.Name) {
			continue
		}
		p := l.Properties
		one := d.listener(d.part("listeners", l.Name), p.Frontend, p.Port, p.Certificate)
		one.Protocol, one.Hosts = p.Protocol, p.HostNames
		for _, r := range d.decided.Gateway.StreamRules {
			if p := r.Properties; sameName(p.Listener.To().Name(), l.Name) {
				one.Rule, one.Priority = d.part("routingRules", r.Name), p.Priority
				one.Paths = []Path{{Pool: nameOf(p.Pool), Settings: nameOf(p.Settings)}}
			}
		}
		d.Listeners = append(d.Listeners, one)
	}
}

// listener returns what listeners of all protocols have.
func (d *decision) listener(part Part, frontend, port, certificate *azure.Reference) Listener {
	return Listener{Part: part, Port: d.portOf(port), Private: d.isPrivate(frontend), Certificate: d.certificate(certificate)}
}

func nameOf(r *azure.Reference) string { return r.To().Name() }

// backends lists the pools of the object's paths with their settings, probes and servers.
func (d *decision) backends() {
	type pair struct{ pool, settings string }
	seen := map[pair]bool{}
	for _, l := range d.Listeners {
		for _, p := range l.Paths {
			at := pair{p.Pool, p.Settings}
			if p.Pool == "" || seen[at] {
				continue
			}
			seen[at] = true
			d.Backends = append(d.Backends, d.backend(p.Pool, p.Settings))
		}
	}
}

// services lists the endpoints of the Services that the object refers to.
func (d *decision) services() {
	var seen []string
	for _, key := range d.uses {
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		namespace, name, _ := strings.Cut(key, "/")
		d.Services = append(d.Services, Service{Name: key, Endpoints: endpointsOf(d.Slices, namespace, name)})
	}
}

// problems lists what the planner and Azure say about the object.
func (d *decision) problems() {
	for _, p := range d.decided.Problems {
		if !slices.Contains(d.keys, p.Object) {
			continue
		}
		if p.Warning {
			d.warn("%s: %s", p.Reason, p.Message)
		} else {
			d.problem("%s: %s", p.Reason, p.Message)
		}
	}
	d.expiry()
	d.unhealthy()
	if d.HealthNote != "" {
		d.warn("the health of the backends is not known: %s", d.HealthNote)
	}
	if f := d.decided.Live.Properties.ProvisioningState; strings.EqualFold(f, "Failed") {
		d.problem("the last write of the gateway failed (provisioningState Failed); the controller writes it again when something changes")
	}
}

// unhealthy reports the pools without a healthy backend, and the backends that are not healthy.
func (d *decision) unhealthy() {
	for _, b := range d.Backends {
		healthy, unhealthy := 0, 0
		log := ""
		for _, s := range b.Servers {
			switch {
			case isHealthy(s.Health):
				healthy++
			case s.Health != "" && !sameName(s.Health, "Unknown"):
				unhealthy, log = unhealthy+1, cmp.Or(log, s.Log)
			}
		}
		said := ""
		if log != "" {
			said = ": " + log
		}
		switch {
		case unhealthy > 0 && healthy == 0:
			d.problem("no backend of pool %s is healthy, so requests get 502; the probe %s%s", b.Pool.Name, b.Asks, said)
		case unhealthy > 0:
			d.warn("%d of %d backends of pool %s are not healthy; the probe %s%s", unhealthy, len(b.Servers), b.Pool.Name, b.Asks, said)
		case len(b.Servers) == 0 && b.Probe != nil: // without a probe it is none of a Service
			d.wait("a ready endpoint for pool %s: it is empty, so requests get 502", b.Pool.Name)
		}
	}
}

// isHealthy reports whether the health of a backend is good: the official model and Azure have different words.
func isHealthy(state string) bool { return sameName(state, "Healthy") || sameName(state, "Up") }

// state says whether the object is served, and what it waits for.
func (d *decision) state(served bool) {
	d.updating()
	n := d.differing()
	refusal, refused := refusalAmong(d.Events)
	switch {
	case d.decided.Hold != nil:
		d.State = Held
		d.held()
	case !served:
		d.State = Unserved
		d.unserved()
	case n > 0 && refused:
		d.State = Refused
		d.problem("Azure refused the gateway with this %s at %s: correct what the last message names; the controller tries again",
			d.Subject.Kind, when(refusal).UTC().Format(time.RFC3339))
	case n > 0:
		d.State = Pending
		d.wait("the controller to write the gateway: %s of the %s", counted(n, "part"), d.Subject.Kind)
	default:
		d.State = Served
		if d.Address != "" && !gatewayapi.IsRoute(d.Subject.Kind) && !slices.Contains(d.Status, d.Address) {
			d.wait("the controller to write the address %s into the status", d.Address)
		}
	}
}

// unserved makes sure that an object without a listener has a problem.
func (d *decision) unserved() {
	switch {
	case len(d.Problems) > 0:
	case len(d.Warnings) > 0:
		d.problem("no listener serves the %s; the warnings say why", d.Subject.Kind)
	case gatewayapi.IsRoute(d.Subject.Kind):
		d.problem("no listener of its parents can be served: kaz explain gateway NAMESPACE/NAME says why")
	case d.Subject.Kind == gatewayapi.KindGateway:
		d.problem("no listener of the Gateway can be served")
	default:
		d.problem("no listener serves the Ingress: it has neither a path with a Service nor a default backend")
	}
}

// held says why nothing is written, and what to do.
func (d *decision) held() {
	fix := ""
	if d.decided.Live.IsStopped() {
		fix = "; start the gateway"
	}
	d.problem("the controller writes nothing: %v%s", d.decided.Hold, fix)
}

// reasonRefused is the reason of the controller's events about refusals, which is AGIC's.
const reasonRefused = "FailedApplyingAppGwConfig"

// refusalAmong is the newest event about a refusal of Azure.
func refusalAmong(events []corev1.Event) (newest corev1.Event, ok bool) {
	for _, e := range events {
		if e.Reason == reasonRefused && (!ok || when(e).After(when(newest))) {
			newest, ok = e, true
		}
	}
	return newest, ok
}

// updating says that a write of the gateway is under way.
func (d *decision) updating() {
	if strings.EqualFold(d.decided.Live.Properties.ProvisioningState, "Updating") {
		d.wait("Azure to finish a write of the gateway (provisioningState Updating)")
	}
}

// differing counts the parts of the object that the gateway lacks or has otherwise.
func (d *decision) differing() int {
	names := map[string]bool{}
	note := func(p *Part) {
		if p != nil && p.State != UpToDate && p.Name != "" {
			names[p.Name] = true
		}
	}
	for _, l := range d.Listeners {
		note(&l.Part)
		note(&l.Rule)
		note(l.PathMap)
		if l.Certificate != nil {
			note(&l.Certificate.Part)
		}
	}
	for _, b := range d.Backends {
		note(&b.Pool)
		note(&b.Settings)
		note(b.Probe)
	}
	return len(names)
}

// messages adds the newest warning of each reason.
func (d *decision) messages() {
	last := map[string]corev1.Event{}
	for _, e := range d.Events {
		if before, ok := last[e.Reason]; !ok || when(e).After(when(before)) {
			last[e.Reason] = e
		}
	}
	var all []corev1.Event
	for _, e := range last {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b corev1.Event) int {
		return cmp.Or(when(a).Compare(when(b)), strings.Compare(a.Reason, b.Reason))
	})
	for _, e := range all {
		d.Said = append(d.Said, fmt.Sprintf("%s %s: %s", when(e).UTC().Format(time.RFC3339), e.Reason, e.Message))
	}
}

// when is the time of an event: series have it elsewhere.
func when(e corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
