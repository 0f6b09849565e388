package gateway

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/gateway/status"
	"kaz/internal/plan/gateway/gatewayapi"
)

// setHandler marks the Gateway of a ListenerSet that changes, and the routes of the ListenerSet. A ListenerSet is no object of a commit: it
// counts as it is, like a policy.
func (c *Controller) setHandler() cache.ResourceEventHandler {
	same := func(a, b *gatewayv1.ListenerSet) bool {
		return equality.Semantic.DeepEqual(a.Spec, b.Spec) && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
	}
	return watcher(same, func(s *gatewayv1.ListenerSet) {
		c.markSet(s)
		c.markRoutes(func(r gatewayapi.Route) bool {
			return slices.Contains(gatewayapi.RouteUses(r).Sets, gatewayapi.KeyOf(s))
		})
		if c.kube.object(keyOf(s)) != nil {
			c.statuses.Mark(keyOf(s), reasons{})
			return
		}
		c.mu.Lock()
		delete(c.verdicts, keyOf(s))
		c.mu.Unlock()
	})
}

// markSet marks the Gateway of a ListenerSet.
func (c *Controller) markSet(s *gatewayv1.ListenerSet) {
	c.markGateways(func(g *gatewayv1.Gateway) bool { return gatewayapi.KeyOf(g) == gatewayapi.ParentOf(s) })
}

// markSets marks the Gateways of ListenerSets.
func (c *Controller) markSets(uses func(*gatewayv1.ListenerSet) bool) {
	if c.kube.api == nil {
		return
	}
	for _, s := range c.kube.api.sets() {
		if uses(s) {
			c.markSet(s)
		}
	}
}

// publishSets has the statuses of ListenerSets written. held says why nothing is written to Azure, nil if it is.
func (w *worker) publishSets(r gatewayapi.Result, held error) {
	for _, s := range w.kube.api.sets() {
		want, ok := r.Sets[gatewayapi.KeyOf(s)]
		switch {
		case !ok:
			w.judgedAt(w.id, keyOf(s), nil)
		case held != nil:
			message := "Nothing is written: " + held.Error()
			want = status.SetNotProgrammed(want, s.Generation, gatewayv1.ListenerSetReasonPending, message)
			w.judgedAt(w.id, keyOf(s), &verdict{set: want})
		default:
			w.judgedAt(w.id, keyOf(s), &verdict{set: want})
		}
		w.statuses.Mark(keyOf(s), reasons{})
	}
}

// updateSet writes the status of a ListenerSet as the application gateway of its Gateway has it. Without a verdict it stays: the parent is
// not the controller's, or is not decided about yet.
func (c statusWriter) updateSet(ctx context.Context, s *gatewayv1.ListenerSet) error {
	at := c.assigned().applications[gatewayapi.ParentOf(s)]
	c.mu.Lock()
	v, ok := c.verdicts[keyOf(s)][at]
	c.mu.Unlock()
	if !ok {
		return nil
	}
	now := s.DeepCopy()
	now.Status = status.ListenerSet(s.Status, v.set, time.Now())
	if equality.Semantic.DeepEqual(s.Status, now.Status) {
		return nil
	}
	_, err := c.config.GatewayAPI.GatewayV1().ListenerSets(s.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}
