package shadow

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a list of Kubernetes.
const (
	pageSize  = 500
	mostPages = 40
)

// List reads the pages of a list of Kubernetes. More than 20,000 objects are an error. what names the objects in errors.
func List[T any, L metav1.ListInterface](ctx context.Context, what, labels string, items func(L) []T,
	page func(context.Context, metav1.ListOptions) (L, error),
) ([]T, error) {
	var all []T
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: labels}
	for range mostPages {
		answer, err := page(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		all = append(all, items(answer)...)
		if options.Continue = answer.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("there are more than %d %s", mostPages*pageSize, what)
}
