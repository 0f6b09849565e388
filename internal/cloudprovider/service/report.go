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

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/nodes"
)

// event is a reason that users know, and its message. The message of a failure ends with the error.
type event struct{ reason, message string }

var (
	eventEnsuring     = event{"EnsuringLoadBalancer", "Ensuring load balancer"}
	eventEnsured      = event{"EnsuredLoadBalancer", "Ensured load balancer"}
	eventUpdated      = event{"UpdatedLoadBalancer", "Updated load balancer with new hosts"}
	eventMoved        = event{"UpdatedLoadBalancer", "The address has changed: "}
	eventDeleting     = event{"DeletingLoadBalancer", "Deleting load balancer"}
	eventDeleted      = event{"DeletedLoadBalancer", "Deleted load balancer"}
	eventSyncFailed   = event{"SyncLoadBalancerFailed", "Error syncing load balancer: "}
	eventUpdateFailed = event{"UpdateLoadBalancerFailed", "Error updating load balancer with new hosts: "}
	eventDeleteFailed = event{"DeleteLoadBalancerFailed", "Error deleting load balancer: "}
	eventRepaired     = event{"RepairedLoadBalancer", "Put back what was changed in Azure: "}
	eventFound        = event{"RepairedLoadBalancer", "Found at the start, and put right in Azure: "}
	eventUpgraded     = event{"UpgradedPublicIP", "Public IP "}
)

// outcomes are the reasons of the events that report an outcome, and whether that was a success.
var outcomes = map[string]bool{
	eventEnsured.reason: true, eventUpdated.reason: true, eventSyncFailed.reason: false, eventUpdateFailed.reason: false,
}

func (c *Controller) normal(s *corev1.Service, e event, more string) {
	c.events.Event(s, corev1.EventTypeNormal, e.reason, e.message+more)
}

func (c *Controller) warn(s *corev1.Service, e event, more string) {
	c.events.Event(s, corev1.EventTypeWarning, e.reason, e.message+more)
}

// reportFailure reports what has failed, unless the program is ending. A failure that a user has to cure is reported once,
// however often the Service is tried.
func (c *Controller) reportFailure(ctx context.Context, s *corev1.Service, h *history, e event, err error) {
	if ctx.Err() != nil || !h.busy.Passes(err) {
		return
	}
	message := err.Error() + adviceOn(s, err)
	failure := plan.Problem{Object: spec.KeyOf(s), Reason: e.reason, Message: message}
	if refusal, ok := errors.AsType[*azure.Error](err); ok && refusal.Code != "" {
		failure.Message = refusal.Op + " " + string(refusal.ID) + " " + refusal.Code // Azure's message may be another one each time
	}
	all := []plan.Problem{failure}
	if controller.IsLasting(err) {
		if f, ok := errors.AsType[*failedCommit](err); ok {
			ofOthers := func(p plan.Problem) bool { return p.Object != failure.Object }
			all = append(all, slices.DeleteFunc(slices.Clone(f.problems), ofOthers)...)
		}
		all = h.reported.New(all)
	}
	if len(all) > 0 && all[0] == failure {
		c.warn(s, e, message)
		all = all[1:]
	}
	c.reportProblems(ctx, s, all)
}

// adviceOn returns what the owner of a Service can do about a refusal of Azure, to be appended to the error. Azure names
// its own resources, not the annotation that names them. The result is "" if there is nothing to add.
func adviceOn(s *corev1.Service, err error) string {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok {
		return ""
	}
	text := e.Target + " " + e.Message
	var b strings.Builder
	for _, said := range key.AzureNames(s.Annotations) {
		if mentions(text, said.Value) {
			fmt.Fprintf(&b, "; annotation %s: %q, allowed is %s", said.Key, said.Value, said.Allowed)
		}
	}
	if ip := strings.TrimSpace(s.Spec.LoadBalancerIP); ip != "" && mentions(text, ip) {
		fmt.Fprintf(&b, "; spec.loadBalancerIP: %q, allowed is an address that can be had there", ip)
	}
	return b.String() + remedies[e.Kind]
}

// remedies tell what helps against refusals that concern more than one Service.
var remedies = map[azure.Kind]string{
	azure.Quota:    "; to do: delete what you do not need, or have Azure raise the limit",
	azure.Capacity: "; to do: nothing, it is tried again; or ask for another zone or region",
	azure.Denied:   "; to do: give the cluster's identity the right, or take the policy or lock away",
}

// mentions reports whether a text contains a name or an address, also at the end of an id.
func mentions(text, word string) bool {
	text, word = strings.ToLower(text), strings.ToLower(word)
	return controller.Mentions(text, word) || controller.Mentions(text, "/"+word)
}

// reportProblems says what is wrong with a Service.
func (c *Controller) reportProblems(ctx context.Context, s *corev1.Service, problems []plan.Problem) {
	for _, p := range problems {
		logProblem(ctx, p)
		if p.Warning {
			c.warn(s, event{reason: p.Reason}, p.Message)
		} else {
			c.warn(s, eventSyncFailed, p.Reason+": "+p.Message)
		}
	}
}

func logProblem(ctx context.Context, p plan.Problem) {
	slog.WarnContext(ctx, "not as asked", "object", p.Object, "reason", p.Reason, "message", p.Message)
}

