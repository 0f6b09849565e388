package gateway

import (
	"maps"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/gateway/gatewayapi"
)

// assignment says which application gateway serves which Gateway.
type assignment struct {
	applications gatewayapi.Applications
	// waiting are the Gateways with an address while the addresses of some application gateway are not known yet: it could be theirs.
	waiting map[string]bool
}

// at returns the application gateway of a Gateway, "" for none.
func (a assignment) at(g *gatewayv1.Gateway) azure.ID { return a.applications[gatewayapi.KeyOf(g)] }

// concerns reports whether a Gateway is at an application gateway.
func (a assignment) concerns(gateways []string, at azure.ID) bool {
	return slices.ContainsFunc(gateways, func(key string) bool { return a.applications[key] == at })
}

func (c *Controller) assigned() assignment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.assignment
}

// assign chooses the application gateway of each Gateway anew. It marks the Gateways that come or go, with their routes.
func (c *Controller) assign() {
	c.assigning.Lock() // what is known only grows from one choice to the next
	defer c.assigning.Unlock()
	o := c.kube.api.objects()
	now := assignment{waiting: map[string]bool{}}
	addresses, complete := c.knownAddresses()
	if !complete {
		o.Gateways = slices.DeleteFunc(slices.Clone(o.Gateways), func(g *gatewayv1.Gateway) bool {
			waits := !isAmong(addresses, gatewayapi.AddressOf(g))
			now.waiting[gatewayapi.KeyOf(g)] = waits
			return waits
		})
	}
	maps.DeleteFunc(now.waiting, func(_ string, waits bool) bool { return !waits })
	now.applications = gatewayapi.Assign(o, c.config.Applications, addresses)
	c.mu.Lock()
	was := c.assignment
	c.assignment = now
	c.mu.Unlock()
	for _, w := range c.workers {
		c.markMoved(w, was, now)
	}
	c.statuses.Mark(unassigned, reasons{})
}

// markMoved marks the Gateways that come to an application gateway or leave it, with their routes.
func (c *Controller) markMoved(w *worker, was, now assignment) {
	moved := map[string]bool{}
	for _, all := range []gatewayapi.Applications{was.applications, now.applications} {
		for key, at := range all {
			if at != w.id || was.applications[key] == now.applications[key] {
				continue
			}
			moved[key] = true
			object := gatewayapi.KindGateway + "/" + key
			if g, ok := c.kube.object(object).(*gatewayv1.Gateway); ok && c.kube.api.isOurs(g) { // it goes elsewhere, or comes
				w.empty.left(object, now.applications[key] != w.id)
			}
			w.mark(object)
		}
	}
	if len(moved) == 0 {
		return
	}
	for _, r := range c.kube.routes() {
		if slices.ContainsFunc(c.kube.api.gatewaysOf(r), func(key string) bool { return moved[key] }) {
			w.mark(keyOf(r))
		}
	}
}

// isAmong reports whether application gateways have an address; "" is any.
func isAmong(addresses map[azure.ID][]string, address string) bool {
	if address == "" {
		return true
	}
	for _, some := range addresses {
		if slices.Contains(some, address) {
			return true
		}
	}
	return false
}

// knownAddresses returns the addresses of the application gateways, and whether those of all are known.
func (c *Controller) knownAddresses() (map[azure.ID][]string, bool) {
	all, complete := map[azure.ID][]string{}, true
	for _, w := range c.workers {
		a := w.addresses()
		complete = complete && a.known
		for _, text := range []string{a.public, a.private} {
			if text != "" {
				all[w.id] = append(all[w.id], text)
			}
		}
	}
	return all, complete
}

// markGateway has a Gateway committed at its application gateway. Without one, its status says so.
func (c *Controller) markGateway(g *gatewayv1.Gateway) {
	at := c.assigned().at(g)
	for _, w := range c.workers {
		if w.id == at || w.hasAccepted(keyOf(g)) {
			w.mark(keyOf(g))
		}
	}
	if at == "" {
		c.statuses.Mark(unassigned, reasons{})
	}
}

// markRoute has a route committed at each application gateway that has one of its Gateways, or had one.
func (c *Controller) markRoute(r gatewayapi.Route) {
	a, gateways := c.assigned(), c.kube.api.gatewaysOf(r)
	for _, w := range c.workers {
		if a.concerns(gateways, w.id) || w.hasAccepted(keyOf(r)) {
			w.mark(keyOf(r))
		}
	}
	if a.concerns(gateways, nowhere) {
		c.statuses.Mark(unassigned, reasons{})
	}
}
