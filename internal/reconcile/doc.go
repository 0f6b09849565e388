// Package reconcile is the only loop of kaz. It takes a snapshot of Azure, asks a planner for what is wanted, and
// applies the difference. Layer L2: it knows the vocabulary (package azure) and the plan. It reads and writes Azure
// through azure.Reader and azure.Writer, and knows neither HTTP nor Kubernetes clients.
//
// [Coalescer] makes many callers cheap. Load balancers, security groups and route tables are documents that many
// Kubernetes objects share. Callers that arrive while a write is in flight are served together by the next one.
package reconcile
