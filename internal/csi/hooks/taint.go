package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/csi/kube"
	"kaz/internal/pause"
)

// Taint is the removal of the taint DRIVER/agent-not-ready from a node once the kubelet has registered the driver.
type Taint struct {
	Client       *kube.Client
	Driver, Node string
	// Delay is the time until the first attempt.
	Delay time.Duration
	// Once ends the removal when the driver is registered and the taint is gone. Otherwise the node is checked again every
	// five minutes: an administrator or an autoscaler can set the taint again.
	Once bool
	Log  *slog.Logger
}

// The pauses between two checks of a node: the first one, the longest one after failures, and the one after a success.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	calmPause    = 5 * time.Minute
)

// Run removes the taint until ctx ends. A failure is logged and tried again.
func (t *Taint) Run(ctx context.Context) {
	for next, wait := t.Delay, firstPause; pause.For(ctx, next) == nil; {
		err := t.remove(ctx)
		switch {
		case err == nil && t.Once:
			return
		case err == nil:
			next, wait = calmPause, firstPause
		default:
			t.Log.WarnContext(ctx, "the taint of a node without the driver is not removed yet", "node", t.Node, "error", err)
			next, wait = wait, min(2*wait, longestPause)
		}
	}
}

// remove removes the taint if the driver is registered.
func (t *Taint) remove(ctx context.Context) error {
	registered, err := t.Client.CSINodes.Get(ctx, t.Node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read csinode %s: %w", t.Node, err)
	}
	if !slices.ContainsFunc(registered.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == t.Driver }) {
		return fmt.Errorf("the kubelet of node %s has not registered the driver %s yet", t.Node, t.Driver)
	}
	node, err := t.Client.Nodes.Get(ctx, t.Node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", t.Node, err)
	}
	rest := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool { return taint.Key == t.key() })
	if len(rest) == len(node.Spec.Taints) {
		return nil
	}
	return t.write(ctx, node.Spec.Taints, rest)
}

func (t *Taint) key() string { return t.Driver + "/agent-not-ready" }

// write replaces the taints of a node if they are still as they were read, so that a taint of another program is not lost.
func (t *Taint) write(ctx context.Context, was, rest []corev1.Taint) error {
	type operation struct {
		Op    string         `json:"op"`
		Path  string         `json:"path"`
		Value []corev1.Taint `json:"value"`
	}
	const taints = "/spec/taints"
	if rest == nil {
		rest = []corev1.Taint{}
	}
	patch, err := json.Marshal([]operation{{"test", taints, was}, {"replace", taints, rest}})
	if err != nil {
		return err
	}
	if _, err = t.Client.Nodes.Patch(ctx, t.Node, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("remove taint %s of node %s: %w", t.key(), t.Node, err)
	}
	t.Log.InfoContext(ctx, "the driver is registered: its taint is removed", "node", t.Node, "taint", t.key())
	return nil
}

// gone reports whether an object does not exist.
func gone(err error) bool { return apierrors.IsNotFound(err) }
