// Package key is the keys that users write at Kubernetes objects, as tables:
// each with its meaning, its default and what it allows, from which the reference
// in docs/ is generated. Layer L1: decisions only, pure functions of their
// arguments.
package key
