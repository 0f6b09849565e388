// Package controlplane builds a Kubernetes control plane from Go modules and runs it on this machine. Layer L4.
//
// The modules folder holds one go.mod and go.sum (as module.mod and module.sum, because a folder with a go.mod could not
// be embedded) for each of kubernetes, etcd and kwok: their versions are pinned there and nowhere else. [Build] compiles
// them with the go command into the user's cache directory, so a program built from this package needs no checkout.
// [Start] runs the programs under a [kaz/internal/local/process.Group] and returns when the cluster answers.
package controlplane
