// Package service is the controller of Services of type LoadBalancer. Layer L3:
// plan, reconcile and Kubernetes libraries; never the ARM client's implementation.
//
// It replaces the framework's own service controller, under its name, with its finalizer and its
// events. That one works on one Service at a time; this one carries out all Services that wait
// for the same load balancer together (see [reconcile.Coalescer]):
//
//   - Informers queue Services with the reasons (triggers.go). A reason says why, never what: a
//     pass reads the current Service.
//   - A pass serves one Service (pass.go): what has to be done now is a pure
//     function of the object (decision.Classes). A Service without an address gets one
//     first, beside all others (address.go); then it joins the next commit of the
//     load balancers (commit.go). Its phases ask, decide, write, and remember (memories.go).
//   - The members of pools have one writer (pools.go). It works beside the commits, because it takes
//     minutes.
//   - A mistake in an object is reported once and not tried again until something
//     changes (report.go, history.go); what Azure refuses is tried again when its kind says that
//     this makes sense ([controller.Delay]).
//   - From time to time everything is compared with Azure as it is, and what
//     was changed by hand is put back (controller.go).
//
// The packages beside it: decision decides, kube reads and writes Services, explain says what a
// commit would do.
package service
