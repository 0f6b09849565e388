package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/pause"
)

// DrainOptions are the options of [Cluster.Drain].
type DrainOptions struct {
	// Timeout is how long a drain may take. After it the node takes pods again, and the error names what stayed.
	Timeout time.Duration
	// Force deletes what stays after Timeout, against disruption budgets, and evicts pods that nothing makes again.
	Force bool
	// Settle is the time that load balancers of Services get to stop sending requests to the node before pods are evicted.
	Settle time.Duration
}

// BlockedError says what stays on a node.
type BlockedError struct {
	Node    string
	Reasons []string
}

func (b *BlockedError) Error() string {
	return fmt.Sprintf("node %s is not drained:\n  %s", b.Node, strings.Join(b.Reasons, "\n  "))
}

// Drain moves the pods of a node elsewhere. First the node takes no further pods, and load balancers stop sending requests to
// it. Then each pod is evicted, within disruption budgets and the pod's termination grace period. Drain waits until the pods
// are gone and their volumes are detached. If it fails, the node takes pods and requests again. A missing node counts as
// drained.
func (c *Cluster) Drain(ctx context.Context, node string, o DrainOptions) error {
	before, err := c.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !o.Force {
		if bare, err := c.bare(ctx, node); err != nil || len(bare) > 0 {
			return blocked(node, bare, err)
		}
	}
	if err := c.Cordon(ctx, true, node); err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	byOthers := excludedByOthers(before)
	if before.Spec.Unschedulable && before.Labels[corev1.LabelNodeExcludeBalancers] == draining {
		o.Settle = 0 // it has left already
	}
	reasons, err := c.vacate(timed, node, byOthers, o.Settle)
	if len(reasons) > 0 && o.Force && ctx.Err() == nil {
		c.say("node %s: time is over, pods are deleted", node)
		reasons, err = c.deleteAll(ctx, node, o.Timeout)
	}
	if err == nil && len(reasons) == 0 {
		return nil
	}
	c.giveBack(context.WithoutCancel(ctx), node, byOthers)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return blocked(node, reasons, err)
}

// Leave lets nodes take no further pods, and waits until load balancers may have left them out. Their drains need not wait for that again.
func (c *Cluster) Leave(ctx context.Context, settle time.Duration, names ...string) error {
	if err := c.Cordon(ctx, true, names...); err != nil {
		return err
	}
	var ours []string
	for _, name := range names {
		n, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && excludedByOthers(n) {
			continue
		}
		if err != nil {
			return err
		}
		ours = append(ours, name)
	}
	return c.leave(ctx, settle, ours...)
}

// leave waits until load balancers may have left nodes out. A wait that is interrupted begins anew.
func (c *Cluster) leave(ctx context.Context, settle time.Duration, names ...string) error {
	for _, value := range []string{leaving, draining} {
		for _, name := range names {
			if err := c.exclude(ctx, value, name); err != nil {
				return err
			}
		}
		if value == leaving {
			if err := pause.For(ctx, settle); err != nil {
				return err
			}
		}
	}
	return nil
}

// vacate lets load balancers leave a node out, unless others have seen to that, and evicts its pods.
func (c *Cluster) vacate(ctx context.Context, node string, byOthers bool, settle time.Duration) ([]string, error) {
	if !byOthers {
		if err := c.leave(ctx, settle, node); ctx.Err() != nil {
			return []string{"the time is over"}, nil
		} else if err != nil {
			return nil, err
		}
	}
	return c.empty(ctx, node)
}

// GiveBack lets nodes that were to go take pods and requests again. One that is gone is no error.
func (c *Cluster) GiveBack(ctx context.Context, names ...string) error {
	var failed []error
	for _, name := range names {
		now, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = c.takeBack(ctx, name, excludedByOthers(now))
		}
		if !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// excludedByOthers reports whether another program or person has taken a node out of load balancers. A drain that stopped has left its
// own label.
func excludedByOthers(n *corev1.Node) bool {
	why, had := n.Labels[corev1.LabelNodeExcludeBalancers]
	return had && why != draining && why != leaving
}

func (c *Cluster) takeBack(ctx context.Context, node string, byOthers bool) error {
	err := c.Cordon(ctx, false, node)
	if !byOthers {
		err = errors.Join(err, c.exclude(ctx, "", node))
	}
	return err
}

// giveBack lets a node take pods and requests again after its drain failed.
func (c *Cluster) giveBack(ctx context.Context, node string, byOthers bool) {
	if err := c.takeBack(ctx, node, byOthers); err != nil {
		c.say("node %s takes no pods or requests: %v", node, err)
	}
}

// The values of the label that excludes a node while it is drained.
const (
	leaving  = "leaving"  // load balancers may still send requests to it
	draining = "draining" // they have left it out
)

// exclude takes a node out of the load balancers of Services, or in again with the value "". A node that is gone is no error.
func (c *Cluster) exclude(ctx context.Context, value, node string) error {
	text := "null"
	if value != "" {
		text = strconv.Quote(value)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, corev1.LabelNodeExcludeBalancers, text)
	_, err := c.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("load balancers of node %s: %w", node, err)
	}
	return nil
}

