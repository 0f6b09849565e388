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
var exampleManifests []byte

//go:embed example_disk.yaml
var exampleOfDisk []byte

// exampleTimeout bounds the wait for the first answer of the example.
const exampleTimeout = 2 * time.Minute

// startExample applies the example and waits until it answers from outside the cluster.
func (n *realNodes) startExample(ctx context.Context) error {
	if !n.Example || len(n.Without) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exampleTimeout,
		fmt.Errorf("no answer within %s; kubectl describe service/hello statefulset/notes, and %s, may say why",
			exampleTimeout, n.path("logs")))
	defer cancel()
	if err := n.apply(ctx, exampleManifests); err != nil {
		return err
	}
	if n.exampleWaitsForDisk() {
		if err := n.apply(ctx, exampleOfDisk); err != nil {
			return err
		}
	}
	client, err := newClient(n.kubeconfig())
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
		if err == nil && len(s.Status.LoadBalancer.Ingress) > 0 {
			url := "http://" + s.Status.LoadBalancer.Ingress[0].IP + "/"
			if answers(ctx, url) && n.exampleHasDisk(ctx, client) {
				n.example = url
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
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
