package localcluster

import (
	"context"
	"fmt"
	"log/slog"
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

// nodesReady is the step that waits for the nodes of machines that need no time to boot.
func (c *cluster) nodesReady() step {
	return step{"nodes ready", func(ctx context.Context) error { return c.waitNodes(ctx, 0) }}
}

// waitNodes waits until each running machine has a Node that can run pods, for more than the usual time if the machines have to boot. It
// returns at once if a component is left out: without it the nodes may never become ready.
func (c *cluster) waitNodes(ctx context.Context, more time.Duration) error {
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
	return c.poll(ctx, more+readyTimeout(len(machines)), func(ctx context.Context) (bool, error) {
		const answer = 10 * time.Second
		short, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		nodes, err := client.CoreV1().Nodes().List(short, metav1.ListOptions{})
		if err != nil {
			slog.Info("no nodes yet", "error", err)
			return false, nil
		}
		machines, err := c.machines(ctx)
		return err == nil && allUsable(machines, nodes.Items, c.kubeletsSince), err
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

// allUsable reports whether each running machine has a Node that is initialized by the cloud provider and Ready, as its kubelet said since
// a time: the API server remembers the nodes of the last start as ready.
func allUsable(machines []inventory.Machine, nodes []corev1.Node, since time.Time) bool {
	since = since.Truncate(time.Second) // as the times of conditions are
	usable := map[string]bool{}
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since)
		})
		uninitialized := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == cloudprovider.TaintExternalCloudProvider
		})
		usable[n.Name] = ready && !uninitialized
	}
	return !slices.ContainsFunc(machines, func(m inventory.Machine) bool { return m.Running && !usable[m.Name] })
}
