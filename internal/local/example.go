package local

import (
	"context"
	_ "embed" // the manifests of the example
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed example.yaml
var exampleManifests []byte

// exampleTimeout bounds the wait for the first answer of the example.
const exampleTimeout = 2 * time.Minute

// startExample applies the example and waits until it answers from outside the cluster.
func (n *realNodes) startExample(ctx context.Context) error {
	if !n.Example || len(n.Without) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exampleTimeout,
		fmt.Errorf("no answer within %s; kubectl describe service hello, and %s, may say why", exampleTimeout, n.path("logs")))
	defer cancel()
	if err := n.apply(ctx, exampleManifests); err != nil {
		return err
	}
	client, err := newClient(n.controlPlane.Kubeconfig)
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
		if err == nil && len(s.Status.LoadBalancer.Ingress) > 0 {
			url := "http://" + s.Status.LoadBalancer.Ingress[0].IP + "/"
			if answers(ctx, url) {
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
