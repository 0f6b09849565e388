package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// openCluster returns a client of the API server with a kubeconfig.
func openCluster(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// evictPods asks the API server to evict those pods of a node for which which returns true. The pods leave their Services before they
// end. The kubelet's own shutdown does not do that: its pods count as ready until their containers have ended, and other nodes send to
// them. Pods that a disruption budget keeps are left to the kubelet.
func evictPods(ctx context.Context, client kubernetes.Interface, node string, which func(*corev1.Pod) bool) error {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", node, err)
	}
	var problems []error
	for _, p := range pods.Items {
		if !evictable(&p) || !which(&p) {
			continue
		}
		err := client.CoreV1().Pods(p.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			problems = append(problems, fmt.Errorf("evict pod %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(problems...)
}

// evictable reports whether a pod can be evicted: it runs, and the API server decides whether it does.
func evictable(p *corev1.Pod) bool {
	_, mirrored := p.Annotations[corev1.MirrorPodAnnotationKey]
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return !mirrored && !ended && p.DeletionTimestamp == nil
}

// ofDaemonSet reports whether a DaemonSet has a pod. It replaces an evicted pod at once, on the same node.
func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

func ofNoDaemonSet(p *corev1.Pod) bool { return !ofDaemonSet(p) }
