package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Reasons of events, those that users know.
const (
	reasonEnsuring     = "EnsuringLoadBalancer"
	reasonEnsured      = "EnsuredLoadBalancer"
	reasonUpdated      = "UpdatedLoadBalancer"
	reasonDeleting     = "DeletingLoadBalancer"
	reasonDeleted      = "DeletedLoadBalancer"
	reasonSyncFailed   = "SyncLoadBalancerFailed"
	reasonUpdateFailed = "UpdateLoadBalancerFailed"
	reasonDeleteFailed = "DeleteLoadBalancerFailed"
	reasonNoNodes      = "UnAvailableLoadBalancer"
	reasonRepaired     = "RepairedLoadBalancer"
)

// tell says what has failed, unless it is only that the program ends. What somebody has to
// change first is said once, however often it is tried.
func (c *Controller) tell(ctx context.Context, s *corev1.Service, reason, format string, err error) {
	if ctx.Err() != nil || !c.historyOf(s.UID).hush.breaks(err) {
		return
	}
	said := plan.Problem{Object: s.Namespace + "/" + s.Name, Reason: reason, Message: fmt.Sprintf(format, err) + advice(s, err)}
	same := said
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Code != "" {
		same.Message = e.Op + " " + string(e.ID) + " " + e.Code // what Azure says of it may be another text each time
	}
	if patienceFor(err) == late && len(c.historyOf(s.UID).told.news(s, []plan.Problem{same})) == 0 {
		return
	}
	c.events.Event(s, corev1.EventTypeWarning, reason, said.Message)
}

// tellFailure says why a Service is not brought about.
func (c *Controller) tellFailure(ctx context.Context, s *corev1.Service, w why, announced bool, err error) {
	if w.nodes && !announced {
		c.tell(ctx, s, reasonUpdateFailed, "Error updating load balancer with new hosts: %v", err)
		return
	}
	c.tell(ctx, s, reasonSyncFailed, "Error syncing load balancer: %v", err)
}

// tellProblems says what is wrong with a Service, each thing once.
func (c *Controller) tellProblems(s *corev1.Service, h *history, problems []plan.Problem) {
	for _, p := range h.told.news(s, problems) {
		if p.Warning {
			c.events.Event(s, corev1.EventTypeWarning, p.Reason, p.Message)
			continue
		}
		c.events.Eventf(s, corev1.EventTypeWarning, reasonSyncFailed, "Error syncing load balancer: %s: %s", p.Reason, p.Message)
	}
}

// longestMessage is how long a message of an event may be.
const longestMessage = 1024

// tellRepairs says what somebody had changed by hand.
func (c *Controller) tellRepairs(s *corev1.Service, repairs []string) {
	if len(repairs) == 0 {
		return
	}
	message := "Put back what was changed in Azure: " + strings.Join(repairs, "; ")
	if len(message) > longestMessage {
		const more = "..."
		message = message[:longestMessage-len(more)] + more
	}
	c.events.Event(s, corev1.EventTypeWarning, reasonRepaired, message)
}
