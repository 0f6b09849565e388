package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	cloudapi "k8s.io/cloud-provider/api"

	"kaz/internal/plan/nodes"
)

// isNew reports whether the node has the taint of an uninitialized node, with any value and effect. A
// kubelet with an external cloud provider sets it.
func isNew(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isUninitialized)
}

func isUninitialized(t corev1.Taint) bool { return t.Key == cloudapi.TaintExternalCloudProvider }

// conflicts is the backoff of retries after a write conflict.
var conflicts = wait.Backoff{Steps: 20, Duration: 50 * time.Millisecond, Jitter: 1}

// initialize makes a new node usable. It reads everything before it writes anything. It writes the
// addresses first and removes the taint in the last write, so that no pods run on a node after a
// failure.
func (m *member) initialize(ctx context.Context, due bool) (time.Duration, error) {
	// The informer may not have the node manager's own last write.
	node, err := m.config.Client.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return m.again(due), nil
	case err != nil:
		return longestWait, fmt.Errorf("read node %s: %w", m.name, err)
	case !isNew(node):
		return m.again(due), nil
	}
	facts, err := m.prepare(ctx, node)
	if err != nil {
		m.config.Metrics.count(initialization, false)
		return longestWait, &failure{reason: reasonInitialize, node: node, err: fmt.Errorf("initialize node %s: %w", m.name, err)}
	}
	m.config.Metrics.count(initialization, true)
	m.log.Info("node initialized", "provider_id", facts.ProviderID, "instance_type", facts.InstanceType, "zone", facts.Zone,
		"addresses", addressTexts(facts.Addresses))
	return m.next(facts), nil
}

func (m *member) prepare(ctx context.Context, node *corev1.Node) (Facts, error) {
	if m.config.WaitRoutes {
		if err := m.setNetworkUnavailable(ctx, node); err != nil {
			return Facts{}, fmt.Errorf("set the condition NetworkUnavailable: %w", err)
		}
	}
	facts, err := m.describe(ctx, node)
	if err != nil {
		return facts, err
	}
	addresses, changed, err := nodes.NewAddresses(node, facts.Addresses)
	if err != nil {
		return facts, contradiction(err.Error())
	}
	if changed {
		if err := m.patchAddresses(ctx, addresses); err != nil {
			return facts, err
		}
	}
	return facts, m.admit(ctx, node, facts)
}

// describe reads the source and checks that it describes the machine of the node.
func (m *member) describe(ctx context.Context, node *corev1.Node) (Facts, error) {
	started := time.Now()
	facts, err := m.source.Describe(ctx, node)
	m.config.Metrics.described(time.Since(started), err)
	if err != nil {
		return facts, err
	}
	if nodes.Managed(node.Spec.ProviderID) && !strings.EqualFold(node.Spec.ProviderID, facts.ProviderID) {
		return facts,
			contradiction(fmt.Sprintf("node %s is the machine %s, and is described as %s", m.name, node.Spec.ProviderID, facts.ProviderID))
	}
	m.complain(facts)
	if facts.OutsideUnknown != nil {
		facts.Addresses = nodes.KeepOutside(node, facts.Addresses)
	}
	return facts, nil
}

// complain logs what is left out, once.
func (m *member) complain(f Facts) {
	problems := f.Problems
	if f.OutsideUnknown != nil {
		problems = append(slices.Clip(problems), "outside addresses: "+f.OutsideUnknown.Error())
	}
	left := strings.Join(problems, "; ")
	if left != m.left && left != "" {
		m.log.Warn("parts of the machine's metadata cannot be used", "problems", left)
	}
	m.left = left
}

// admit writes the facts to the node and removes the taint.
func (m *member) admit(ctx context.Context, described *corev1.Node, f Facts) error {
	labels := f.Labels()
	if m.config.BetaLabels {
		maps.Copy(labels, nodes.BetaLabels(labels))
	}
	err := retry.RetryOnConflict(conflicts, func() error {
		node, err := m.config.Client.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.UID != described.UID {
			return errors.New("it was replaced by another node of the same name")
		}
		if node.Spec.ProviderID == "" {
			node.Spec.ProviderID = f.ProviderID
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		maps.Copy(node.Labels, labels)
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isUninitialized)
		_, err = m.config.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("write the provider id and labels and remove the taint: %w", err)
	}
	return nil
}
