package gateway_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/localazure/core"
	localgateway "kaz/internal/localazure/plane/gateway"
)

// The usual rollout takes seconds. That of tools/test-long.sh has 10 pods and takes minutes, with the readiness gate alone: of so many pods
// some are always there.
var (
	rolloutPods    = flag.Int("rollout-pods", 2, "pods of TestRollout that are replaced")
	rolloutLatency = flag.Float64("rollout-latency", 0.05, "share of Azure's latency in TestRollout")
)

// dyingFor is how long a pod of a rollout serves after the beginning of its end. A write of the gateway takes longer.
func dyingFor() time.Duration { return time.Duration(*rolloutLatency * float64(10*time.Second)) }

// rollout replaces the pods of a Service one by one, as a Deployment with maxUnavailable 0 does.
type rollout struct {
	*cluster
	gate    bool // the pods have the readiness gate
	mu      sync.Mutex
	servers map[string]*httptest.Server // by the address of the pod
	slice   *discovery.EndpointSlice
}

// dial connects to a pod. A pod that is gone refuses.
func (r *rollout) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	s := r.servers[host]
	r.mu.Unlock()
	if s == nil {
		return nil, errors.New("connection refused")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
}

// add makes a pod with a server, and waits until Kubernetes takes it for ready.
func (r *rollout) add(n int) {
	r.t.Helper()
	p := gated(fmt.Sprintf("web-%d", n), fmt.Sprintf("10.240.1.%d", n))
	if !r.gate {
		p.Spec.ReadinessGates = nil
	}
	r.mu.Lock()
	r.servers[p.Status.PodIPs[0].IP] = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, p.Name) // a client that has gone does not read it
	}))
	r.mu.Unlock()
	r.createPod(p)
	r.slice.Endpoints = append(r.slice.Endpoints, endpointOf(p, !r.gate))
	r.update()
	if !r.gate {
		return
	}
	for deadline := time.Now().Add(time.Minute); r.gateOf(p.Name) != "True/Healthy"; <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("pod %s is %s, pools %s\n%s", p.Name, r.gateOf(p.Name), r.pooled(), r.log)
		}
	}
	<-time.After(dyingFor()) // Kubernetes notices
	r.slice.Endpoints[len(r.slice.Endpoints)-1].Conditions.Ready = new(true)
	r.update()
}

// remove lets the oldest pod end.
func (r *rollout) remove() {
	r.t.Helper()
	oldest := r.slice.Endpoints[0]
	r.slice.Endpoints[0].Conditions = discovery.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	r.update()
	<-time.After(dyingFor())
	r.mu.Lock()
	s := r.servers[oldest.Addresses[0]]
	delete(r.servers, oldest.Addresses[0])
	r.mu.Unlock()
	s.CloseClientConnections()
	s.Close()
	r.slice.Endpoints = r.slice.Endpoints[1:]
	r.update()
}

func (r *rollout) update() {
	r.t.Helper()
	now, err := r.kube.DiscoveryV1().EndpointSlices("default").Update(r.t.Context(), r.slice.DeepCopy(), metav1.UpdateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.slice = now
}

// run replaces the pods under load, and returns the number of requests and of those that failed.
func (r *rollout) run() (requests, failed int) {
	r.t.Helper()
	const interval = 5 * time.Millisecond // 200 requests a second
	pods := *rolloutPods
	loopback := &localgateway.Loopback{Backends: r.dial}
	plane := localgateway.Start(r.t.Context(), localgateway.Options{Azure: r.Emulator, Network: loopback, Log: slog.New(slog.DiscardHandler)})
	defer func() {
		if err := plane.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	r.config.Calm = 10 * time.Millisecond
	r.cluster.run(r.t)
	defer r.stop()
	gate := r.gate
	r.gate = false
	for n := range pods {
		r.add(n + 1)
	}
	r.gate = gate
	transport := &http.Transport{MaxIdleConnsPerHost: 50, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return loopback.Reach(ctx, network, net.JoinHostPort(r.address, "80"))
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for deadline := time.Now().Add(time.Minute); !serves(r.t, client); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("the gateway does not serve the pods")
		}
	}
	ctx, stop := context.WithCancel(r.t.Context())
	var load, calls sync.WaitGroup
	var mu sync.Mutex
	load.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			calls.Go(func() {
				good := serves(r.t, client)
				mu.Lock()
				defer mu.Unlock()
				requests++
				if !good {
					failed++
				}
			})
		}
	})
	for n := range pods {
		r.add(pods + n + 1)
		r.remove()
	}
	<-time.After(dyingFor())
	stop()
	load.Wait()
	calls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.servers {
		s.Close()
	}
	return requests, failed
}

// serves sends a request and reports whether a pod answers.
func serves(t testing.TB, client *http.Client) bool {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example.com/", http.NoBody)
	if err != nil {
		t.Error(err)
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}

// TestRollout replaces the pods behind an Ingress at 200 requests a second, while a write of the gateway takes longer than a pod lives
// after its end began. With the readiness gate no request fails. Without it the gateway is left with pods that are gone.
func TestRollout(t *testing.T) {
	for name, gate := range map[string]bool{"with the readiness gate": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			w := newGatedCluster(t, core.Options{})
			w.Azure = w.Restarted(core.Options{Latency: *rolloutLatency})
			w.config.Azure = w.Client
			slice, err := w.kube.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r := &rollout{cluster: w, gate: gate, servers: map[string]*httptest.Server{}, slice: slice}
			began := time.Now()
			requests, failed := r.run()
			t.Logf("%d pods replaced in %s: %d of %d requests failed", *rolloutPods, time.Since(began).Round(time.Second), failed, requests)
			if (failed == 0) != gate || requests == 0 {
				t.Errorf("%d of %d requests failed", failed, requests)
			}
		})
	}
}
