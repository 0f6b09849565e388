package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/problem"
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

// outcomes are the reasons of the events that say how it went, and whether that was well.
var outcomes = map[string]bool{reasonEnsured: true, reasonUpdated: true, reasonSyncFailed: false, reasonUpdateFailed: false}

// reporter tells users what happens, in events, and the log what is wrong.
type reporter struct {
	events record.EventRecorder
	nodes  controller.Deduplicator[plan.Problem] // of nodes; it belongs to the commits
}

// messages are those of events, by reason. The messages of failures end with the error.
var messages = map[string]string{
	reasonEnsuring:     "Ensuring load balancer",
	reasonEnsured:      "Ensured load balancer",
	reasonUpdated:      "Updated load balancer with new hosts",
	reasonDeleting:     "Deleting load balancer",
	reasonDeleted:      "Deleted load balancer",
	reasonSyncFailed:   "Error syncing load balancer: ",
	reasonUpdateFailed: "Error updating load balancer with new hosts: ",
	reasonDeleteFailed: "Error deleting load balancer: ",
}

func (r *reporter) normal(s *corev1.Service, reason string) {
	r.events.Event(s, corev1.EventTypeNormal, reason, messages[reason])
}

func (r *reporter) warn(s *corev1.Service, reason, message string) {
	r.events.Event(s, corev1.EventTypeWarning, reason, messages[reason]+message)
}

// failure says what has failed, unless it is only that the program ends. What a user has to
// change first is said once, however often it is tried.
func (r *reporter) failure(ctx context.Context, s *corev1.Service, h *history, reason string, err error) {
	if ctx.Err() != nil || !h.busy.Passes(err) {
		return
	}
	p := plan.Problem{Object: s.Namespace + "/" + s.Name, Reason: reason, Message: err.Error() + explain.Advice(s, err)}
	same := p
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Code != "" {
		same.Message = e.Op + " " + string(e.ID) + " " + e.Code // Azure's message may be another one each time
	}
	all := []plan.Problem{same}
	if controller.IsLasting(err) {
		all = h.unreported(s, append(all, foundBeside(s, err)...))
	}
	for _, one := range all {
		if one == same {
			r.warn(s, reason, p.Message)
		} else {
			r.problem(ctx, s, one)
		}
	}
}

// foundBeside are the problems of a Service that a commit found before it failed.
func foundBeside(s *corev1.Service, err error) []plan.Problem {
	f, ok := errors.AsType[*failedCommit](err)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.problems), func(p plan.Problem) bool { return p.Object != s.Namespace+"/"+s.Name })
}

// problems says what is wrong with a Service, each thing once.
func (r *reporter) problems(ctx context.Context, s *corev1.Service, h *history, problems []plan.Problem) {
	for _, p := range h.unreported(s, problems) {
		r.problem(ctx, s, p)
	}
}

func (r *reporter) problem(ctx context.Context, s *corev1.Service, p plan.Problem) {
	logProblem(ctx, p)
	if p.Warning {
		r.warn(s, p.Reason, p.Message)
		return
	}
	r.warn(s, reasonSyncFailed, p.Reason+": "+p.Message)
}

func logProblem(ctx context.Context, p plan.Problem) {
	slog.WarnContext(ctx, "not as asked", "object", p.Object, "reason", p.Reason, "message", p.Message)
}

// nodeProblems says what is wrong with machines when it is new: they have no Service
// that could get an event.
func (r *reporter) nodeProblems(ctx context.Context, c *commit) {
	ofNodes := slices.DeleteFunc(slices.Clone(c.out.Decision.Problems), func(p plan.Problem) bool {
		return p.Reason != problem.NotJoined && p.Reason != problem.NodeNowhere
	})
	for _, p := range r.nodes.New(ofNodes) {
		logProblem(ctx, p)
		if i := slices.IndexFunc(c.target.Nodes, func(n *corev1.Node) bool { return n.Name == p.Object }); i >= 0 {
			r.events.Event(c.target.Nodes[i], corev1.EventTypeWarning, p.Reason, p.Message)
		}
	}
}

// served says that a Service is served, and what of it was done now.
func (r *reporter) served(s *corev1.Service, h *history, why reasons, announced bool, got answer) {
	r.moved(s, h, got)
	if (why.drift || why.startup) && !announced {
		r.repaired(s, why, got.repairs)
	}
	switch {
	case announced, why.startup && len(got.repairs) > 0:
		r.normal(s, reasonEnsured)
	case got.hasNodes:
		r.normal(s, reasonUpdated)
	}
}

