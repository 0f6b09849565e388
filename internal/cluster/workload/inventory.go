package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"kaz/internal/cluster/boot"
)

// Applied is what the cluster says of the manifests that were applied last. An older kaz has left nothing: then it is the zero value.
type Applied struct {
	// Checksum is that of the manifests, and objects are theirs.
	Checksum string
	objects  []*unstructured.Unstructured
}

// Applied reads what was applied last.
func (c *Cluster) Applied(ctx context.Context) (Applied, error) {
	m, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, boot.InventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Applied{}, nil
	}
	if err != nil {
		return Applied{}, fmt.Errorf("manifests of the cluster: %w", err)
	}
	objects, err := boot.ReadInventory(m.Data[boot.ObjectsKey])
	return Applied{m.Data[boot.ChecksumKey], objects}, err
}

// Has reports whether the cluster says that these manifests were applied last. Without manifests it need not say so.
func (a Applied) Has(manifests []boot.Manifest) bool {
	return a.Checksum == boot.Checksum(manifests) || a.Checksum == "" && len(manifests) == 0
}

// Gone returns the names of the objects that an upgrade deletes. They were applied, or are in the manifests of before, and
// they are not in the manifests of now. Objects that stay are left out.
func (a Applied) Gone(before, now []boot.Manifest) ([]string, error) {
	all, err := a.gone(before, now)
	var names []string
	for _, o := range all {
		if !stays(o) {
			names = append(names, identity(o))
		}
	}
	slices.Sort(names)
	return names, err
}

func (a Applied) gone(before, now []boot.Manifest) ([]*unstructured.Unstructured, error) {
	old, err := boot.Objects(before)
	if err != nil {
		return nil, err
	}
	all, err := boot.Objects(now)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, o := range all {
		known[boot.Key(o)] = true
	}
	var gone []*unstructured.Unstructured
	for _, o := range slices.Concat(old, a.objects) {
		if key := boot.Key(o); !known[key] {
			known[key] = true
			gone = append(gone, o)
		}
	}
	return gone, nil
}

// note says in the cluster which manifests were applied.
func (c applier) note(ctx context.Context, manifests []boot.Manifest) error {
	inventory, err := boot.Inventory(manifests)
	if err != nil {
		return err
	}
	text, err := json.Marshal(inventory.Object)
	if err != nil {
		return err
	}
	var m corev1.ConfigMapApplyConfiguration
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Apply(ctx, &m, options)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", boot.InventoryName, err)
	}
	return nil
}
