// Package status makes the statuses of objects of the Gateway API from what is decided about them. Layer L3: values and nothing else.
package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Conditions returns wanted conditions with the times of their last transitions: that of a condition with the same status stays.
func Conditions(have, want []metav1.Condition, now time.Time) []metav1.Condition {
	timed := slices.Clone(want)
	for i := range timed {
		timed[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // the API has seconds
		for _, c := range have {
			if c.Type == timed[i].Type && c.Status == timed[i].Status && !c.LastTransitionTime.IsZero() {
				timed[i].LastTransitionTime = c.LastTransitionTime
			}
		}
	}
	slices.SortStableFunc(timed, func(a, b metav1.Condition) int { return position(have, a.Type) - position(have, b.Type) })
	return timed
}

// position returns the index of a condition, the length of the list if it has none.
func position(all []metav1.Condition, name string) int {
	if i := slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == name }); i >= 0 {
		return i
	}
	return len(all)
}

// Gateway returns the wanted status of a Gateway with times. Addresses that are nil stay.
func Gateway(have, want gatewayv1.GatewayStatus, now time.Time) gatewayv1.GatewayStatus {
	made := *have.DeepCopy()
	if want.Addresses != nil {
		made.Addresses = want.Addresses
	}
	made.Conditions = Conditions(have.Conditions, want.Conditions, now)
	made.AttachedListenerSets = want.AttachedListenerSets
	made.Listeners = slices.Clone(want.Listeners)
	for i, l := range made.Listeners {
		var was []metav1.Condition
		for _, h := range have.Listeners {
			if h.Name == l.Name {
				was = h.Conditions
			}
		}
		made.Listeners[i].Conditions = Conditions(was, l.Conditions, now)
	}
	return made
}

// ListenerSet returns the wanted status of a ListenerSet with times.
func ListenerSet(have, want gatewayv1.ListenerSetStatus, now time.Time) gatewayv1.ListenerSetStatus {
	want = *want.DeepCopy()
	want.Conditions = Conditions(have.Conditions, want.Conditions, now)
	for i, l := range want.Listeners {
		var was []metav1.Condition
		for _, h := range have.Listeners {
			if h.Name == l.Name {
				was = h.Conditions
			}
		}
		want.Listeners[i].Conditions = Conditions(was, l.Conditions, now)
	}
	return want
}

// SetNotProgrammed returns the status of a ListenerSet that the application gateway does not have yet, with the reason.
func SetNotProgrammed(
	s gatewayv1.ListenerSetStatus, generation int64, reason gatewayv1.ListenerSetConditionReason, message string,
) gatewayv1.ListenerSetStatus {
	s = *s.DeepCopy()
	no := metav1.Condition{
		Type: string(gatewayv1.ListenerSetConditionProgrammed), Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: string(reason), Message: message,
	}
	if isTrue(s.Conditions, no.Type) {
		s.Conditions = Set(s.Conditions, no)
	}
	for i, l := range s.Listeners {
		if isTrue(l.Conditions, no.Type) {
			s.Listeners[i].Conditions = Set(l.Conditions, no)
		}
	}
	return s
}

// Class returns the wanted status of a GatewayClass with times.
func Class(have, want gatewayv1.GatewayClassStatus, now time.Time) gatewayv1.GatewayClassStatus {
	want.Conditions = Conditions(have.Conditions, want.Conditions, now)
	return want
}

// Owner says which parents in the status of a route are the controller's.
type Owner struct {
	Controller gatewayv1.GatewayController
	// Waits reports whether nothing is decided yet about a parent of the controller. What the status says of it stays.
	Waits func(parent gatewayv1.ParentReference) bool
}

// mostParents is the limit of the API.
const mostParents = 32

// Parents returns the parents in the status of a route: those of other controllers as they are, and the wanted ones with times.
func (o Owner) Parents(have, want []gatewayv1.RouteParentStatus, now time.Time) []gatewayv1.RouteParentStatus {
	var made []gatewayv1.RouteParentStatus
	left := slices.Clone(want)
	for _, h := range have {
		if h.ControllerName != o.Controller {
			made = append(made, h)
			continue
		}
		i := slices.IndexFunc(left, func(w gatewayv1.RouteParentStatus) bool {
			return equality.Semantic.DeepEqual(w.ParentRef, h.ParentRef)
		})
		switch {
		case i >= 0:
			made = append(made, o.parent(h.Conditions, left[i], now))
			left = slices.Delete(left, i, i+1)
		case o.Waits(h.ParentRef):
			made = append(made, h)
		}
	}
	for _, w := range left {
		if len(made) < mostParents {
			made = append(made, o.parent(nil, w, now))
		}
	}
	return made
}

func (o Owner) parent(have []metav1.Condition, want gatewayv1.RouteParentStatus, now time.Time) gatewayv1.RouteParentStatus {
	want.ControllerName = o.Controller
	want.Conditions = Conditions(have, want.Conditions, now)
	return want
}

