package autoscale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Watch tells a provider of the nodes of a cluster until ctx ends. Unlike an informer it keeps no copy of the nodes. The
// provider remembers one node of each group, and only the names of the other nodes.
func Watch(ctx context.Context, client kubernetes.Interface, p *Provider) {
	const again, jitter = time.Second, .5
	w := nodeWatch{client: client, provider: p, known: map[string]string{}}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := w.follow(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn("the nodes cannot be watched; they are listed again", "error", err)
		}
	}, again, jitter, true)
}

// nodeWatch is a watch of nodes.
type nodeWatch struct {
	client   kubernetes.Interface
	provider *Provider
	known    map[string]string // provider ids by the names of nodes
	grouped  bool              // all nodes were listed while the provider had its groups
}

// follow lists all nodes and then tells of changes until the watch ends.
func (w *nodeWatch) follow(ctx context.Context) error {
	version, err := w.list(ctx)
	if err == nil && !w.grouped {
		// The nodes show which machines are well, so they are listed before the groups are known. The second list assigns
		// them to groups.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.provider.first:
		}
		version, err = w.list(ctx)
		w.grouped = err == nil
	}
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return w.client.CoreV1().Nodes().Watch(ctx, o)
		},
	})
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		switch node := change.Object.(type) {
		case *corev1.Node:
			w.tell(change.Type, node)
		case *metav1.Status:
			return fmt.Errorf("watch nodes: %w", &apierrors.StatusError{ErrStatus: *node})
		}
	}
	return nil
}

// list tells of all nodes, page by page, and of those that are gone. It returns the version from which changes follow.
func (w *nodeWatch) list(ctx context.Context) (version string, err error) {
	const page = 500
	before := w.known
	w.known = make(map[string]string, len(before))
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := w.client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			w.known = before
			return "", err
		}
		for i := range list.Items {
			w.tell(watch.Added, &list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			version = list.ResourceVersion
			break
		}
	}
	for name, providerID := range before {
		if _, is := w.known[name]; !is {
			w.provider.Forget(&corev1.Node{Spec: corev1.NodeSpec{ProviderID: providerID}})
		}
	}
	return version, nil
}

// tell tells of one change.
func (w *nodeWatch) tell(change watch.EventType, node *corev1.Node) {
	switch change {
	case watch.Deleted:
		delete(w.known, node.Name)
		w.provider.Forget(node)
	case watch.Added, watch.Modified:
		w.known[node.Name] = node.Spec.ProviderID
		w.provider.Observe(onlyTemplate(node))
	}
}

// onlyTemplate returns what a template and a provider need of a node.
func onlyTemplate(node *corev1.Node) *corev1.Node {
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels},
		Spec:       corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return kept
}
