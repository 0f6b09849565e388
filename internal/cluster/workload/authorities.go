package workload

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	"kaz/internal/pause"
)

// The ConfigMaps of Kubernetes that have certificate authorities.
const (
	// rootsName is that of each namespace from which pods get the authorities. The controller manager writes it.
	rootsName = "kube-root-ca.crt"
	rootsKey  = "ca.crt"
	// discoveryName is that of kube-public from which machines that join get the authorities.
	discoveryName = "cluster-info"
	discoveryKey  = "kubeconfig"
	signature     = "jws-kubeconfig-" // the controller manager signs it for each join token
	// clientsName is that of kube-system from which API servers of extensions get the authorities of clients. API servers add theirs to
	// it, and take none away.
	clientsName   = "extension-apiserver-authentication"
	clientsKey    = "client-ca-file"
	frontProxyKey = "requestheader-client-ca-file"
)

// Trust reads and changes which certificate authorities a cluster gives to its machines and pods.
type Trust struct{ *Cluster }

// SetDiscovery gives machines that join these certificate authorities in PEM. They wait until the controller manager has signed them.
func (c Trust) SetDiscovery(ctx context.Context, authorities []byte) error {
	maps := c.Client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	m, err := maps.Get(ctx, discoveryName, metav1.GetOptions{})
	if err == nil {
		var changed bool
		if changed, err = discover(m, authorities); changed && err == nil {
			_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("certificate authorities for machines that join: %w", err)
	}
	return nil
}

// discover changes the authorities of a ConfigMap for machines that join. It is false if it has them.
func discover(m *corev1.ConfigMap, authorities []byte) (bool, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(m.Data[discoveryKey]), &config); err != nil {
		return false, fmt.Errorf("ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	changed, data := false, base64.StdEncoding.EncodeToString(authorities)
	clusters, _ := config["clusters"].([]any)
	for _, one := range clusters {
		entry, _ := one.(map[string]any)
		if cluster, ok := entry["cluster"].(map[string]any); ok && cluster["certificate-authority-data"] != data {
			cluster["certificate-authority-data"], changed = data, true
		}
	}
	if len(clusters) == 0 {
		return false, fmt.Errorf("ConfigMap %s/%s has no cluster: want the kubeconfig that kubeadm writes", m.Namespace, m.Name)
	}
	text, err := yaml.Marshal(config)
	if err != nil || !changed {
		return false, err
	}
	m.Data[discoveryKey] = string(text)
	maps.DeleteFunc(m.Data, func(key, _ string) bool { return strings.HasPrefix(key, signature) })
	return true, nil
}

// SetClients lets API servers of extensions accept clients with certificates of these authorities, and of no others.
func (c Trust) SetClients(ctx context.Context, authorities, frontProxy []byte) error {
	maps := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	m, err := maps.Get(ctx, clientsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the API server makes it
	}
	if err == nil && (m.Data[clientsKey] != string(authorities) || m.Data[frontProxyKey] != string(frontProxy)) {
		m.Data[clientsKey], m.Data[frontProxyKey] = string(authorities), string(frontProxy)
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("certificate authorities for API servers of extensions: %w", err)
	}
	return nil
}

// roots returns the ConfigMaps from which pods get the authorities, by namespace. It leaves out namespaces that are being
// deleted: the controller manager does not update their ConfigMaps, and no pod starts there.
func (c Trust) roots(ctx context.Context) (map[string]corev1.ConfigMap, error) {
	list, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", rootsName).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("certificate authorities for pods: %w", err)
	}
	namespaces, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("namespaces of the cluster: %w", err)
	}
	all := map[string]corev1.ConfigMap{}
	for _, m := range list.Items {
		if m.Name == rootsName {
			all[m.Namespace] = m
		}
	}
	for _, n := range namespaces.Items {
		if n.Status.Phase == corev1.NamespaceTerminating {
			delete(all, n.Name)
		}
	}
	return all, nil
}

// WithoutRoots returns the namespaces in which pods get certificate authorities that right does not accept. It includes the
// system's namespace if that has no authorities.
func (c Trust) WithoutRoots(ctx context.Context, right func(roots []byte) bool) ([]string, error) {
	all, err := c.roots(ctx)
	if err != nil {
		return nil, err
	}
	var wrong []string
	if _, has := all[metav1.NamespaceSystem]; !has {
		wrong = append(wrong, metav1.NamespaceSystem)
	}
	for namespace, m := range all {
		if !right([]byte(m.Data[rootsKey])) {
			wrong = append(wrong, namespace)
		}
	}
	slices.Sort(wrong)
	return wrong, nil
}

// AwaitRoots waits until the pods of all namespaces get certificate authorities that right accepts.
func (c Trust) AwaitRoots(ctx context.Context, most time.Duration, right func(roots []byte) bool) error {
	deadline := time.Now().Add(most)
	for {
		wrong, err := c.WithoutRoots(ctx, right)
		if err != nil || len(wrong) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s the ConfigMap %s has other certificate authorities in the namespaces %s: want a controller "+
				"manager that works: look at its log in kube-system", most, rootsName, strings.Join(wrong, ", "))
		}
		if err := pause.For(ctx, c.poll()); err != nil {
			return err
		}
	}
}

// PodsBeforeRoots counts the pods, by node, that have started before their namespace got the certificate authorities that it has now. Pods
// that a controller makes again count, also those of DaemonSets.
func (c Trust) PodsBeforeRoots(ctx context.Context) (map[string]int, error) {
	pods, err := c.podsBeforeRoots(ctx, "")
	count := map[string]int{}
	for _, p := range pods {
		count[p.Spec.NodeName]++
	}
	return count, err
}

// podsBeforeRoots are those of a node, or of all nodes for "".
func (c Trust) podsBeforeRoots(ctx context.Context, node string) ([]corev1.Pod, error) {
	roots, err := c.roots(ctx)
	if err != nil {
		return nil, err
	}
	list, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("pods of the cluster: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		m, has := roots[p.Namespace]
		elsewhere := p.Spec.NodeName == "" || node != "" && p.Spec.NodeName != node
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return elsewhere || ended || !has || metav1.GetControllerOf(&p) == nil || !readsRoots(p) || p.CreationTimestamp.After(written(m))
	}), nil
}

// readsRoots reports whether a pod gets the certificate authorities, as each pod with the token of its service account does.
func readsRoots(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && s.ConfigMap.Name == rootsName
		})
	})
}

// written is when an object was written last.
func written(m corev1.ConfigMap) time.Time {
	last := m.CreationTimestamp.Time
	for _, f := range m.ManagedFields {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// RestartPods evicts the pods of a node that [Cluster.PodsBeforeRoots] counts, which heeds disruption budgets. It waits until they are
// gone. Their controllers make others.
func (c Trust) RestartPods(ctx context.Context, node string, most time.Duration) error {
	deadline := time.Now().Add(most)
	for {
		pods, err := c.podsBeforeRoots(ctx, node)
		if err != nil || len(pods) == 0 {
			return err
		}
		var reasons []string
		for _, p := range pods {
			reason, err := c.evictPod(ctx, p)
			if err != nil {
				return err
			}
			if reason != "" {
				reasons = append(reasons, reason)
			}
		}
		if time.Now().After(deadline) {
			return &BlockedError{node, reasons}
		}
		if err := pause.For(ctx, c.poll()); err != nil {
			return err
		}
	}
}
