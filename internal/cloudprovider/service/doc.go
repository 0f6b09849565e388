// Package service is the controller of Services of type LoadBalancer. Layer L3:
// plan, reconcile and Kubernetes libraries; never the door's implementation.
//
// It stands in the place of the framework's own service controller, under its
// name, with its finalizer and its events. That one hands over one Service at a
// time; this one lets all Services that wait for the same load balancer travel
// together (see [reconcile.Coalescer]):
//
//   - Informers mark Services as dirty (triggers.go). A mark says why, never what:
//     a pass looks at the Service as it is by then.
//   - A pass brings one Service about (pass.go): what has to be done now is a pure
//     function of the object (step.go). A Service without an address gets one
//     first, beside all others (address.go); then it joins the next commit of the
//     load balancer, whoever else is in it (commit.go). Of many that leave, one
//     goes with the load balancer (last.go).
//   - A mistake in an object is told once and not tried again until something
//     changes (told.go); what Azure refuses is tried again when its kind says that
//     this makes sense (retry.go).
//   - From time to time everything is compared with Azure as it is, and what
//     somebody changed by hand is put back (repair.go).
package service
