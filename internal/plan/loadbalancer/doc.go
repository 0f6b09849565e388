// Package loadbalancer decides what Azure must hold for the Services of type
// LoadBalancer: public IPs, the load balancer's frontends, rules and probes, the
// security group's rules, and the scale sets' membership in the backend pool.
// Layer L1: pure functions of Kubernetes objects and a snapshot of Azure.
//
// [Desired] takes the Services of one commit, few or all of the cluster. What
// belongs to a Service that is not among them, and what belongs to nobody, is
// carried through as it is. Names, tags and values are those that clusters on
// Azure have had all along, so that a running cluster is taken over without a
// write.
//
// A Service has one address in each of its IP families. Each address has a place:
// a frontend of the external or of the internal load balancer, its own or that of
// another Service with the same address. All load balancers of a cluster and their
// security group are planned together.
package loadbalancer
