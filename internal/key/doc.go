// Package key has the annotations that users set on Kubernetes objects, as tables with meaning,
// default and allowed values. The reference in docs/ is generated from them. Layer L1: pure functions
// of their arguments.
package key
