package decision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/ptr"
)

// Class is the load balancer class that names this provider, where several live
// side by side in one cluster.
const Class = "kaz/azure"

// Classes are the load balancer classes that are served; "" stands for Services
// that name none.
type Classes []string

// Step is what has to be done for a Service now.
type Step int

const (
	Ignore Step = iota // it is not ours, or nothing is left of it
	Ensure             // it is to be as it says
	Remove             // nothing of it stays in Azure
)

// Next decides what has to be done for a Service, nil for one that is gone. served says that this
// process has worked on it: then something of it can be in Azure whatever it says now.
func (c Classes) Next(s *corev1.Service, served bool) Step {
	switch {
	case s != nil && c.Wants(s):
		return Ensure
	case served, s != nil && helpers.HasLBFinalizer(s) && c.mine(s):
		return Remove
	}
	return Ignore
}

// Wants reports whether a Service asks for a load balancer, and asks us.
func (c Classes) Wants(s *corev1.Service) bool {
	return staysAround(s) && c.mine(s)
}

// Foreign reports whether another controller serves a Service.
func (c Classes) Foreign(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && !c.mine(s)
}

// mine reports whether a Service is of a class that is served. One that is no load
// balancer any more names none: only the finalizer tells that it was one, and the controller that
// serves Services without a class takes that as addressed to it.
func (c Classes) mine(s *corev1.Service) bool {
	return slices.Contains(c, ptr.Deref(s.Spec.LoadBalancerClass, ""))
}