func blocked(node string, reasons []string, err error) error {
	if err != nil {
		return fmt.Errorf("drain node %s: %w", node, err)
	}
	return &BlockedError{node, reasons}
}

// pods are the pods of a node that a drain evicts.
func (c *Cluster) pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != node || !evictable(p) }), nil
}

// bare names the pods of a node that nothing would make again.
func (c *Cluster) bare(ctx context.Context, node string) ([]string, error) {
	pods, err := c.pods(ctx, node)
	var all []string
	for _, p := range pods {
		if metav1.GetControllerOf(&p) == nil && p.DeletionTimestamp == nil {
			all = append(all, fmt.Sprintf("pod %s/%s has no controller, so it would be lost: delete it, or drain with --force",
				p.Namespace, p.Name))
		}
	}
	return all, err
}

// empty evicts the pods of a node until none is left and no volume is attached. When ctx ends it returns what stays.
func (c *Cluster) empty(ctx context.Context, node string) ([]string, error) {
	last := ""
	for {
		reasons, err := c.evict(ctx, node)
		if ctx.Err() != nil {
			if len(reasons) == 0 {
				reasons = []string{"the time is over"}
			}
			return reasons, nil
		}
		if err != nil || len(reasons) == 0 {
			return nil, err
		}
		if now := strings.Join(reasons, ", "); now != last {
			c.say("  node %s waits: %s", node, now)
			last = now
		}
		if pause.For(ctx, c.poll()) != nil {
			return reasons, nil
		}
	}
}

// evict tries to evict each pod once. It returns what stays.
func (c *Cluster) evict(ctx context.Context, node string) ([]string, error) {
	pods, err := c.pods(ctx, node)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, p := range pods {
		reason, err := c.evictPod(ctx, p)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 0 {
		return reasons, nil
	}
	attached, err := c.attachments(ctx, node)
	for _, a := range attached {
		volume := a.Name
		if a.Spec.Source.PersistentVolumeName != nil {
			volume = *a.Spec.Source.PersistentVolumeName
		}
		reasons = append(reasons, "volume "+volume+" is attached")
	}
	return reasons, err
}

// evictPod tries to evict a pod. It returns why the pod is there yet, "" if it is gone.
func (c *Cluster) evictPod(ctx context.Context, p corev1.Pod) (string, error) {
	name := p.Namespace + "/" + p.Name
	if p.DeletionTimestamp != nil {
		return "pod " + name + " ends", nil
	}
	err := c.Client.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	})
	switch {
	case err == nil:
		return "pod " + name + " ends", nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return "", nil
	case apierrors.IsTooManyRequests(err):
		return fmt.Sprintf("pod %s: %s allows no disruption", name, c.budgets(ctx, p)), nil
	}
	return "", fmt.Errorf("pod %s: %w", name, err)
}

// budgets names the disruption budgets of a pod.
func (c *Cluster) budgets(ctx context.Context, p corev1.Pod) string {
	list, err := c.Client.PolicyV1().PodDisruptionBudgets(p.Namespace).List(ctx, metav1.ListOptions{})
	names := map[string]bool{}
	if err == nil {
		for _, b := range list.Items {
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(p.Labels)) {
				names[b.Name] = true
			}
		}
	}
	if len(names) == 0 {
		return "a disruption budget"
	}
	return "disruption budget " + strings.Join(slices.Sorted(maps.Keys(names)), " and ")
}

// deleteAll deletes the pods of a node and waits until they are gone.
func (c *Cluster) deleteAll(ctx context.Context, node string, most time.Duration) ([]string, error) {
	pods, err := c.pods(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		err := c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return c.empty(timed, node)
}

// NotReadyError says which nodes are not ready in time.
type NotReadyError struct {
	Nodes []string
	After time.Duration
}

func (n *NotReadyError) Error() string {
	return fmt.Sprintf("not ready after %s: %s", n.After, strings.Join(n.Nodes, ", "))
}

// Await waits until the named nodes are ready. Its error is a [NotReadyError] if the API server answers.
func (c *Cluster) Await(ctx context.Context, most time.Duration, wanted func(map[string]Node) []string) error {
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		nodes, err := c.Nodes(timed)
		var missing []string
		if err == nil {
			if missing = wanted(nodes); len(missing) == 0 {
				return nil
			}
		}
		if pause.For(timed, c.poll()) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return err
			}
			return &NotReadyError{missing, most}
		}
	}
}
