// Package controlplane builds a Kubernetes control plane from Go modules and runs it on this machine. Layer L4.
//
// The modules directory pins the versions: it has a go.mod and a go.sum for each of kubernetes, etcd, kwok and coredns. The
// files are named module.mod and module.sum, because Go cannot embed a directory with a go.mod. [Build] compiles the
// programs with the go command into the user's cache directory, so it needs no checkout. [Start] runs the programs in a
// [kaz/internal/host/process.Group] and returns when the cluster answers.
package controlplane
