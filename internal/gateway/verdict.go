package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/gateway/status"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/live"
)

// unassigned is the key that stands for the statuses of the Gateways without an application gateway. It is no key of an object.
const unassigned = "unassigned"

// nowhere is the application gateway of these Gateways: there is none with this id.
const nowhere azure.ID = ""

// judgedAt notes what an application gateway has for an object, nil for nothing any more.
func (c *Controller) judgedAt(at azure.ID, key string, v *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == nil {
		delete(c.verdicts[key], at)
		if len(c.verdicts[key]) == 0 {
			delete(c.verdicts, key)
		}
		return
	}
	if c.verdicts[key] == nil {
		c.verdicts[key] = map[azure.ID]verdict{}
	}
	c.verdicts[key][at] = *v
}

// verdictsOf returns what is decided about an object, in the order of the application gateways.
func (c *Controller) verdictsOf(key string) (all []verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(c.verdicts[key])) {
		all = append(all, c.verdicts[key][at])
	}
	return all
}

// owner tells the controller's parents in the status of an object from those of others. Nothing is decided about a parent if its
// application gateway has not decided about the object.
func (c *Controller) owner(key, namespace string) status.Owner {
	c.mu.Lock()
	a, decided := c.assignment, maps.Clone(c.verdicts[key])
	c.mu.Unlock()
	return status.Owner{Controller: gatewayapi.Controller, Waits: func(p gatewayv1.ParentReference) bool {
		in := namespace
		if p.Namespace != nil {
			in = string(*p.Namespace)
		}
		key := keyFor(gatewayapi.KindGateway, in, string(p.Name))
		if p.Kind != nil && *p.Kind == gatewayapi.KindSet {
			s, there := c.kube.object(keyFor(gatewayapi.KindSet, in, string(p.Name))).(*gatewayv1.ListenerSet)
			if !there {
				return false
			}
			key = gatewayapi.KindGateway + "/" + gatewayapi.ParentOf(s)
		}
		g, ok := c.kube.object(key).(*gatewayv1.Gateway)
		if !ok || !c.kube.api.isOurs(g) {
			return false
		}
		_, known := decided[a.at(g)]
		return !known || a.waiting[gatewayapi.KeyOf(g)]
	}}
}

// decide notes what the application gateway has for an object, and has its status written. Of an object that Azure refuses, the refusal
// counts.
func (w *worker) decide(key string, v verdict, refusal bool) {
	w.state.Lock()
	if refusal == (w.state.refused[key] != nil) {
		w.judgedAt(w.id, key, &v)
	}
	w.state.Unlock()
	w.statuses.Mark(key, reasons{})
}

// publish reports the problems of a decision that was written, and has the statuses of its objects written.
func (w *worker) publish(ctx context.Context, ch choice, d planner.Decision) {
	w.readAddresses(ctx, d.Live)
	problems := map[string][]plan.Problem{}
	for _, p := range d.Problems {
		problems[p.Object] = append(problems[p.Object], p)
	}
	for _, key := range slices.Sorted(maps.Keys(ch.chosen)) {
		w.report(key, problems[key])
	}
	w.publishIngresses(ch, d)
	if w.kube.api != nil {
		w.publishSets(d.API, nil)
	}
	w.publishAPI(ch, d.API, func(g *gatewayv1.Gateway, s gatewayv1.GatewayStatus) gatewayv1.GatewayStatus {
		return status.Programmed(s, g.Generation)
	})
	for _, key := range ch.batch { // what left
		if _, ok := ch.chosen[key]; !ok && key != everything {
			w.forget(key)
		}
	}
}

// forget notes that an object has left the application gateway. If it is still there, its status says so.
func (w *worker) forget(key string) {
	w.state.Lock()
	delete(w.state.events, key)
	w.state.Unlock()
	o := w.kube.object(key)
	_, ingress := o.(*networking.Ingress)
	switch {
	case ingress:
		w.want(key, "", false)
	case o != nil && isRoute(key):
		w.judgedAt(w.id, key, &verdict{})
		w.statuses.Mark(key, reasons{})
	default:
		w.judgedAt(w.id, key, nil)
	}
}

func (w *worker) publishIngresses(ch choice, d planner.Decision) {
	if !w.ingresses {
		return
	}
	a := w.addresses()
	served, all := 0, only[*networking.Ingress](ch.chosen)
	for _, i := range all {
		address := ""
		private, ok := d.Served[keyOf(i)]
		if ok {
			served++
			if address = a.public; private {
				address = a.private
			}
		}
		w.want(keyOf(i), address, ok)
	}
	refused := 0
	w.state.Lock()
	for key := range w.state.refused {
		if kind, _, _ := split(key); kind == ingress.Kind {
			refused++
		}
	}
	w.state.Unlock()
	w.config.Metrics.Objects(served, len(all)-served, refused)
}

// publishAPI has the statuses of Gateways, routes and policies written: what is decided about them, and whether that is programmed.
func (w *worker) publishAPI(ch choice, r gatewayapi.Result, as func(*gatewayv1.Gateway, gatewayv1.GatewayStatus) gatewayv1.GatewayStatus) {
	if w.kube.api == nil {
		return
	}
	for _, g := range only[*gatewayv1.Gateway](ch.chosen) {
		w.decide(keyOf(g), verdict{gateway: as(g, r.Gateways[gatewayapi.KeyOf(g)])}, false)
	}
	for _, route := range routesOf(ch.chosen) {
		w.decide(keyOf(route), verdict{parents: r.Routes[gatewayapi.RouteKey(route)]}, false)
	}
	for _, p := range w.kube.api.objects().TLSPolicies {
		w.decide(keyOf(p), verdict{ancestors: r.Policies[gatewayapi.KeyOf(p)]}, false)
	}
}

