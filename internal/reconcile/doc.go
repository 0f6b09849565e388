// Package reconcile is the only loop of kaz: it takes a snapshot of Azure, asks a
// planner for what is wanted, and applies the difference. Layer L2: knows the
// vocabulary and the plan, reads and writes Azure through azure.Reader and
// azure.Writer, and knows neither HTTP nor Kubernetes clients.
//
// [Coalescer] is what makes many callers cheap: load balancers, security groups
// and route tables are documents that many Kubernetes objects share, so callers
// that arrive while a write is in flight are served together by the next one.
package reconcile
