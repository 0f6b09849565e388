package localcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider/api"

	"kaz/internal/localazure/inventory"
)

// TestAllUsable decides whether the nodes of two machines can run pods. One of the machines is off.
func TestAllUsable(t *testing.T) {
	boot := time.Date(2026, 1, 1, 12, 0, 0, 5e8, time.UTC)
	machines := []inventory.Machine{{Name: "on", Running: true}, {Name: "off"}}
	node := func(name string, ready corev1.ConditionStatus, said time.Time, taints ...corev1.Taint) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(said.Truncate(time.Second))},
			}},
		}
	}
	for name, c := range map[string]struct {
		nodes []corev1.Node
		since time.Time
		want  bool
	}{
		"no node":                    {since: boot},
		"ready":                      {[]corev1.Node{node("on", corev1.ConditionTrue, boot)}, boot, true},
		"ready in the last start":    {[]corev1.Node{node("on", corev1.ConditionTrue, boot.Add(-time.Minute))}, boot, false},
		"not ready":                  {[]corev1.Node{node("on", corev1.ConditionFalse, boot)}, boot, false},
		"simulated, ready long ago":  {[]corev1.Node{node("on", corev1.ConditionTrue, boot.Add(-time.Hour))}, time.Time{}, true},
		"another machine is ready":   {[]corev1.Node{node("off", corev1.ConditionTrue, boot)}, boot, false},
		"not initialized by a cloud": {[]corev1.Node{node("on", corev1.ConditionTrue, boot, corev1.Taint{Key: cloudprovider.TaintExternalCloudProvider})}, boot, false},
	} {
		if got := allUsable(machines, c.nodes, c.since); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
