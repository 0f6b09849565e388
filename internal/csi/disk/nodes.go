package disk

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/kube"
	"kaz/internal/plan/nodes"
)

// NamedMachines are virtual machines of one resource group with the names of their nodes. They are for drivers without a
// Kubernetes API.
type NamedMachines struct {
	Group azure.ID
	Azure azure.Reader
}

// Machine implements [Nodes].
func (n NamedMachines) Machine(ctx context.Context, node string) (azure.ID, error) {
	id := n.Group.Resource(compute.VirtualMachines, node)
	_, err := azure.At(n.Azure, azure.Attach).Get(ctx, id)
	return id, err
}

// Node implements [Nodes].
func (n NamedMachines) Node(_ context.Context, machine azure.ID) string {
	if machine.Is(compute.VirtualMachines) && strings.EqualFold(machine.Group(), n.Group.Group()) {
		return machine.Name()
	}
	return ""
}

// KubernetesNodes finds machines by the provider ids of Node objects.
type KubernetesNodes struct {
	client   *kube.Client
	informer cache.SharedIndexInformer
}

const byMachine = "machine"

// NewKubernetesNodes watches the Node objects until ctx ends. It does not wait for the first list.
func NewKubernetesNodes(ctx context.Context, client *kube.Client) (*KubernetesNodes, error) {
	informer := kube.NewInformer(client.Nodes, &corev1.Node{}, cache.Indexers{byMachine: func(object any) ([]string, error) {
		if machine, ok := machineOf(object.(*corev1.Node)); ok {
			return []string{machine.Key()}, nil
		}
		return nil, nil
	}})
	if err := informer.SetTransform(onlyProviderID); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return &KubernetesNodes{client: client, informer: informer}, nil
}

// Synced returns an error until the Node objects are known.
func (n *KubernetesNodes) Synced(context.Context) error {
	if !n.informer.HasSynced() {
		return &azure.Error{Kind: azure.Unavailable, Message: "the nodes have not been read from the Kubernetes API yet"}
	}
	return nil
}

// onlyProviderID drops what the driver does not need, so that thousands of nodes need little memory.
func onlyProviderID(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{ProviderID: node.Spec.ProviderID},
	}, nil
}

func machineOf(node *corev1.Node) (azure.ID, bool) { return nodes.MachineID(node.Spec.ProviderID) }

// Machine implements [Nodes].
func (n *KubernetesNodes) Machine(ctx context.Context, name string) (azure.ID, error) {
	node, err := n.node(ctx, strings.ToLower(name))
	if err != nil {
		return "", err
	}
	machine, ok := machineOf(node)
	if !ok {
		return "", fmt.Errorf("node %s has the provider id %q, which names no machine in Azure", name, node.Spec.ProviderID)
	}
	return machine, nil
}

func (n *KubernetesNodes) node(ctx context.Context, name string) (*corev1.Node, error) {
	object, found, err := n.informer.GetStore().GetByKey(name)
	if err == nil && found {
		if node, ok := object.(*corev1.Node); ok && node.Spec.ProviderID != "" {
			return node, nil
		}
	}
	if err := n.Synced(ctx); err != nil {
		return nil, err // without waiting for an API server that may not answer
	}
	node, err := n.client.Nodes.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &azure.Error{Kind: azure.NotFound, Message: "there is no node " + name, Cause: err}
	case err != nil:
		return nil, unread(err, "node %s", name)
	}
	return node, nil
}

// unread is the error of an object that could not be read from the Kubernetes API. Callers ask again.
func unread(err error, format string, args ...any) error {
	return &azure.Error{Kind: azure.Unavailable, Message: "read " + fmt.Sprintf(format, args...), Cause: err}
}

// Node implements [Nodes].
func (n *KubernetesNodes) Node(_ context.Context, machine azure.ID) string {
	objects, err := n.informer.GetIndexer().ByIndex(byMachine, machine.Key())
	if err != nil || len(objects) == 0 {
		return ""
	}
	return objects[0].(*corev1.Node).Name
}