// reportNodes reports new problems of machines. Their Nodes get the events, because no Service could.
func (c *commit) reportNodes(ctx context.Context) {
	ofNodes := slices.DeleteFunc(slices.Clone(c.out.Decision.Problems), func(p plan.Problem) bool {
		return p.Reason != problem.NotJoined && p.Reason != problem.NodeNowhere
	})
	for _, p := range c.nodeProblems.New(ofNodes) {
		logProblem(ctx, p)
		if i := slices.IndexFunc(c.target.Nodes, isAbout(p)); i >= 0 {
			c.events.Event(c.target.Nodes[i], corev1.EventTypeWarning, p.Reason, p.Message)
		}
	}
}

// isAbout returns a function that reports whether a problem is one of a node: its object is the node's name, or the id of its
// machine.
func isAbout(p plan.Problem) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool {
		machine, ok := nodes.MachineID(n.Spec.ProviderID)
		return n.Name == p.Object || ok && machine.Equal(azure.ID(p.Object))
	}
}

const (
	longestMessage = 1024 // of an event
	longestChange  = 200  // of a change; enough to tell which change it is
)

func cut(text string, most int) string {
	const more = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// reportServed says that a Service is served, and what of it was done now.
func (c *Controller) reportServed(s *corev1.Service, h *history, why reasons, announced bool, got answer) {
	had, has := kube.Addresses(s.Status.LoadBalancer.Ingress), kube.Addresses(got.ingress)
	move := strings.Join(had, ", ") + " -> " + strings.Join(has, ", ")
	if len(had) > 0 && len(has) > 0 && !slices.Equal(had, has) && move != h.move {
		h.move = move
		c.normal(s, eventMoved, move)
	}
	if len(got.repairs) > 0 && (why.drift || why.startup) && !announced {
		e := eventRepaired
		if why.startup { // it can also be the Service that has changed meanwhile
			e = eventFound
		}
		c.warn(s, e, cut(strings.Join(got.repairs, "; "), longestMessage-len(e.message)))
	}
	switch {
	case announced, why.startup && len(got.repairs) > 0:
		c.normal(s, eventEnsured, "")
	case got.hasNodes:
		c.normal(s, eventUpdated, "")
	}
}

// reportUpgrade says that a public IP got the SKU of the load balancer. A user may have made the public IP, and does not
// expect the change. It is reported even if other steps failed.
func (c *commit) reportUpgrade(s plan.Step, from string) {
	var old string
	if err := json.Unmarshal([]byte(from), &old); err != nil {
		return // it had none
	}
	for i, r := range c.batch {
		if c.serves(i) && slices.Contains(s.For, r.service.Key()) {
			c.warn(r.service.Service, eventUpgraded, fmt.Sprintf("%s had the SKU %s, which Azure has retired: its SKU is Standard now, "+
				"as that of the load balancer", s.ID.Name(), old))
		}
	}
}

// repairs returns, for each request, what was changed in Azure though its Service had not changed, as far as this process
// knows. A change that concerns no Service alone, such as the members of a pool, is assigned to the first compared Service.
// After a start, such a change is not reported.
func (c *commit) repairs() [][]string {
	said := make([][]string, len(c.batch))
	first := -1
	for i, r := range slices.Backward(c.batch) {
		if c.serves(i) && r.reasons.drift {
			first = i
		}
	}
	say := func(text string, concerns func(*corev1.Service) bool) {
		reported := false
		for i, r := range c.batch {
			if c.serves(i) && (first >= 0 || r.reasons.startup) && concerns(r.service.Service) {
				reported = true
				said[i] = append(said[i], cut(text, longestChange))
			}
		}
		if !reported && first >= 0 {
			said[first] = append(said[first], cut(text, longestChange))
		}
	}
	for res := range c.out.Attempted() {
		if res.Err == nil {
			sayStep(res.Step, say)
		}
	}
	for _, s := range c.members {
		sayStep(s, say)
	}
	return said
}

// sayStep says what a step changed, and which Services that concerns. A change of a shared document concerns a Service if
// it names what belongs to the Service, or one of its addresses.
func sayStep(s plan.Step, say func(text string, concerns func(*corev1.Service) bool)) {
	named := func(to *corev1.Service) bool { return slices.Contains(s.For, spec.KeyOf(to)) }
	if s.Op != plan.Update {
		say(fmt.Sprintf("%s %s (%s)", s.Op, s.ID.Name(), s.Why), named)
		return
	}
	isOfOne := len(s.For) == 1 && (s.ID.Is(network.PublicIPAddresses) || s.ID.Is(network.PrivateLinkServices))
	for _, change := range s.Changes {
		text := strings.ToLower(change.String())
		concerns := func(of *corev1.Service) bool {
			return strings.Contains(text, naming.OwnerOf(of)) || slices.ContainsFunc(kube.Addresses(of.Status.LoadBalancer.Ingress),
				func(ip string) bool { return strings.Contains(text, `"`+ip+`"`) })
		}
		if isOfOne {
			concerns = named
		}
		say(s.ID.Name()+" "+change.String(), concerns)
	}
}

// isOfAzure reports whether a problem can go away when something else changes in Azure, without a change of its Service.
func isOfAzure(p plan.Problem) bool {
	return !p.Warning && !slices.Contains([]string{problem.Annotation, problem.Spec, problem.Zones}, p.Reason)
}
