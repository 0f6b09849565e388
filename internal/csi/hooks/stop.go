package hooks

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/csi/kube"
	"kaz/internal/pause"
)

// Stop delays the end of a driver's node service. On a node that is drained, volumes can only be unmounted and detached
// while the service runs.
type Stop struct {
	Client       *kube.Client
	Driver, Node string
	Log          *slog.Logger
}

// lookAgain is the time between two lists of the attachments.
const lookAgain = 2 * time.Second

// drained are the taints of a node while its pods are being moved to other nodes.
func drained() []string {
	return []string{
		corev1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
	}
}

// Wait returns at once for a node that keeps its pods. For a drained or deleted node it waits until none of the driver's
// volumes is attached to it, or until ctx ends.
func (s *Stop) Wait(ctx context.Context) error {
	leaving, err := s.leaving(ctx)
	if err != nil || !leaving {
		return err
	}
	for {
		attached, err := s.attached(ctx)
		switch {
		case err != nil:
			return err
		case len(attached) == 0:
			return nil
		}
		s.Log.InfoContext(ctx, "waiting until the volumes of a drained node are detached", "node", s.Node, "attachments", attached)
		if err := pause.For(ctx, lookAgain); err != nil {
			return fmt.Errorf("node %s still has %d volumes: %w", s.Node, len(attached), err)
		}
	}
}

// leaving reports whether the pods of the node are moved to other nodes.
func (s *Stop) leaving(ctx context.Context) (bool, error) {
	node, err := s.Client.Nodes.Get(ctx, s.Node, metav1.GetOptions{})
	switch {
	case gone(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read node %s: %w", s.Node, err)
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(drained(), t.Key) }), nil
}

// attached returns the names of the VolumeAttachments of the driver at the node.
func (s *Stop) attached(ctx context.Context) ([]string, error) {
	all, err := s.Client.VolumeAttachments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list volumeattachments: %w", err)
	}
	var names []string
	for _, a := range all.Items {
		if a.Spec.NodeName == s.Node && a.Spec.Attacher == s.Driver {
			names = append(names, a.Name)
		}
	}
	return names, nil
}
