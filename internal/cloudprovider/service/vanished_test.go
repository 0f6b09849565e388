package service_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// vanishing deletes an instance of the scale set when it is about to be written. Lists of instances show it for the
// time stale afterwards.
type vanishing struct {
	http.RoundTripper
	t        testing.TB
	instance string
	stale    time.Duration
	since    time.Time
	puts     int
	last     map[string]any // the instance as lists showed it
}

func (v *vanishing) RoundTrip(r *http.Request) (*http.Response, error) {
	const instances = testkit.Nodes + "/virtualMachines"
	switch {
	case r.Method == http.MethodPut && strings.EqualFold(r.URL.Path, string(instances)+"/"+v.instance):
		if v.puts++; v.since.IsZero() {
			v.since = time.Now()
			v.remove()
		}
	case r.Method == http.MethodGet && strings.EqualFold(r.URL.Path, string(instances)):
		reply, err := v.RoundTripper.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return v.show(reply)
	}
	return v.RoundTripper.RoundTrip(r)
}

// show adds the deleted instance to a list while lists are stale.
func (v *vanishing) show(reply *http.Response) (*http.Response, error) {
	var list struct {
		Value []map[string]any `json:"value"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil {
		return nil, err
	}
	for _, doc := range list.Value {
		if doc["instanceId"] == v.instance {
			v.last = doc
		}
	}
	if !v.since.IsZero() && time.Since(v.since) < v.stale {
		list.Value = append(list.Value, v.last)
	}
	text, err := json.Marshal(list)
	reply.Body = io.NopCloser(bytes.NewReader(text))
	return reply, err
}

func (v *vanishing) remove() {
	v.t.Helper()
	url := "http://127.0.0.1" + string(testkit.Nodes) + "/delete?api-version=2025-04-01"
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, url, strings.NewReader(`{"instanceIds":["`+v.instance+`"]}`))
	if err != nil {
		v.t.Fatal(err)
	}
	reply, err := v.RoundTripper.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusAccepted {
		v.t.Fatal(reply.Status)
	}
}

// An instance that disappears between a read and its write is left out. The others join at once, and no Service gets
// an event of a failure. That also holds if Azure's lists show the instance for a while.
func TestAnInstanceThatVanishesIsLeftOut(t *testing.T) {
	for name, stale := range map[string]time.Duration{"the list is up to date": 0, "the list is stale": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 4)
				for _, node := range []string{"nodes0-000001", "nodes0-000002", "nodes0-000003"} {
					w.exclude(node, "true")
				}
				v := &vanishing{t: t, instance: "2", stale: stale}
				client := w.ClientOver(func(below http.RoundTripper) http.RoundTripper {
					v.RoundTripper = below
					return v
				})
				w.startWith(config(), client)
				w.allServed(w.createMany(3))
				w.settle()
				w.events.forget()

				began := time.Now()
				for _, node := range []string{"nodes0-000001", "nodes0-000002", "nodes0-000003"} {
					w.editNode(node, func(n *corev1.Node) { n.Labels = nil })
				}
				w.until("the others are in", func() bool { return w.members() == 3 })
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the others are in after %v", took)
				}
				<-time.After(10 * time.Minute)
				if failures := w.reportedFailures(""); v.puts == 0 || v.puts > 2 || len(failures) > 0 {
					t.Errorf("the instance was written %d times, with failure events %v", v.puts, failures)
				}
			})
		})
	}
}
