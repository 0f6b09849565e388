package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestEvictPods checks which pods of a node are evicted at its shutdown, and that one that must not be evicted holds up no other.
func TestEvictPods(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) runtime.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}, Spec: corev1.PodSpec{NodeName: "node"}}
		if change != nil {
			change(p)
		}
		return p
	}
	now := metav1.NewTime(time.Now())
	client := fake.NewClientset(
		pod("budget", nil), pod("gone", nil), pod("plain", nil),
		pod("mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("daemon", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}}
		}),
		pod("ending", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/f"} }),
	)
	var evicted []string
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		create, is := a.(clienttesting.CreateAction)
		if !is || a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		e := create.GetObject().(*policyv1.Eviction)
		evicted = append(evicted, e.Name)
		if uid := e.DeleteOptions.Preconditions.UID; uid == nil || *uid != "uid" {
			t.Errorf("%s: precondition %v", e.Name, uid)
		}
		switch e.Name {
		case "budget":
			return true, nil, apierrors.NewTooManyRequests("the disruption budget keeps it", 1)
		case "gone":
			return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), e.Name)
		}
		return true, nil, nil
	})
	var selector string
	client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		selector = a.(clienttesting.ListAction).GetListRestrictions().Fields.String()
		return false, nil, nil
	})
	err := evictPods(t.Context(), client, "node", ofNoDaemonSet)
	if err == nil || !strings.Contains(err.Error(), "evict pod ns/budget") || strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
	slices.Sort(evicted)
	if want := []string{"budget", "gone", "plain"}; !slices.Equal(evicted, want) {
		t.Errorf("evicted %v, want %v", evicted, want)
	}
	evicted = nil
	if err := evictPods(t.Context(), client, "node", ofDaemonSet); err != nil || !slices.Equal(evicted, []string{"daemon"}) {
		t.Errorf("evicted %v, %v, want the pod of the DaemonSet", evicted, err)
	}
	if selector != "spec.nodeName=node" {
		t.Errorf("selector %q: a node may list its own pods only", selector)
	}
}
