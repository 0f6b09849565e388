package etcd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Pods reaches the pods that kubeadm makes for etcd, one on each member.
type Pods struct {
	Client kubernetes.Interface
	Config *rest.Config
}

const (
	podPrefix  = "etcd-"
	clientPort = 2379
)

// Names are the members with a pod that runs.
func (p Pods) Names(ctx context.Context) ([]string, error) {
	list, err := p.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=etcd"})
	if err != nil {
		return nil, fmt.Errorf("pods of etcd: %w", err)
	}
	var all []string
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning {
			all = append(all, pod.Spec.NodeName)
		}
	}
	slices.Sort(all)
	return all, nil
}

// Dial forwards a local port to the pod of a member, until closed.
func (p Pods) Dial(ctx context.Context, member string) (string, func(), error) {
	transport, upgrader, err := spdy.RoundTripperFor(p.Config)
	if err != nil {
		return "", nil, err
	}
	url := p.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(metav1.NamespaceSystem).Name(podPrefix + member).
		SubResource("portforward").URL()
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forward, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", clientPort)}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	var failed error
	go func() {
		failed = forward.ForwardPorts()
		close(ended)
	}()
	select {
	case <-ctx.Done():
		close(stop)
		return "", nil, ctx.Err()
	case <-ended:
		return "", nil, fmt.Errorf("forward a port to pod %s%s: %w", podPrefix, member, failed)
	case <-ready:
	}
	ports, err := forward.GetPorts()
	if err != nil {
		close(stop)
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() {
		close(stop)
		<-ended
	}, nil
}
