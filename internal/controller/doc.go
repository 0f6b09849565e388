// Package controller is the kit for controllers of Kubernetes objects that share documents in
// Azure: Services share load balancers, gateways their routing, DNS names their zones. Layer L3:
// it is generic, and knows no kind of object.
//
//   - [Watch] listens to an informer.
//   - [Queue] hands out keys with the reasons for which they were added.
//   - [Delay] says when to try again what has failed so often, by the kind of the error.
//   - [Deduplicator] and [BusyFilter] keep the same event from being reported twice.
//   - [Blame] finds out which requests of a batch Azure refused.
//   - [FailedWrites] remembers what was left failed in Azure, and writes it again.
//
// The batches themselves come from [reconcile.Coalescer].
package controller
