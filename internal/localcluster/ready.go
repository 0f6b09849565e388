package localcluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider/api"

	"kaz/internal/localazure/inventory"
	"kaz/internal/localcluster/realnodes"
)

// readyTimeout bounds the wait for a number of nodes.
func readyTimeout(nodes int) time.Duration {
	return 2*time.Minute + time.Duration(nodes)*200*time.Millisecond
}

// waitNodes waits until each running machine has a Node that can run pods. It returns at once if a component is left out:
// without it the nodes may never become ready.
func (c *cluster) waitNodes(ctx context.Context) error {
	if len(c.Without) > 0 {
		return nil
	}
	client, err := newClient(c.kubeconfig())
	if err != nil {
		return err
	}
	machines, err := c.machines(ctx)
	if err != nil {
		return err
	}
	return c.poll(ctx, readyTimeout(len(machines)), func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		machines, err := c.machines(ctx)
		return err == nil && allUsable(machines, nodes.Items), err
	})
}

// poll calls ready until it reports true. It fails if that takes too long, or a program ends meanwhile.
func (c *cluster) poll(ctx context.Context, timeout time.Duration, ready func(context.Context) (bool, error)) error {
	late := fmt.Errorf("not ready within %s; see the logs in %s", timeout, c.path("logs"))
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ready(ctx); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-c.group.Failed():
			if !realnodes.IsMachine(p.Name()) {
				return fmt.Errorf("%s has ended: %w", p.Name(), p.Err())
			}
		case <-tick.C:
		}
	}
}

// allUsable reports whether each running machine has a Node that is Ready and initialized by the cloud provider.
func allUsable(machines []inventory.Machine, nodes []corev1.Node) bool {
	usable := map[string]bool{}
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		uninitialized := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == cloudprovider.TaintExternalCloudProvider
		})
		usable[n.Name] = ready && !uninitialized
	}
	return !slices.ContainsFunc(machines, func(m inventory.Machine) bool { return m.Running && !usable[m.Name] })
}
