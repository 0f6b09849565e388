package cloudprovider

import (
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/cloud-provider/node/helpers"

	"kaz/internal/plan/nodes"
)

// outOfService taints nodes with permanently stopped machines, so that their volumes can be attached
// elsewhere at once. It writes from a queue, because informer handlers must not wait for the API
// server.
type outOfService struct {
	client kubernetes.Interface
	lister listers.NodeLister
	queue  workqueue.TypedRateLimitingInterface[string]
	done   sync.WaitGroup
}

// keepOutOfService watches nodes until close is called.
func keepOutOfService(client kubernetes.Interface, informer coreinformers.NodeInformer) (*outOfService, error) {
	o := &outOfService{
		client: client, lister: informer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	look := func(object any) {
		if n, ok := object.(*corev1.Node); ok {
			if taint, untaint := nodes.Serves(n); taint || untaint {
				o.queue.Add(n.Name)
			}
		}
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, is any) { look(is) }})
	if err != nil {
		o.queue.ShutDown()
		return nil, err
	}
	o.done.Go(func() {
		for o.next() {
		}
	})
	return o, nil
}

func (o *outOfService) close() {
	o.queue.ShutDown()
	o.done.Wait()
}

// next processes one node and reports whether the queue is still open.
func (o *outOfService) next() bool {
	name, down := o.queue.Get()
	if down {
		return false
	}
	defer o.queue.Done(name)
	err := o.mark(name)
	if err == nil || apierrors.IsNotFound(err) {
		o.queue.Forget(name)
		return true
	}
	slog.Warn("taint of a node that is out of service", "node", name, "error", err)
	o.queue.AddRateLimited(name)
	return true
}

func (o *outOfService) mark(name string) error {
	n, err := o.lister.Get(name)
	if err != nil {
		return err
	}
	switch taint, untaint := nodes.Serves(n); {
	case taint:
		slog.Info("node is out of service", "node", name, "why", "its machine is off")
		return helpers.AddOrUpdateTaintOnNode(o.client, name, nodes.OutOfService())
	case untaint:
		slog.Info("node is in service again", "node", name)
		return helpers.RemoveTaintOffNode(o.client, name, n, nodes.OutOfService())
	}
	return nil
}
