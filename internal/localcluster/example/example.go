// Package example is what a new local cluster runs, so that its first minute shows a page behind a load balancer, and a disk. Layer L4.
package example

import (
	"context"
	_ "embed" // the manifests
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The manifests. A load balancer that finds no pod at its first probe asks again after five seconds, so Service comes after a ready pod.
var (
	//go:embed pods.yaml
	Pods []byte
	//go:embed service.yaml
	Service []byte
	//go:embed disk.yaml
	Disk []byte
)

// Timeout bounds the wait for the first answer.
const Timeout = 2 * time.Minute

// Runs reports whether a pod of Pods is ready.
func Runs(ctx context.Context, client kubernetes.Interface) bool {
	d, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
	return err == nil && d.Status.ReadyReplicas > 0
}

// HasDisk reports whether the pod of Disk is ready.
func HasDisk(ctx context.Context, client kubernetes.Interface) bool {
	s, err := client.AppsV1().StatefulSets(metav1.NamespaceDefault).Get(ctx, "notes", metav1.GetOptions{})
	return err == nil && s.Status.ReadyReplicas > 0
}

// URL returns the address at which the Service answers, and whether it does.
func URL(ctx context.Context, client kubernetes.Interface) (url string, answering bool) {
	s, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
	if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
		return "", false
	}
	url = "http://" + s.Status.LoadBalancer.Ingress[0].IP + "/"
	return url, answers(ctx, url)
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
