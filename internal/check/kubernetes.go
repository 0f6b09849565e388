package check

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plan "kaz/internal/plan/check"
)

// list reads the pages of a list of Kubernetes, at most mostPages.
func list[T any, L metav1.ListInterface](ctx context.Context, labels, fields string, items func(L) []T,
	page func(context.Context, metav1.ListOptions) (L, error),
) ([]T, error) {
	var all []T
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: labels, FieldSelector: fields}
	for range mostPages {
		answer, err := page(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, items(answer)...)
		if options.Continue = answer.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("there are more than %d", mostPages*pageSize)
}

func (g *gatherer) nodes(ctx context.Context) (err error) {
	g.facts.Nodes, err = list(ctx, "", "", func(l *v1.NodeList) []v1.Node { return l.Items }, g.Kubernetes.CoreV1().Nodes().List)
	return err
}

func (g *gatherer) services(to *[]v1.Service) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*to, err = list(ctx, "", "", func(l *v1.ServiceList) []v1.Service { return l.Items },
			g.Kubernetes.CoreV1().Services(metav1.NamespaceAll).List)
		return err
	}
}

func (g *gatherer) volumes(ctx context.Context) (err error) {
	g.facts.Volumes, err = list(ctx, "", "", func(l *v1.PersistentVolumeList) []v1.PersistentVolume { return l.Items },
		g.Kubernetes.CoreV1().PersistentVolumes().List)
	return err
}

func (g *gatherer) attachments(ctx context.Context) (err error) {
	g.facts.Attachments, err = list(ctx, "", "", func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment { return l.Items },
		g.Kubernetes.StorageV1().VolumeAttachments().List)
	return err
}

func (g *gatherer) claims(ctx context.Context) (err error) {
	g.facts.Claims, err = list(ctx, "", "", func(l *v1.PersistentVolumeClaimList) []v1.PersistentVolumeClaim { return l.Items },
		g.Kubernetes.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List)
	return err
}

func (g *gatherer) classes(ctx context.Context) (err error) {
	g.facts.Classes, err = list(ctx, "", "", func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items },
		g.Kubernetes.StorageV1().StorageClasses().List)
	return err
}

func (g *gatherer) pending(ctx context.Context) (err error) {
	g.facts.Pending, err = list(ctx, "", "status.phase=Pending", func(l *v1.PodList) []v1.Pod { return l.Items },
		g.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List)
	g.facts.Pending = slices.DeleteFunc(g.facts.Pending, func(p v1.Pod) bool { return p.Status.Phase != v1.PodPending })
	return err
}

func (g *gatherer) events(ctx context.Context) (err error) {
	g.facts.Events, err = list(ctx, "", "type=Warning", func(l *v1.EventList) []v1.Event { return l.Items },
		g.Kubernetes.CoreV1().Events(metav1.NamespaceAll).List)
	return err
}

func (g *gatherer) components(ctx context.Context) error {
	var pods []v1.Pod
	for _, selector := range plan.Selectors() {
		some, err := list(ctx, selector, "", func(l *v1.PodList) []v1.Pod { return l.Items },
			g.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List)
		if err != nil {
			return err
		}
		pods = append(pods, some...)
	}
	g.facts.Components, g.facts.Arguments = plan.FindComponents(pods), plan.ArgumentsOf(pods)
	return nil
}

// version reads the version of the API server. The library's request knows no context, so it goes on when the context ends.
func (g *gatherer) version(ctx context.Context) error {
	type answer struct {
		version string
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		info, err := g.Kubernetes.Discovery().ServerVersion()
		if err != nil {
			answered <- answer{err: err}
			return
		}
		answered <- answer{version: info.GitVersion}
	}()
	select {
	case a := <-answered:
		g.facts.APIServer = a.version
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