// publishPending has the statuses of new Gateways written before the application gateway is.
func (w *worker) publishPending(ch choice, d planner.Decision) {
	for _, g := range only[*gatewayv1.Gateway](ch.chosen) {
		if slices.Contains(ch.batch, keyOf(g)) && status.IsUnknown(g.Status) {
			w.decide(keyOf(g), verdict{gateway: status.NotProgrammed(d.API.Gateways[gatewayapi.KeyOf(g)], g.Generation,
				gatewayv1.GatewayReasonPending, "The application gateway is being written")}, false)
		}
	}
}

// publishHeld has the statuses written of what is decided and not written.
func (w *worker) publishHeld(ch choice, d planner.Decision) {
	if len(ch.current) == 0 {
		return // it is not certain that there is nothing
	}
	if w.kube.api != nil {
		w.publishSets(d.API, d.Hold)
	}
	w.publishAPI(ch, d.API, func(g *gatewayv1.Gateway, s gatewayv1.GatewayStatus) gatewayv1.GatewayStatus {
		return status.NotProgrammed(s, g.Generation, gatewayv1.GatewayReasonNoResources, "Nothing is written: "+d.Hold.Error())
	})
}

// publishRefusal has the status written of an object that Azure refuses.
func (w *worker) publishRefusal(key string, err error) {
	o := w.kube.object(key)
	chosen, _ := w.current()
	if chosen[key] == nil {
		return // it has left meanwhile
	}
	w.state.Lock()
	g := w.state.live
	w.state.Unlock()
	r := w.judge(w.input(chosen, w.kube.objects()), g)
	message := "Azure refuses the application gateway with this object: " + short(err)
	switch o := o.(type) {
	case *gatewayv1.Gateway:
		s := status.NotProgrammed(r.Gateways[gatewayapi.KeyOf(o)], o.Generation, gatewayv1.GatewayReasonInvalid, message)
		w.decide(key, verdict{gateway: s}, true)
	case gatewayapi.Route:
		if isRoute(key) {
			w.decide(key, verdict{parents: status.Refused(r.Routes[key], o.GetGeneration(), message)}, true)
		}
	}
}

// mostMessage is how much of an error of Azure a condition has, in bytes.
const mostMessage = 2048

func short(err error) string {
	text := strings.ToValidUTF8(err.Error(), "")
	if len(text) > mostMessage {
		text = strings.ToValidUTF8(text[:mostMessage], "") + "..."
	}
	return text
}

// judge returns the statuses of objects at an application gateway that is not written.
func (w *worker) judge(in planner.Input, g live.Gateway) gatewayapi.Result {
	if w.kube.api == nil {
		return gatewayapi.Result{}
	}
	g.ID = w.id
	if g.Mine == nil {
		g.Mine = func(string) bool { return false }
	}
	return gatewayapi.Read(gatewayapi.Input{
		Objects: in.API, Applications: in.Applications, Cluster: in.Objects, Gateway: g, Public: in.Public, Private: in.Private,
	})
}

// judgeUnassigned has the statuses written of the Gateways without an application gateway, and of their routes.
func (c *Controller) judgeUnassigned() {
	a := c.assigned()
	in := gatewayapi.Input{
		Objects: c.kube.api.objects(), Applications: gatewayapi.Applications{}, Cluster: c.kube.objects(),
		Gateway: live.Gateway{Mine: func(string) bool { return false }},
	}
	in.Gateway.ID = "none"
	in.Gateways = slices.DeleteFunc(in.Ours(), func(g *gatewayv1.Gateway) bool {
		return a.at(g) != nowhere || a.waiting[gatewayapi.KeyOf(g)]
	})
	for _, g := range in.Gateways {
		in.Applications[gatewayapi.KeyOf(g)] = in.Gateway.ID
	}
	r := gatewayapi.Read(in)
	now := map[string]verdict{}
	for _, g := range in.Gateways {
		s := status.NotProgrammed(r.Gateways[gatewayapi.KeyOf(g)], g.Generation, gatewayv1.GatewayReasonNoResources, fmt.Sprintf(
			"None of the %d application gateways has the ports and hosts of this Gateway free: change them, or give the controller a "+
				"further application gateway with APPGW_RESOURCE_IDS", len(c.workers)))
		s.Addresses = []gatewayv1.GatewayStatusAddress{}
		now[keyOf(g)] = verdict{gateway: s}
	}
	for _, route := range in.Routes {
		parents, ok := r.Routes[gatewayapi.RouteKey(route)]
		if ok {
			now[keyOf(route)] = verdict{parents: parents}
		}
	}
	for _, set := range in.ListenerSets {
		if want, ok := r.Sets[gatewayapi.KeyOf(set)]; ok {
			now[keyOf(set)] = verdict{set: status.SetNotProgrammed(want, set.Generation, gatewayv1.ListenerSetReasonPending,
				"None of the application gateways has the ports and hosts of the Gateway free")}
		}
	}
	c.mu.Lock()
	for key, at := range c.verdicts {
		_, was := at[nowhere]
		_, is := now[key]
		switch {
		case is || !was:
		case isRoute(key):
			now[key] = verdict{} // nothing any more
		default:
			delete(at, nowhere)
		}
	}
	c.mu.Unlock()
	for key, v := range now {
		c.judgedAt(nowhere, key, &v)
		c.statuses.Mark(key, reasons{})
	}
}
