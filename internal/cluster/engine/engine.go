// Package engine changes clusters that are deployed: it brings their machines to a definition, restores their control plane and
// rotates their secrets, while no other process changes them. Package change plans, package step carries out. Layer L3.
package engine

import (
	"context"

	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/step"
	"kaz/internal/cluster/workload"
)

// Engine works on one cluster.
type Engine struct {
	deploy.Deployer

	// Workload is the inside of the cluster, nil if its API server is not used.
	Workload *workload.Cluster
	// Etcd is the etcd of the cluster. Without it the control plane cannot change.
	Etcd inspect.Etcd
	// Backups are the backups of etcd. Without them the cluster cannot be restored.
	Backups Backups
	// Unsigned lets a restore take a backup of which nothing proves that the cluster made it.
	Unsigned bool
	// Lock keeps other processes from changing the cluster. Without it nothing does. Holder is the name of this process for
	// the others.
	Lock   lock.Lease
	Holder string
	// Unlocked lets a process without the right to the lock change the cluster without it.
	Unlocked bool
	// Patience bounds how long the steps of a change may take.
	Patience step.Patience
}

// guard keeps others from changing the cluster.
func (e *Engine) guard() lock.Guard {
	return lock.Guard{Lease: e.Lock, Holder: e.Holder, Say: e.Sayf, Every: e.Every(), WithoutRight: e.Unlocked}
}

// Alone does something to the cluster while no other process changes it.
func (e *Engine) Alone(ctx context.Context, do func(context.Context) error) error {
	return e.guard().Do(ctx, do)
}
