package app

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestTheFilterOfNodesIsForNodes checks that the node filter hides nodes, and no other objects.
func TestTheFilterOfNodesIsForNodes(t *testing.T) {
	named := func(name string, l map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name, Labels: l}
	}
	for filter, want := range map[string][]string{
		"":        {"a", "b", "none"},
		"pool=a":  {"a"},
		"pool":    {"a", "b"},
		"pool!=a": {"b", "none"},
		"pool in": nil,
	} {
		selector, err := (&ownFlags{nodeFilter: filter}).read()
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), `--node-filter-requirements "pool in": not a label selector`) {
				t.Errorf("%q: %v", filter, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		client := fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"pool": "a"}}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"pool": "b"}}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
			&corev1.Service{ObjectMeta: named("web", nil)}, &corev1.Service{ObjectMeta: named("api", map[string]string{"pool": "b"})},
		)
		factory := informers.NewSharedInformerFactory(client, 0)
		filterNodes(factory, selector)
		nodes, services := factory.Core().V1().Nodes().Lister(), factory.Core().V1().Services().Lister()
		t.Cleanup(factory.Shutdown)
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		seen, err := nodes.List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != len(want) {
			t.Errorf("%q: %d nodes, want %q", filter, len(seen), want)
		}
		for _, name := range want {
			if _, err := nodes.Get(name); err != nil {
				t.Errorf("%q: %v", filter, err)
			}
		}
		if all, err := services.List(labels.Everything()); err != nil || len(all) != 2 {
			t.Errorf("%q: %d Services, want all of them: %v", filter, len(all), err)
		}
	}
}
