package readiness_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/dns/readiness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slice is an EndpointSlice of Service web with endpoints that are ready or not.
func slice(ready ...bool) *discovery.EndpointSlice {
	s := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", Labels: map[string]string{discovery.LabelServiceName: "web"},
	}}
	for _, r := range ready {
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{Conditions: discovery.EndpointConditions{Ready: &r}})
	}
	return s
}

// TestWatcher follows a Service whose endpoints come and go.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset(slice(true))
		w, err := readiness.New(client, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		set := func(ready ...bool) {
			if _, err := client.DiscoveryV1().EndpointSlices("default").Update(ctx, slice(ready...), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		check := func(what string, want map[string]bool, changed bool) {
			t.Helper()
			if have := w.Ready(); !maps.Equal(have, want) {
				t.Errorf("%s: %v, want %v", what, have, want)
			}
			select {
			case <-w.Changed():
				if !changed {
					t.Errorf("%s: an answer changed", what)
				}
			default:
				if changed {
					t.Errorf("%s: no answer changed", what)
				}
			}
		}
		const web = "service/default/web"
		yes, no := map[string]bool{web: true}, map[string]bool{web: false}
		pass(time.Second)
		check("at the start", yes, true)
		set(false, false)
		pass(50 * time.Second)
		check("not ready for 50 s", yes, false)
		set(true)
		pass(5 * time.Second)
		set()
		pass(50 * time.Second)
		check("not ready for 50 s again", yes, false)
		pass(15 * time.Second)
		check("not ready for a minute", no, true)
		set(false, true)
		pass(20 * time.Second)
		check("ready for 20 s", no, false)
		pass(15 * time.Second)
		check("ready for half a minute", yes, true)
		if err := client.DiscoveryV1().EndpointSlices("default").Delete(ctx, "web-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		check("without slices", map[string]bool{}, true)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
