package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway/metrics"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/health"
)

// operations answers polls of operations with what a test wants.
type operations struct {
	next   http.RoundTripper
	answer atomic.Pointer[http.Response] // nil passes polls on
}

// RoundTrip implements [http.RoundTripper].
func (o *operations) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := o.answer.Load()
	if r.Method != http.MethodGet || answer == nil || !strings.Contains(strings.ToLower(r.URL.Path), "/operation") {
		return o.next.RoundTrip(r)
	}
	const status = `{"status":"InProgress","error":{"code":"NotFound"}}`
	return &http.Response{
		StatusCode: answer.StatusCode, Status: answer.Status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(status)), Request: r, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(status)),
	}, nil
}

// overOperations has the controller poll operations through the result.
func (w *cluster) overOperations() *operations {
	o := &operations{}
	w.config.Azure = w.ClientOver(func(next http.RoundTripper) http.RoundTripper {
		o.next = next
		return o
	})
	return o
}

// TestLongWrites has the scenarios of operations without an end.
func TestLongWrites(t *testing.T) {
	scenario(t, "I30 an operation does not end for an hour", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(3), class())...)
		w.Azure = w.Restarted(core.Options{Latency: 1})
		registry := prometheus.NewRegistry()
		w.config.Metrics = metrics.New(registry)
		o := w.overOperations()
		o.answer.Store(&http.Response{StatusCode: http.StatusOK})
		w.Forget()
		w.start()
		defer w.stop()
		fault(w, core.Fault{Method: "GET", Type: network.ApplicationGateways, Fault: core.FaultAnswer,
			Path: "properties.provisioningState", Value: "Updating"})
		for n := range 6 {
			update(w, endpoints("web0", fmt.Sprintf("10.240.4.%d", n)))
			w.pass(10 * time.Minute)
		}
		want(t, "writes meanwhile", strings.Join(w.Writes(), ", "), "PUT gate")
		want(t, "status meanwhile", w.status("web0"), "")
		began := writeBegan(t, registry)
		if since := time.Since(time.Unix(int64(began), 0)); since < 59*time.Minute || since > 61*time.Minute {
			t.Errorf("the write in flight has begun %v ago\n%s", since, w.log)
		}
		o.answer.Store(nil)
		if err := w.SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
		want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate, PUT gate")
		want(t, "backends", w.backends(), "10.240.1.1 10.240.1.2 10.240.4.5 10.9.9.9")
		want(t, "status", w.status("web0"), w.address)
		want(t, "write in flight", writeBegan(t, registry), 0)
	})
	scenario(t, "I30 Azure has forgotten an operation", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(3), class())...)
		w.Azure = w.Restarted(core.Options{Latency: 1})
		o := w.overOperations()
		o.answer.Store(&http.Response{StatusCode: http.StatusNotFound})
		w.Forget()
		w.start()
		defer w.stop()
		w.pass(5 * time.Minute)
		want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate")
		want(t, "status", w.status("web0"), w.address)
	})
}

// writeBegan returns the metric with the time at which the write in flight began.
func writeBegan(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kaz_gateway_write_began_timestamp_seconds" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// begun is Azure that notes when writes of the gateway begin, and whether another one was in flight.
type begun struct {
	fullAzure
	cluster *cluster
	times   []time.Time
	overlap int
}

// Begin implements [azure.Writer]. The controller calls it for one write after another.
func (b *begun) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Action == health.Action {
		return b.fullAzure.Begin(ctx, r)
	}
	b.times = append(b.times, time.Now())
	if b.cluster.gate().Properties.ProvisioningState != "Succeeded" {
		b.overlap++
	}
	return b.fullAzure.Begin(ctx, r)
}

