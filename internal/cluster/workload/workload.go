// Package workload is what kaz cluster reads and changes inside of a cluster: its nodes, what runs on them, and the version in
// its configuration. Layer L3.
package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"kaz/internal/cluster/naming"
)

// FirstAnnotation at a node, with the value "true", lets it go before other nodes.
const FirstAnnotation = "kaz/delete-first"

// Cluster is a cluster by its API server.
type Cluster struct {
	Client kubernetes.Interface
	// Objects and Kinds are for objects of any kind.
	Objects dynamic.Interface
	Kinds   meta.ResettableRESTMapper
	// Metrics reads the metrics of an API server.
	Metrics func(ctx context.Context) ([]byte, error)
	// Say gets a line for each event, for people.
	Say func(format string, args ...any)
	// Poll is the time between two looks, by default 2 s.
	Poll time.Duration
	// Close closes the connections to API servers, nil for none.
	Close func()
}

// Renew lets the next requests make connections of their own, which lead to API servers that the load balancer knows now.
func (c *Cluster) Renew() {
	if c.Close != nil {
		c.Close()
	}
}

func (c *Cluster) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(format, args...)
	}
}

func (c *Cluster) poll() time.Duration {
	if c.Poll == 0 {
		return 2 * time.Second
	}
	return c.Poll
}

// Node is a node and what runs on it.
type Node struct {
	Name, Version, Revision, Zone string
	Ready, Cordoned               bool
	First                         bool
	// Pressure is what the node is short of: DiskPressure, MemoryPressure or PIDPressure.
	Pressure []string
	// Excluded says that load balancers of Services send nothing to the node.
	Excluded bool
	Created  time.Time
	// Pods are those that a drain evicts.
	Pods int
	// Volumes are attached to the node.
	Volumes int
	// APIServer says that an API server of kubeadm runs on the node and is ready.
	APIServer bool
}

// Nodes reads all nodes, by name.
func (c *Cluster) Nodes(ctx context.Context) (map[string]Node, error) {
	list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("nodes of the cluster: %w", err)
	}
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("pods of the cluster: %w", err)
	}
	attached, err := c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("volume attachments of the cluster: %w", err)
	}
	all := map[string]Node{}
	for _, n := range list.Items {
		why, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
		all[n.Name] = Node{
			Name: n.Name, Version: strings.TrimPrefix(n.Status.NodeInfo.KubeletVersion, "v"), Zone: n.Labels[corev1.LabelTopologyZone],
			Revision: n.Labels[naming.RevisionLabel], Excluded: excluded && why != leaving, Pressure: pressureOf(n),
			Ready: nodeReady(n), Cordoned: n.Spec.Unschedulable, First: n.Annotations[FirstAnnotation] == "true",
			Created: n.CreationTimestamp.Time,
		}
	}
	for _, pod := range pods.Items {
		n, has := all[pod.Spec.NodeName]
		if !has {
			continue
		}
		if evictable(pod) {
			n.Pods++
		}
		if pod.Name == "kube-apiserver-"+n.Name && pod.Namespace == metav1.NamespaceSystem && podReady(pod) {
			n.APIServer = true
		}
		all[n.Name] = n
	}
	for _, a := range attached.Items {
		if n, has := all[a.Spec.NodeName]; has {
			n.Volumes++
			all[n.Name] = n
		}
	}
	return all, nil
}

func nodeReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func pressureOf(n corev1.Node) []string {
	var all []string
	for _, c := range n.Status.Conditions {
		switch c.Type {
		case corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure:
			if c.Status == corev1.ConditionTrue {
				all = append(all, string(c.Type))
			}
		}
	}
	return all
}

func podReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// evictable reports whether a drain evicts a pod. It does not evict pods of DaemonSets, which would be made again, static
// pods from files of the node, and pods that have ended.
func evictable(p corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	owner := metav1.GetControllerOf(&p)
	return owner == nil || owner.Kind != "DaemonSet"
}

// Cordon lets nodes take no further pods, or take them again. A node that is gone is no error.
func (c *Cluster) Cordon(ctx context.Context, on bool, names ...string) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	for _, name := range names {
		_, err := c.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cordon node %s: %w", name, err)
		}
	}
	return nil
}