// mostAncestors is the limit of the API.
const mostAncestors = 16

// Ancestors returns the ancestors in the status of a policy, as [Owner.Parents] does.
func (o Owner) Ancestors(have, want []gatewayv1.PolicyAncestorStatus, now time.Time) []gatewayv1.PolicyAncestorStatus {
	parents := func(all []gatewayv1.PolicyAncestorStatus) (some []gatewayv1.RouteParentStatus) {
		for _, a := range all {
			some = append(some, gatewayv1.RouteParentStatus{
				ParentRef: a.AncestorRef, ControllerName: a.ControllerName, Conditions: a.Conditions,
			})
		}
		return some
	}
	var made []gatewayv1.PolicyAncestorStatus
	for _, p := range o.Parents(parents(have), parents(want), now) {
		if len(made) < mostAncestors {
			made = append(made, gatewayv1.PolicyAncestorStatus{
				AncestorRef: p.ParentRef, ControllerName: p.ControllerName, Conditions: p.Conditions,
			})
		}
	}
	return made
}

// Set returns conditions with one in place of that of its type.
func Set(all []metav1.Condition, one metav1.Condition) []metav1.Condition {
	all = slices.Clone(all)
	if i := position(all, one.Type); i < len(all) {
		all[i] = one
		return all
	}
	return append(all, one)
}

// isTrue reports whether conditions have none of a type, or a true one.
func isTrue(all []metav1.Condition, name string) bool {
	i := position(all, name)
	return i == len(all) || all[i].Status == metav1.ConditionTrue
}

// Programmed returns the status of a Gateway that the application gateway has. What is decided against it stays.
func Programmed(s gatewayv1.GatewayStatus, generation int64) gatewayv1.GatewayStatus {
	s = *s.DeepCopy()
	s.Conditions = accepted(s.Conditions, generation)
	if position(s.Conditions, string(gatewayv1.GatewayConditionProgrammed)) == len(s.Conditions) {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: string(gatewayv1.GatewayConditionProgrammed), Status: metav1.ConditionTrue, ObservedGeneration: generation,
			Reason: string(gatewayv1.GatewayReasonProgrammed), Message: "The application gateway has the Gateway",
		})
	}
	return s
}

// NotProgrammed returns the status of a Gateway that the application gateway does not have as it is, with the reason.
func NotProgrammed(
	s gatewayv1.GatewayStatus, generation int64, reason gatewayv1.GatewayConditionReason, message string,
) gatewayv1.GatewayStatus {
	s = *s.DeepCopy()
	s.Conditions = accepted(s.Conditions, generation)
	if isTrue(s.Conditions, string(gatewayv1.GatewayConditionProgrammed)) {
		s.Conditions = Set(s.Conditions, metav1.Condition{
			Type: string(gatewayv1.GatewayConditionProgrammed), Status: metav1.ConditionFalse, ObservedGeneration: generation,
			Reason: string(reason), Message: message,
		})
	}
	of := gatewayv1.ListenerReasonPending
	if reason == gatewayv1.GatewayReasonInvalid {
		of = gatewayv1.ListenerReasonInvalid
	}
	for i, l := range s.Listeners {
		if isTrue(l.Conditions, string(gatewayv1.ListenerConditionProgrammed)) {
			s.Listeners[i].Conditions = Set(l.Conditions, metav1.Condition{
				Type: string(gatewayv1.ListenerConditionProgrammed), Status: metav1.ConditionFalse, ObservedGeneration: generation,
				Reason: string(of), Message: message,
			})
		}
	}
	return s
}

// accepted adds that a Gateway is accepted if nothing is decided about that.
func accepted(all []metav1.Condition, generation int64) []metav1.Condition {
	if position(all, string(gatewayv1.GatewayConditionAccepted)) < len(all) {
		return all
	}
	return append(all, metav1.Condition{
		Type: string(gatewayv1.GatewayConditionAccepted), Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: string(gatewayv1.GatewayReasonAccepted), Message: "The Gateway is valid",
	})
}

// IsUnknown reports whether nothing has been decided about whether a Gateway is programmed.
func IsUnknown(s gatewayv1.GatewayStatus) bool {
	i := position(s.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	return i == len(s.Conditions) || s.Conditions[i].Status == metav1.ConditionUnknown
}

// ReasonRefused is the reason of a route that Azure refuses.
const ReasonRefused = "AzureRejected"

// Refused returns the parents of a route that Azure refuses.
func Refused(parents []gatewayv1.RouteParentStatus, generation int64, message string) []gatewayv1.RouteParentStatus {
	made := slices.Clone(parents)
	for i, p := range made {
		made[i].Conditions = Set(p.Conditions, metav1.Condition{
			Type: string(gatewayv1.RouteConditionAccepted), Status: metav1.ConditionFalse, ObservedGeneration: generation,
			Reason: ReasonRefused, Message: message,
		})
	}
	return made
}
