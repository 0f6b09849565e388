package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	reasonRepaired     = "RepairedLoadBalancer"
	reasonUpgraded     = "UpgradedPublicIP"
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
	all := []plan.Problem{same}
	if patienceFor(err) == late {
		all = c.historyOf(s.UID).told.news(s, append(all, foundBeside(s, err)...))
	}
	for _, p := range all {
		if p == same {
			c.events.Event(s, corev1.EventTypeWarning, reason, said.Message)
		} else {
			c.tellProblem(ctx, s, p)
		}
	}
}

// foundBeside is what was found in a Service that was then not brought about.
func foundBeside(s *corev1.Service, err error) []plan.Problem {
	u, ok := errors.AsType[*undone](err)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.problems), func(p plan.Problem) bool { return p.Object != s.Namespace+"/"+s.Name })
}

// tellFailure says why a Service is not brought about.
func (c *Controller) tellFailure(ctx context.Context, s *corev1.Service, w why, announced bool, err error) {
	if w.nodes && !announced {
		c.tell(ctx, s, reasonUpdateFailed, "Error updating load balancer with new hosts: %v", err)
		return
	}
	c.tell(ctx, s, reasonSyncFailed, "Error syncing load balancer: %v", err)
}

// tellProblems says what is wrong with a Service, each thing once: to its owner, and to who
// reads the log, as a rehearsal does.
func (c *Controller) tellProblems(ctx context.Context, s *corev1.Service, h *history, problems []plan.Problem) {
	for _, p := range h.told.news(s, problems) {
		c.tellProblem(ctx, s, p)
	}
}

func (c *Controller) tellProblem(ctx context.Context, s *corev1.Service, p plan.Problem) {
	logProblem(ctx, p)
	if p.Warning {
		c.events.Event(s, corev1.EventTypeWarning, p.Reason, p.Message)
		return
	}
	c.events.Eventf(s, corev1.EventTypeWarning, reasonSyncFailed, "Error syncing load balancer: %s: %s", p.Reason, p.Message)
}

func logProblem(ctx context.Context, p plan.Problem) {
	slog.WarnContext(ctx, "not as asked", "object", p.Object, "reason", p.Reason, "message", p.Message)
}

// tellMove says that a Service has another address than it had, once.
func (c *Controller) tellMove(s *corev1.Service, h *history, got answer) {
	had, has := addressesOf(s.Status.LoadBalancer.Ingress), addressesOf(got.ingress)
	move := strings.Join(had, ", ") + " -> " + strings.Join(has, ", ")
	if len(had) == 0 || len(has) == 0 || slices.Equal(had, has) || move == h.move {
		return
	}
	h.move = move
	c.events.Event(s, corev1.EventTypeNormal, reasonUpdated, "The address has changed: "+move)
}

// longestMessage is how long a message of an event may be, and longestChange as much of it as
// tells which change it is.
const (
	longestMessage = 1024
	longestChange  = 200
)

// cut is a text that is at most so long.
func cut(text string, most int) string {
	const more = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// tellRepairs says what somebody had changed by hand. After a start it can also be the Service
// that has changed meanwhile.
func (c *Controller) tellRepairs(s *corev1.Service, w why, repairs []string) {
	if len(repairs) == 0 {
		return
	}
	message := "Put back what was changed in Azure: "
	if w.start {
		message = "Found at the start, and put right in Azure: "
	}
	for i, change := range repairs {
		repairs[i] = cut(change, longestChange)
	}
	c.events.Event(s, corev1.EventTypeWarning, reasonRepaired, cut(message+strings.Join(repairs, "; "), longestMessage))
}
