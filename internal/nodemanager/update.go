package nodemanager

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"kaz/internal/azure"
	"kaz/internal/plan/nodes"
)

// update updates an initialized node's addresses and, if enabled, its deprecated labels. It writes
// only changes.
func (m *member) update(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	facts, err := m.refresh(ctx, node)
	if azure.IsNotFound(err) {
		// The cloud-controller-manager decides whether the node is deleted.
		m.log.Debug("no machine found for the node", "error", err)
		return m.config.Period, nil
	}
	m.config.Metrics.count(addressUpdate, err == nil)
	if err != nil {
		return m.config.Period, &failure{reason: reasonUpdate, node: node, err: fmt.Errorf("update node %s: %w", m.name, err)}
	}
	return m.next(facts), nil
}

func (m *member) refresh(ctx context.Context, node *corev1.Node) (Facts, error) {
	if m.config.BetaLabels {
		if err := m.repairBetaLabels(ctx, node); err != nil {
			return Facts{}, err
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
	if !changed {
		return facts, nil
	}
	m.log.Info("addresses changed", "before", addressTexts(node.Status.Addresses), "now", addressTexts(addresses))
	return facts, m.patchAddresses(ctx, addresses)
}

// repairBetaLabels sets the deprecated labels to the values of the current ones.
func (m *member) repairBetaLabels(ctx context.Context, node *corev1.Node) error {
	wrong := nodes.BetaLabels(node.Labels)
	maps.DeleteFunc(wrong, func(key, value string) bool { return node.Labels[key] == value })
	if len(wrong) == 0 {
		return nil
	}
	return m.patch(ctx, "labels", map[string]any{"metadata": map[string]any{"labels": wrong}})
}

// patchAddresses replaces the whole list. A merge by type would not allow two addresses of one type.
func (m *member) patchAddresses(ctx context.Context, addresses []corev1.NodeAddress) error {
	list := []any{map[string]string{"$patch": "replace"}}
	for _, a := range addresses {
		list = append(list, a)
	}
	return m.patch(ctx, "addresses", map[string]any{"status": map[string]any{"addresses": list}}, "status")
}

// setNetworkUnavailable keeps pods away until the route controller reports the node's route.
func (m *member) setNetworkUnavailable(ctx context.Context, node *corev1.Node) error {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	now := metav1.Now()
	return m.patch(ctx, "condition", map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue,
		Reason: "NodeInitialization", Message: "Waiting for cloud routes",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}}, "status")
}

func (m *member) patch(ctx context.Context, what string, body map[string]any, subresources ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s as JSON: %w", what, err)
	}
	err = retry.RetryOnConflict(conflicts, func() error {
		_, err := m.config.Client.CoreV1().Nodes().Patch(ctx, m.name, types.StrategicMergePatchType, text, metav1.PatchOptions{},
			subresources...)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

func addressTexts(all []corev1.NodeAddress) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = string(a.Type) + " " + a.Address
	}
	return strings.Join(texts, ", ")
}
