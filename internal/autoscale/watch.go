package autoscale

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch tells a provider of the nodes of a cluster until ctx ends. It does not wait for the first list.
func Watch(ctx context.Context, client kubernetes.Interface, p *Provider) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(onlyTemplate))
	_, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(object, p.Observe) },
		UpdateFunc: func(_, object any) { tell(object, p.Observe) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			tell(object, p.Forget)
		},
	})
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	factory.StartWithContext(ctx)
	return nil
}

func tell(object any, to func(*corev1.Node)) {
	if node, ok := object.(*corev1.Node); ok {
		to(node)
	}
}

// onlyTemplate drops what a template does not need, so that thousands of nodes need little memory.
func onlyTemplate(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return kept, nil
}
