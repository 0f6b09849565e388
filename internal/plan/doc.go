// Package plan turns "what is" and "what is wanted" into ordered steps. Each step says why it is there. Layer L1:
// decisions only, pure functions of their arguments; no context, clock, client or randomness.
//
// A domain planner (plan/loadbalancer, plan/nodes, ...) reads Kubernetes objects and a [Snapshot] of Azure and
// returns a [Graph] of the resources it wants. [Diff] compares the graph with the snapshot and returns a [Plan],
// which package reconcile applies. A resource outside the graph is not ours and never gets a step.
package plan
