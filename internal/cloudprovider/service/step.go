package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cloud-provider/service/helpers"
)

// Class is the load balancer class that names this provider, where several live
// side by side in one cluster.
const Class = "kaz/azure"

// Classes are the load balancer classes that are served; "" stands for Services
// that name none.
type Classes []string

// step is what has to be done for a Service now.
type step int

const (
	ignore step = iota // it is not ours, or nothing is left of it
	ensure             // it shall be as it says
	remove             // nothing of it shall be in Azure
)

// next decides what has to be done for a Service. served says that this process
// has worked on it: then something of it can be in Azure whatever it says now.
func (c Classes) next(s *corev1.Service, served bool) step {
	switch {
	case c.wants(s):
		return ensure
	case served, helpers.HasLBFinalizer(s) && c.mine(s):
		return remove
	}
	return ignore
}

// wants reports whether a Service asks for a load balancer, and asks us.
func (c Classes) wants(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && c.mine(s)
}

// serveNot reports whether a Service has a load balancer of others.
func (c Classes) serveNot(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && !c.mine(s)
}

// mine reports whether a Service is of a class that is served. One that is no load
// balancer any more names none: only the finalizer tells that it was one, and who
// serves Services without a class takes that as addressed to it.
func (c Classes) mine(s *corev1.Service) bool {
	class := ""
	if s.Spec.LoadBalancerClass != nil {
		class = *s.Spec.LoadBalancerClass
	}
	return slices.Contains(c, class)
}
