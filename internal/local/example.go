package local

import (
	"context"
	_ "embed" // the manifests of the example
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/local/controlplane"
)

//go:embed example.yaml
var example []byte

// exampleWithin bounds the wait for the example's first answer.
const exampleWithin = 2 * time.Minute

// startExample applies the example and waits until it answers from outside. Simulated
// nodes have nothing that could answer.
func (c *cluster) startExample(ctx context.Context, binaries controlplane.Binaries) error {
	if !c.Example || !c.real() || len(c.Without) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exampleWithin, fmt.Errorf("no answer within %s; kubectl describe service hello, and %s, may say why", exampleWithin, c.path("logs")))
	defer cancel()
	if err := c.apply(ctx, binaries, example); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "hello", metav1.GetOptions{})
		if err == nil && len(s.Status.LoadBalancer.Ingress) > 0 {
			url := "http://" + s.Status.LoadBalancer.Ingress[0].IP + "/"
			if greets(ctx, url) {
				c.greeting = url
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

// greets reports whether somebody answers well at a URL.
func greets(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is on this machine
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return err == nil && answer.StatusCode == http.StatusOK
}
