package localcluster

import (
	"context"
	_ "embed" // the manifests of the example
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

//go:embed example.yaml
var examplePods []byte

//go:embed example_service.yaml
var exampleService []byte

//go:embed example_disk.yaml
var exampleOfDisk []byte

// exampleTimeout bounds the wait for the first answer of the example.
const exampleTimeout = 2 * time.Minute

// hasExample reports whether the cluster starts the example.
func (n *realNodes) hasExample() bool { return n.Example && len(n.Without) == 0 }

// startExample waits for a pod of the example, then gives it a Service, and waits until that answers from outside the cluster. The pods
// were applied before. A load balancer that found no pod at its first probe would ask again after five seconds.
func (n *realNodes) startExample(ctx context.Context) error {
	if !n.hasExample() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exampleTimeout,
		fmt.Errorf("no answer within %s; kubectl describe service/hello statefulset/notes, and %s, may say why",
			exampleTimeout, n.path("logs")))
	defer cancel()
	client, err := newClient(n.kubeconfig())
	if err != nil {
		return err
	}
	if err := n.poll(ctx, exampleTimeout, func(ctx context.Context) (bool, error) { return exampleRuns(ctx, client), nil }); err != nil {
		return err
	}
	if err := n.apply(ctx, exampleService); err != nil {
		return err
	}
	return n.poll(ctx, exampleTimeout, func(ctx context.Context) (bool, error) {
		s, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
		if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
			return false, nil
		}
		url := "http://" + s.Status.LoadBalancer.Ingress[0].IP + "/"
		if !answers(ctx, url) || !n.exampleHasDisk(ctx, client) {
			return false, nil
		}
		n.example = url
		return true, nil
	})
}

// exampleManifests are the pods of the example, and the one with a disk if the cluster has disks from the beginning.
func (n *realNodes) exampleManifests() [][]byte {
	switch {
	case !n.hasExample():
		return nil
	case n.exampleWaitsForDisk():
		return [][]byte{examplePods, exampleOfDisk}
	}
	return [][]byte{examplePods}
}

// exampleRuns reports whether a pod of the example is ready.
func exampleRuns(ctx context.Context, client kubernetes.Interface) bool {
	d, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
	return err == nil && d.Status.ReadyReplicas > 0
}

// exampleWaitsForDisk reports whether the example has a disk from the beginning.
func (n *realNodes) exampleWaitsForDisk() bool { return n.disks && !n.storageLater }

// exampleHasDisk reports whether the pod of the example with a disk is ready.
func (n *realNodes) exampleHasDisk(ctx context.Context, client kubernetes.Interface) bool {
	if !n.exampleWaitsForDisk() {
		return true
	}
	s, err := client.AppsV1().StatefulSets(metav1.NamespaceDefault).Get(ctx, "notes", metav1.GetOptions{})
	return err == nil && s.Status.ReadyReplicas > 0
}

// answers reports whether a URL answers with status 200.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a server on this machine needs no proxy
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return err == nil && answer.StatusCode == http.StatusOK
}
