package localcluster

import (
	"context"
	"fmt"

	"kaz/internal/localcluster/example"
)

// hasExample reports whether the cluster starts the example.
func (n *realNodes) hasExample() bool { return n.Example && len(n.Without) == 0 }

// exampleWaitsForDisk reports whether the example has a disk from the beginning.
func (n *realNodes) exampleWaitsForDisk() bool { return n.disks && !n.storageLater }

// exampleManifests are the pods of the example, and the one with a disk if the cluster has disks from the beginning.
func (n *realNodes) exampleManifests() [][]byte {
	switch {
	case !n.hasExample():
		return nil
	case n.exampleWaitsForDisk():
		return [][]byte{example.Pods, example.Disk}
	}
	return [][]byte{example.Pods}
}

// startExample waits for a pod of the example, then gives it a Service, and waits until that answers from outside the cluster. The pods
// were applied before.
func (n *realNodes) startExample(ctx context.Context) error {
	if !n.hasExample() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, example.Timeout,
		fmt.Errorf("no answer within %s; kubectl describe service/hello statefulset/notes, and %s, may say why",
			example.Timeout, n.path("logs")))
	defer cancel()
	client, err := newClient(n.kubeconfig())
	if err != nil {
		return err
	}
	err = n.poll(ctx, example.Timeout, func(ctx context.Context) (bool, error) { return example.Runs(ctx, client), nil })
	if err != nil {
		return err
	}
	if err := n.apply(ctx, example.Service); err != nil {
		return err
	}
	return n.poll(ctx, example.Timeout, func(ctx context.Context) (bool, error) {
		url, answering := example.URL(ctx, client)
		if !answering || n.exampleWaitsForDisk() && !example.HasDisk(ctx, client) {
			return false, nil
		}
		n.example = url
		return true, nil
	})
}
