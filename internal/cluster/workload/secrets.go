package workload

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// secretsAtOnce is how many Secrets are read with one request.
const secretsAtOnce = 200

// RewriteSecrets lets the API server write all Secrets once more, with the key that encrypts them now, and returns their number. The patch
// is empty: the API server writes an unchanged Secret if it was written with another key. Secrets that are deleted in between are no error.
func (c *Cluster) RewriteSecrets(ctx context.Context) (int, error) {
	names, err := c.secretNames(ctx)
	if err != nil {
		return 0, err
	}
	for _, at := range names {
		_, err := c.Client.CoreV1().Secrets(at.Namespace).Patch(ctx, at.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("write Secret %s once more: %w", at, err)
		}
	}
	return len(names), nil
}

// secretNames are the names of all Secrets.
func (c *Cluster) secretNames(ctx context.Context) ([]types.NamespacedName, error) {
	var all []types.NamespacedName
	for page := (metav1.ListOptions{Limit: secretsAtOnce}); ; {
		list, err := c.Client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("list Secrets: %w", err)
		}
		for _, s := range list.Items {
			all = append(all, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return all, nil
		}
	}
}