// moved says that a Service has another address than it had, once.
func (r *reporter) moved(s *corev1.Service, h *history, got answer) {
	had, has := kube.Addresses(s.Status.LoadBalancer.Ingress), kube.Addresses(got.ingress)
	move := strings.Join(had, ", ") + " -> " + strings.Join(has, ", ")
	if len(had) == 0 || len(has) == 0 || slices.Equal(had, has) || move == h.move {
		return
	}
	h.move = move
	r.events.Event(s, corev1.EventTypeNormal, reasonUpdated, "The address has changed: "+move)
}

// longestMessage is how long a message of an event may be, and longestChange as much of it as
// shows which change it is.
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

// repaired says what was changed by hand. After a start it can also be the Service that has
// changed meanwhile.
func (r *reporter) repaired(s *corev1.Service, why reasons, repairs []string) {
	if len(repairs) == 0 {
		return
	}
	message := "Put back what was changed in Azure: "
	if why.startup {
		message = "Found at the start, and put right in Azure: "
	}
	for i, change := range repairs {
		repairs[i] = cut(change, longestChange)
	}
	r.events.Event(s, corev1.EventTypeWarning, reasonRepaired, cut(message+strings.Join(repairs, "; "), longestMessage))
}

// upgrades says which public IPs got the SKU of the load balancer. A user may have made them, and
// does not expect that; whether all else succeeded is no matter.
func (r *reporter) upgrades(c *commit) {
	for res := range c.out.Attempted() {
		old, changed := upgraded(res.Step)
		if !changed || res.Err != nil {
			continue
		}
		for i, one := range c.batch {
			if c.serves(i) && slices.Contains(res.Step.For, one.service.Key()) {
				r.events.Event(one.service.Service, corev1.EventTypeWarning, reasonUpgraded,
					fmt.Sprintf("Public IP %s had the SKU %s, which Azure has retired: its SKU is Standard now, as that of the "+
						"load balancer", res.Step.ID.Name(), old))
			}
		}
	}
}

// upgraded is the SKU that a public IP had before a step that changes it.
func upgraded(s plan.Step) (old string, changed bool) {
	i := slices.IndexFunc(s.Changes, func(c azure.Change) bool { return c.Path == "sku.name" })
	if s.Op != plan.Update || !s.ID.Is(network.PublicIPAddresses) || i < 0 {
		return "", false
	}
	err := json.Unmarshal([]byte(s.Changes[i].From), &old)
	return old, err == nil
}

// repairsIn says, for each request of a commit, what was changed in Azure for it
// though its Service had not changed, as far as this process knows. What belongs to no
// Service alone, such as the members of a pool, is said of the first that was compared; after
// a start it is not said.
func repairsIn(c *commit) [][]string {
	said := make([][]string, len(c.batch))
	first := -1
	for i, r := range c.batch {
		if c.serves(i) && r.reasons.drift && first < 0 {
			first = i
		}
	}
	say := func(text string, concerns func(r request) bool) {
		reported := false
		for i, r := range c.batch {
			if c.serves(i) && (first >= 0 || r.reasons.startup) && concerns(r) {
				reported = true
				said[i] = append(said[i], text)
			}
		}
		if !reported && first >= 0 {
			said[first] = append(said[first], text)
		}
	}
	for _, s := range c.repaired() {
		sayStep(s, say)
	}
	return said
}

// repaired are the steps that a commit has done, and those of members that it leaves to the pool
// writer.
func (c *commit) repaired() []plan.Step {
	var steps []plan.Step
	for res := range c.out.Attempted() {
		if res.Err == nil {
			steps = append(steps, res.Step)
		}
	}
	return append(steps, c.members...)
}

func sayStep(s plan.Step, say func(text string, concerns func(r request) bool)) {
	named := func(r request) bool { return slices.Contains(s.For, r.service.Key()) }
	if s.Op != plan.Update {
		say(fmt.Sprintf("%s %s (%s)", s.Op, s.ID.Name(), s.Why), named)
		return
	}
	for _, change := range s.Changes {
		concerns := named
		if len(s.For) != 1 || !s.ID.Is(network.PublicIPAddresses) && !s.ID.Is(network.PrivateLinkServices) {
			concerns = func(r request) bool { return isAbout(change, r) }
		}
		say(s.ID.Name()+" "+change.String(), concerns)
	}
}

// isAbout reports whether a change of a shared document is about a Service: it
// names what belongs to it, or one of its addresses.
func isAbout(change azure.Change, r request) bool {
	text := strings.ToLower(change.String())
	if strings.Contains(text, framework.DefaultLoadBalancerName(r.service.Service)) {
		return true
	}
	return slices.ContainsFunc(r.service.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool {
		return in.IP != "" && strings.Contains(text, `"`+in.IP+`"`)
	})
}
