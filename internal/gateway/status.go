package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/controller"
	"kaz/internal/gateway/status"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
)

// Reasons of events about the status; they are AGIC's.
const (
	reasonStatus = "UnableToUpdateIngressStatus"
	reasonReset  = "ResetIngressStatus"
)

// verdict is what the status of an object shall say of an application gateway.
type verdict struct {
	served    bool   // an Ingress
	address   string // of an Ingress, "" for none
	gateway   gatewayv1.GatewayStatus
	parents   []gatewayv1.RouteParentStatus
	ancestors []gatewayv1.PolicyAncestorStatus
	set       gatewayv1.ListenerSetStatus
}

// statusWriter writes the statuses of objects.
type statusWriter struct{ *Controller }

// run writes statuses until the queue ends.
func (c statusWriter) run(ctx context.Context) {
	for {
		key, down := c.statuses.Get()
		if down {
			return
		}
		c.statuses.Take(key)
		c.updateStatus(ctx, key)
		c.statuses.Done(key)
	}
}

func (c statusWriter) updateStatus(ctx context.Context, key string) {
	if key == unassigned {
		c.judgeUnassigned()
		return
	}
	o := c.kube.object(key)
	if o == nil || ctx.Err() != nil {
		return
	}
	var err error
	switch o := o.(type) {
	case *networking.Ingress:
		err = c.updateIngress(ctx, o)
	case *gatewayv1.Gateway:
		err = c.updateGateway(ctx, o)
	case *gatewayv1.BackendTLSPolicy:
		err = c.updatePolicy(ctx, o)
	case *gatewayv1.ListenerSet:
		err = c.updateSet(ctx, o)
	case *gatewayv1.GatewayClass:
		err = c.config.updateClass(ctx, o)
	default:
		err = c.updateRoute(ctx, o)
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), ctx.Err() != nil:
	case apierrors.IsConflict(err): // a newer object is on its way
		c.statuses.MarkAfter(key, reasons{}, controller.Delay(nil, 1))
	default:
		c.config.Events.Event(o, corev1.EventTypeWarning, reasonStatus, err.Error())
		c.statuses.MarkAfter(key, reasons{}, controller.Delay(err, 1))
	}
}

// want has the address that an application gateway gives an Ingress written to its status, "" for none.
func (w *worker) want(key, address string, served bool) {
	w.judgedAt(w.id, key, &verdict{address: address, served: served})
	if i, ok := w.kube.object(key).(*networking.Ingress); ok && !w.hasStatus(i, address) {
		w.statuses.Mark(key, reasons{})
	}
}

// hasStatus reports whether the status of an Ingress needs no change. An address that is not the gateway's is another controller's.
func (w *worker) hasStatus(i *networking.Ingress, address string) bool {
	have := i.Status.LoadBalancer.Ingress
	if address != "" {
		return len(have) == 1 && have[0].IP == address
	}
	a := w.addresses()
	return !slices.ContainsFunc(have, func(x networking.IngressLoadBalancerIngress) bool {
		return x.IP != "" && (x.IP == a.public || x.IP == a.private)
	})
}

func (c statusWriter) updateIngress(ctx context.Context, i *networking.Ingress) error {
	c.mu.Lock()
	address := c.verdicts[keyFor(ingress.Kind, i.Namespace, i.Name)][c.workers[0].id].address
	c.mu.Unlock()
	i = i.DeepCopy()
	i.Status.LoadBalancer.Ingress = nil
	if address != "" {
		i.Status.LoadBalancer.Ingress = []networking.IngressLoadBalancerIngress{{IP: address}}
	}
	_, err := c.config.Kube.NetworkingV1().Ingresses(i.Namespace).UpdateStatus(ctx, i, metav1.UpdateOptions{})
	if err == nil && address == "" {
		c.config.Events.Event(i, corev1.EventTypeNormal, reasonReset, "The application gateway does not serve the Ingress")
	}
	return err
}

func (c Config) updateClass(ctx context.Context, class *gatewayv1.GatewayClass) error {
	if class.Spec.ControllerName != gatewayapi.Controller {
		return nil
	}
	now := class.DeepCopy()
	now.Status = status.Class(class.Status, gatewayapi.ClassStatus(class), time.Now())
	if equality.Semantic.DeepEqual(class.Status, now.Status) {
		return nil
	}
	_, err := c.GatewayAPI.GatewayV1().GatewayClasses().UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

func (c statusWriter) updateGateway(ctx context.Context, g *gatewayv1.Gateway) error {
	want, ok := c.gatewayVerdict(g)
	if !ok {
		return nil
	}
	now := g.DeepCopy()
	now.Status = status.Gateway(g.Status, want, time.Now())
	if equality.Semantic.DeepEqual(g.Status, now.Status) {
		return nil
	}
	_, err := c.config.GatewayAPI.GatewayV1().Gateways(g.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

// gatewayVerdict returns what is decided about a Gateway, and false for nothing.
func (c statusWriter) gatewayVerdict(g *gatewayv1.Gateway) (gatewayv1.GatewayStatus, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.verdicts[keyOf(g)][c.assignment.at(g)]
	return v.gateway, ok && c.kube.api.isOurs(g)
}

func (c statusWriter) updateRoute(ctx context.Context, r gatewayapi.Route) error {
	var want []gatewayv1.RouteParentStatus
	for _, v := range c.verdictsOf(keyOf(r)) {
		want = append(want, v.parents...)
	}
	now, is := r.DeepCopyObject().(gatewayapi.Route)
	if !is {
		return fmt.Errorf("the copy of %s is no route", keyOf(r))
	}
	_, was := gatewayapi.ParentsOf(r)
	_, parents := gatewayapi.ParentsOf(now)
	*parents = c.owner(keyOf(r), r.GetNamespace()).Parents(*parents, want, time.Now())
	if equality.Semantic.DeepEqual(*was, *parents) {
		return nil
	}
	return c.config.updateRouteStatus(ctx, now)
}

func (c Config) updateRouteStatus(ctx context.Context, r gatewayapi.Route) (err error) {
	v1, namespace := c.GatewayAPI.GatewayV1(), r.GetNamespace()
	switch r := r.(type) {
	case *gatewayv1.HTTPRoute:
		_, err = v1.HTTPRoutes(namespace).UpdateStatus(ctx, r, metav1.UpdateOptions{})
	case *gatewayv1.TCPRoute:
		_, err = v1.TCPRoutes(namespace).UpdateStatus(ctx, r, metav1.UpdateOptions{})
	case *gatewayv1.TLSRoute:
		_, err = v1.TLSRoutes(namespace).UpdateStatus(ctx, r, metav1.UpdateOptions{})
	}
	return err
}

func (c statusWriter) updatePolicy(ctx context.Context, p *gatewayv1.BackendTLSPolicy) error {
	var want []gatewayv1.PolicyAncestorStatus
	for _, v := range c.verdictsOf(keyOf(p)) {
		want = append(want, v.ancestors...)
	}
	now := p.DeepCopy()
	now.Status.Ancestors = c.owner(keyOf(p), p.Namespace).Ancestors(now.Status.Ancestors, want, time.Now())
	if equality.Semantic.DeepEqual(p.Status, now.Status) {
		return nil
	}
	_, err := c.config.GatewayAPI.GatewayV1().BackendTLSPolicies(p.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}
