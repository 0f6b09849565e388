// Package kubeclient has the code of CSI drivers use clients of client-go, such as its fake one, in tests. Layer L4.
package kubeclient

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/watchlist"

	"kaz/internal/csi/kube"
)

// Of returns a client that sends its requests with a client of client-go.
func Of(client kubernetes.Interface) *kube.Client {
	core, storage := client.CoreV1(), client.StorageV1()
	noWatchList := watchlist.DoesClientNotSupportWatchListSemantics(client)
	return &kube.Client{
		Nodes:             wrap(core.Nodes(), noWatchList),
		PersistentVolumes: wrap(core.PersistentVolumes(), noWatchList),
		Secrets:           func(namespace string) kube.Secrets { return wrap(core.Secrets(namespace), noWatchList) },
		CSINodes:          wrap(storage.CSINodes(), noWatchList),
		VolumeAttachments: wrap(storage.VolumeAttachments(), noWatchList),
		AccessReviews:     client.AuthorizationV1().SubjectAccessReviews(),
	}
}

// resource is a resource that tells informers that its client cannot send the first list as a watch, which the fake one
// cannot.
type resource[T, L any] struct {
	kube.Resource[T, L]
	noWatchList bool
}

func wrap[T, L any](r kube.Resource[T, L], noWatchList bool) kube.Resource[T, L] {
	return resource[T, L]{r, noWatchList}
}

// IsWatchListSemanticsUnSupported is asked by informers.
func (r resource[T, L]) IsWatchListSemanticsUnSupported() bool { return r.noWatchList }