// TestChurn has the scenario of changes that do not stop: they are gathered, and none waits for their end.
func TestChurn(t *testing.T) {
	scenario(t, "I34 I75 a change each 100 ms for two minutes and a half", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(3), class())...)
		w.start()
		w.stop()
		w.Azure = w.Restarted(core.Options{Latency: 1})
		b := &begun{fullAzure: w.Client, cluster: w}
		w.config.Azure = b
		w.start()
		defer w.stop()
		const changes, interval = 1500, 100 * time.Millisecond
		first := time.Now()
		for n := range changes {
			update(w, endpoints("web0", fmt.Sprintf("10.240.%d.%d", 10+n/250, n%250)))
			<-time.After(interval)
		}
		w.pass(5 * time.Minute)
		want(t, "backends", w.backends(), fmt.Sprintf("10.240.1.1 10.240.1.2 10.240.%d.%d 10.9.9.9", 10+(changes-1)/250, (changes-1)%250))
		want(t, "writes while another one was in flight", b.overlap, 0)
		if wait := b.times[0].Sub(first); wait > w.config.Most {
			t.Errorf("the first write began after %v", wait)
		}
		longest := time.Duration(0)
		for n := range b.times[1:] {
			longest = max(longest, b.times[n+1].Sub(b.times[n]))
		}
		t.Logf("%d writes for %d changes, at most %v from one to the next", len(b.times), changes, longest)
		if longest > 2*time.Minute || len(b.times) < 3 {
			t.Errorf("%d writes, %v from one to the next", len(b.times), longest)
		}
	})
}

// TestManyRefusals has the scenario of many objects that Azure refuses at once.
func TestManyRefusals(t *testing.T) {
	scenario(t, "I74 30 bad Ingresses among 40 good ones", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(40), class())...)
		r := &refusing{fullAzure: w.config.Azure.(fullAzure), when: func(body string) bool { return strings.Contains(body, "refused.example.com") }}
		w.config.Azure = r
		for n := range 30 {
			create(w, web(fmt.Sprintf("bad%d", n), fmt.Sprintf("b%d.refused.example.com", n), "web0", n))
		}
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "listeners", len(w.gate().Properties.Listeners), 41)
		for n := range 40 {
			want(t, "status", w.status(fmt.Sprintf("web%d", n)), w.address)
		}
		want(t, "events", w.events.with("FailedApplyingAppGwConfig: "), w.events.with("FailedApplyingAppGwConfig: Azure refuses"))
		const steps = 7 // the halvings of 71
		t.Logf("%d writes until all good ones are served", r.tried.Load())
		if r.tried.Load() > 30*steps {
			t.Errorf("%d writes for 30 bad Ingresses", r.tried.Load())
		}
		before := r.tried.Load()
		w.pass(2 * time.Minute)
		t.Logf("%d writes in the two minutes after", r.tried.Load()-before)
		update(w, endpoints("web7", "10.240.2.7"))
		w.pass(5 * time.Second)
		if !strings.Contains(w.backends(), "10.240.2.7") {
			t.Error("a change of a good one is not served")
		}
	})
}

// TestOwnPart has the scenarios of what others change at the gateway beside the cluster's children.
func TestOwnPart(t *testing.T) {
	scenario(t, "I58 tags alone differ", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(1), class())...)
		w.start()
		defer w.stop()
		own := ""
		w.edit(func(g object) {
			tags := g["tags"].(object)
			for name := range tags {
				if strings.HasPrefix(name, "kaz-") {
					own = name
				}
			}
			delete(tags, own)
			tags["team"] = "other"
		})
		w.Forget()
		w.pass(5 * time.Minute)
		want(t, "writes", strings.Join(w.Writes(), ", "), "PATCH gate")
		want(t, "own tag", w.gate().Tags[own], w.config.Identity)
		want(t, "tag of others", w.gate().Tags["team"], "other")
		want(t, "hosts", w.hosts(), "a0.example.com")
	})
	scenario(t, "I59 newer members of children of others", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(1), class())...)
		w.start()
		defer w.stop()
		w.edit(func(g object) {
			set := childrenOf(g, "backendHttpSettingsCollection")[0].(object)["properties"].(object)
			set["validateSNI"], set["dedicatedBackendConnection"] = false, true
			g["properties"].(object)["entraJWTValidationConfigs"] = []object{{"name": "login", "properties": object{
				"tenantId": core.DefaultTenant, "clientId": "00000000-0000-0000-0000-000000000009", "unAuthorizedRequestAction": "Deny",
			}}}
		})
		before := withoutEtag(w.raw("backendHttpSettingsCollection", "other") + w.raw("entraJWTValidationConfigs", "login"))
		for n := range 3 {
			update(w, endpoints("web0", fmt.Sprintf("10.240.3.%d", n)))
			w.pass(5 * time.Second)
		}
		want(t, "children of others", withoutEtag(w.raw("backendHttpSettingsCollection", "other")+w.raw("entraJWTValidationConfigs", "login")), before)
		if !strings.Contains(before, `"validateSNI":false`) || !strings.Contains(before, "unAuthorizedRequestAction") {
			t.Errorf("the newer members are not in %s", before)
		}
	})
}
