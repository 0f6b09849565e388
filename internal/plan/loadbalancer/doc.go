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
// External Services over IPv4 whose nodes are instances of Uniform scale sets are
// served. A Service that asks for more gets a [plan.Problem] and is left as it is.
package loadbalancer