// Forget deletes the object of a node after its machine is gone.
func (c *Cluster) Forget(ctx context.Context, name string) error {
	err := c.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}

// kubeadmConfig is the object with the configuration of a cluster that kubeadm made.
const (
	kubeadmConfig = "kubeadm-config"
	clusterKey    = "ClusterConfiguration"
)

// configuration reads the configuration of the cluster.
func (c *Cluster) configuration(ctx context.Context) (*corev1.ConfigMap, map[string]any, error) {
	m, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, kubeadmConfig, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("configuration of kubeadm: %w", err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(m.Data[clusterKey]), &config); err != nil {
		return nil, nil, fmt.Errorf("configuration of kubeadm: %w", err)
	}
	return m, config, nil
}

// Version is the version that new members take.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	_, config, err := c.configuration(ctx)
	if err != nil {
		return "", err
	}
	version, _ := config["kubernetesVersion"].(string)
	return strings.TrimPrefix(version, "v"), nil
}

// Stale reports whether the programs of new members are configured otherwise: fields of apiServer, controllerManager and scheduler.
func (c *Cluster) Stale(ctx context.Context, programs map[string]map[string]any) (bool, error) {
	_, config, err := c.configuration(ctx)
	if err != nil {
		return false, err
	}
	before, err := yaml.Marshal(config)
	if err != nil {
		return false, err
	}
	configure(config, programs)
	after, err := yaml.Marshal(config)
	return string(before) != string(after), err
}

// configure sets fields of programs in a configuration of kubeadm.
func configure(config map[string]any, programs map[string]map[string]any) {
	for program, fields := range programs {
		part, _ := config[program].(map[string]any)
		if part == nil {
			part = map[string]any{}
			config[program] = part
		}
		maps.Copy(part, fields)
	}
}

// SetVersion sets the version that new members take, and the configuration of their programs. kubeadm of that version reads them when it
// joins.
func (c *Cluster) SetVersion(ctx context.Context, version string, programs map[string]map[string]any) error {
	m, config, err := c.configuration(ctx)
	if err != nil {
		return err
	}
	config["kubernetesVersion"] = "v" + version
	configure(config, programs)
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	m.Data[clusterKey] = string(text)
	if _, err := c.Client.CoreV1().ConfigMaps(m.Namespace).Update(ctx, m, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("configuration of kubeadm: %w", err)
	}
	return nil
}

// SetProxy gives kube-proxy the image of a version. A cluster without kube-proxy stays as it is.
func (c *Cluster) SetProxy(ctx context.Context, version string) error {
	set, err := c.Client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && setTag(set.Spec.Template.Spec.Containers, "kube-proxy", "v"+version, nil) {
		_, err = c.Client.AppsV1().DaemonSets(metav1.NamespaceSystem).Update(ctx, set, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("kube-proxy: %w", err)
	}
	return nil
}

// SetDNS gives CoreDNS the image with a tag, unless it has one for which keep is true. A cluster without CoreDNS of kubeadm stays as it
// is.
func (c *Cluster) SetDNS(ctx context.Context, tag string, keep func(tag string) bool) error {
	deployment, err := c.Client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && setTag(deployment.Spec.Template.Spec.Containers, "coredns", tag, keep) {
		_, err = c.Client.AppsV1().Deployments(metav1.NamespaceSystem).Update(ctx, deployment, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("CoreDNS: %w", err)
	}
	return nil
}

// setTag gives the image of a container another tag. It is false if nothing changes. An image without a tag such as v1.2.3 stays.
func setTag(containers []corev1.Container, name, tag string, keep func(tag string) bool) bool {
	changed := false
	for i := range containers {
		image, had, found := strings.Cut(containers[i].Image, ":v")
		if containers[i].Name != name || !found || "v"+had == tag || strings.Contains(had, "@") || keep != nil && keep("v"+had) {
			continue
		}
		containers[i].Image, changed = image+":"+tag, true
	}
	return changed
}

// attachments are the volumes that are attached to a node.
func (c *Cluster) attachments(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	list, err := c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName != node }), nil
}
