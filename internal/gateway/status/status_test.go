package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/gateway/status"
)

var (
	before = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now    = before.Add(time.Hour + time.Millisecond)
)

func condition(kind string, is metav1.ConditionStatus, since time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: "Reason", LastTransitionTime: metav1.NewTime(since)}
}

// text returns conditions as text: type, status, and the minutes since before of the last transition.
func text(all []metav1.Condition) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%s %s %s %v", c.Type, c.Status, c.Reason, c.LastTransitionTime.Sub(before).Minutes()))
	}
	return strings.Join(parts, ", ")
}

func check(t *testing.T, what, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("%s:\nhave %s\nwant %s", what, have, want)
	}
}

// TestConditions checks that the time of a condition changes with its status alone, and that the order stays.
func TestConditions(t *testing.T) {
	have := []metav1.Condition{condition("B", "True", before), condition("A", "True", before), condition("Gone", "True", before)}
	want := []metav1.Condition{condition("New", "True", time.Time{}), condition("A", "False", time.Time{}), condition("B", "True", time.Time{})}
	want[2].Reason, want[2].ObservedGeneration = "Other", 7
	got := status.Conditions(have, want, now)
	check(t, "conditions", text(got), "B True Other 0, A False Reason 60, New True Reason 60")
	if got[0].ObservedGeneration != 7 {
		t.Errorf("generation %d", got[0].ObservedGeneration)
	}
	check(t, "again", text(status.Conditions(got, want, now.Add(time.Hour))), text(got))
}

func parent(name string, controller gatewayv1.GatewayController, conditions ...metav1.Condition) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}, ControllerName: controller, Conditions: conditions,
	}
}

func parents(all []gatewayv1.RouteParentStatus) string {
	var parts []string
	for _, p := range all {
		parts = append(parts, fmt.Sprintf("%s of %s (%s)", p.ParentRef.Name, p.ControllerName, text(p.Conditions)))
	}
	return strings.Join(parts, ", ")
}

// TestParents checks that what others have written stays, and what is the controller's is replaced or removed.
func TestParents(t *testing.T) {
	owner := status.Owner{Controller: "us", Waits: func(p gatewayv1.ParentReference) bool { return p.Name == "later" }}
	have := []gatewayv1.RouteParentStatus{
		parent("gone", "us", condition("A", "True", before)), parent("a", "them", condition("A", "True", time.Time{})),
		parent("later", "us", condition("A", "True", before)), parent("a", "us", condition("A", "True", before)),
	}
	want := []gatewayv1.RouteParentStatus{
		parent("new", "us", condition("A", "True", time.Time{})), parent("a", "us", condition("A", "False", time.Time{})),
	}
	foreign := "a of them (A True Reason " + strings.Fields(text(have[1].Conditions))[3] + ")"
	check(t, "parents", parents(owner.Parents(have, want, now)),
		foreign+", later of us (A True Reason 0), a of us (A False Reason 60), new of us (A True Reason 60)")
	check(t, "none", parents(owner.Parents(nil, nil, now)), "")
	var many []gatewayv1.RouteParentStatus
	for n := range 40 {
		many = append(many, parent(fmt.Sprint(n), "us"))
	}
	if got := owner.Parents(have, many, now); len(got) != 32 || got[0].ControllerName != "them" {
		t.Errorf("%d parents: %s", len(got), parents(got))
	}
}

// TestAncestors checks that policies have at most 16 ancestors, and those of others first.
func TestAncestors(t *testing.T) {
	owner := status.Owner{Controller: "us", Waits: func(gatewayv1.ParentReference) bool { return false }}
	var want []gatewayv1.PolicyAncestorStatus
	for n := range 20 {
		want = append(want, gatewayv1.PolicyAncestorStatus{AncestorRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprint(n))}})
	}
	got := owner.Ancestors([]gatewayv1.PolicyAncestorStatus{{ControllerName: "them"}}, want, now)
	if len(got) != 16 || got[0].ControllerName != "them" || got[1].ControllerName != "us" || got[1].AncestorRef.Name != "0" {
		t.Errorf("%+v", got)
	}
}

// TestProgrammed checks that what is decided against a Gateway stays, and that its listeners are as programmed as the Gateway.
func TestProgrammed(t *testing.T) {
	good := gatewayv1.GatewayStatus{
		Conditions: []metav1.Condition{condition("Programmed", "True", before)},
		Listeners: []gatewayv1.ListenerStatus{
			{Name: "good", Conditions: []metav1.Condition{condition("Programmed", "True", before)}},
			{Name: "bad", Conditions: []metav1.Condition{condition("Programmed", "False", before)}},
		},
	}
	held := status.NotProgrammed(good, 3, gatewayv1.GatewayReasonNoResources, "stopped")
	for what, c := range map[string]struct{ have, want []string }{
		"Gateway":       {short(held.Conditions), []string{"Programmed False NoResources", "Accepted True Accepted"}},
		"good listener": {short(held.Listeners[0].Conditions), []string{"Programmed False Pending"}},
		"bad listener":  {short(held.Listeners[1].Conditions), []string{"Programmed False Reason"}},
		"as it was":     {short(good.Conditions), []string{"Programmed True Reason"}},
		"nothing":       {short(status.Programmed(gatewayv1.GatewayStatus{}, 3).Conditions), []string{"Accepted True Accepted", "Programmed True Programmed"}},
		"decided": {
			short(status.Programmed(gatewayv1.GatewayStatus{Conditions: []metav1.Condition{condition("Programmed", "False", before)}}, 3).Conditions),
			[]string{"Programmed False Reason", "Accepted True Accepted"},
		},
	} {
		check(t, what, strings.Join(c.have, ", "), strings.Join(c.want, ", "))
	}
}

func short(all []metav1.Condition) (parts []string) {
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	return parts
}

// TestGateway checks that addresses which are not known stay, and those of listeners' conditions are found by name.
func TestGateway(t *testing.T) {
	have := gatewayv1.GatewayStatus{
		Addresses: []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.1"}},
		Listeners: []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{condition("A", "True", before)}}},
	}
	want := gatewayv1.GatewayStatus{Listeners: []gatewayv1.ListenerStatus{
		{Name: "b", Conditions: []metav1.Condition{condition("A", "True", time.Time{})}},
		{Name: "a", Conditions: []metav1.Condition{condition("A", "True", time.Time{})}},
	}}
	got := status.Gateway(have, want, now)
	check(t, "b", text(got.Listeners[0].Conditions), "A True Reason 60")
	check(t, "a", text(got.Listeners[1].Conditions), "A True Reason 0")
	if len(got.Addresses) != 1 || got.Addresses[0].Value != "192.0.2.1" {
		t.Errorf("addresses %v", got.Addresses)
	}
	want.Addresses = []gatewayv1.GatewayStatusAddress{}
	if got := status.Gateway(have, want, now); len(got.Addresses) > 0 {
		t.Errorf("addresses %v", got.Addresses)
	}
}
