// Package readiness decides about the readiness gate of pods behind application gateways: when a pod may count as ready. Layer L1.
package readiness

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/plan/gateway/health"
)

// Gate is the type of the condition that a pod with this readiness gate waits for.
const Gate corev1.PodConditionType = "appgw.ingress.kubernetes.io/ready"

// Reasons of the condition.
const (
	ReasonHealthy   = "Healthy"   // each application gateway that serves the pod sends it requests
	ReasonNotServed = "NotServed" // no Ingress or route leads to the pod
	ReasonWaiting   = "Waiting"   // an application gateway does not have the pod yet, or finds it unhealthy
)

// Has reports whether a pod has the gate.
func Has(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == Gate })
}

// Waits reports whether a pod waits for the gate alone.
func Waits(p *corev1.Pod) bool { return Belongs(p) && !isTrue(p, Gate) }

// Belongs reports whether a pod with the gate would be ready without it. Such a pod belongs into the pools: before the gate opens, or else
// it never would, and after that, because Kubernetes takes a moment to call the pod ready.
func Belongs(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || !Has(p) || !isTrue(p, corev1.ContainersReady) {
		return false
	}
	return !slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType != Gate && !isTrue(p, g.ConditionType)
	})
}

func isTrue(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// Decide returns the condition of a pod that waits. The answers are those of the application gateways that serve it, nil for one that did
// not answer: what is not known to be healthy waits.
func Decide(p *corev1.Pod, answers [][]health.Backend) corev1.PodCondition {
	c := corev1.PodCondition{Type: Gate, Status: corev1.ConditionTrue, Reason: ReasonHealthy}
	if len(answers) == 0 {
		c.Reason = ReasonNotServed
		return c
	}
	for _, all := range answers {
		why := "the health of the application gateway's backends is not known yet"
		if all != nil {
			why = lacks(p, all)
		}
		if why != "" {
			return corev1.PodCondition{Type: Gate, Status: corev1.ConditionFalse, Reason: ReasonWaiting, Message: why}
		}
	}
	return c
}

// lacks says what a pod lacks at an application gateway, "" for nothing.
func lacks(p *corev1.Pod, all []health.Backend) string {
	found := false
	for _, b := range all {
		if !slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == b.Address }) {
			continue
		}
		found = true
		if b.State != health.Healthy {
			return fmt.Sprintf("the application gateway finds it %s in pool %s with settings %s: %s", b.State, b.Pool, b.Settings, b.Log)
		}
	}
	if !found {
		return "the application gateway does not have it in a pool yet"
	}
	return ""
}
