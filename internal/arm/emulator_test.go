package arm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const group = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/g")

func pip(name string) azure.ID { return group.Resource("Microsoft.Network/publicIPAddresses", name) }
func lb(name string) azure.ID  { return group.Resource("Microsoft.Network/loadBalancers", name) }

// local is a local Azure in the test's process, with a client and a cache.
type local struct {
	*cache.Cache
	azure    *core.Emulator
	t        *testing.T
	requests atomic.Int64
	refused  atomic.Int64 // with 429
	carry    http.RoundTripper
}

func newLocal(t *testing.T, o core.Options) *local {
	t.Helper()
	o.Providers = providers.All()
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &local{azure: e, t: t, carry: e.Transport()}
	if l.Cache, err = overAzure(l); err != nil {
		t.Fatal(err)
	}
	l.put(group, map[string]any{"location": "eastus"})
	return l
}

func overAzure(l *local) (*cache.Cache, error) {
	client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: l})
	if err != nil {
		return nil, err
	}
	return cache.Over(client, cache.Options{TTL: map[string]time.Duration{"": 10 * time.Minute}})
}

func (l *local) Do(req *http.Request) (*http.Response, error) {
	l.requests.Add(1)
	resp, err := l.carry.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		l.refused.Add(1)
	}
	return resp, err
}

func (l *local) put(id azure.ID, body any) azure.Document {
	l.t.Helper()
	doc, err := l.Put(l.t.Context(), azure.Write{ID: id, Body: marshal(l.t, body)})
	if err != nil {
		l.t.Fatal(err)
	}
	return doc
}

func marshal(t *testing.T, x any) azure.Document {
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func standard(properties map[string]any) map[string]any {
	return map[string]any{"location": "eastus", "sku": map[string]any{"name": "Standard"}, "properties": properties}
}

func address() map[string]any { return standard(map[string]any{"publicIPAllocationMethod": "Static"}) }

func balancer(address azure.ID) map[string]any {
	return standard(map[string]any{"frontendIPConfigurations": []any{
		map[string]any{"name": "f", "properties": map[string]any{"publicIPAddress": map[string]any{"id": address}}},
	}})
}

// A load balancer and its address, from nothing to nothing, at Azure's pace.
func TestAgainstLocalAzure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{Latency: 1, Throttle: true, Seed: 7})
		ctx := t.Context()
		if doc := l.put(pip("p"), address()); !contains(doc, "ipAddress") {
			t.Errorf("the address is not there when the write returns: %s", doc)
		}
		if doc, err := l.Get(ctx, pip("p")); err != nil || contains(doc, "ipConfiguration") {
			t.Errorf("%s %v", doc, err)
		}
		first := l.put(lb("l"), balancer(pip("p")))
		if doc, err := l.Get(ctx, pip("p")); err != nil || !contains(doc, "ipConfiguration") {
			t.Errorf("the write of the load balancer does not show in the address: %s %v", doc, err)
		}
		if err := l.Delete(ctx, pip("p")); azure.KindOf(err) != azure.InUse {
			t.Errorf("deleting an address in use: %v", err)
		}
		update := azure.Write{ID: lb("l"), Body: marshal(t, balancer(pip("p"))), IfMatch: first.Etag()}
		if _, err := l.Put(ctx, update); err != nil {
			t.Error(err)
		}
		update.IfMatch = `W/"11111111-2222-3333-4444-555555555555"`
		if _, err := l.Put(ctx, update); azure.KindOf(err) != azure.Changed {
			t.Errorf("writing over an old etag: %v", err)
		}
		if docs, err := l.List(ctx, azure.Query{Scope: group, Type: "Microsoft.Network/loadBalancers"}); err != nil || len(docs) != 1 {
			t.Errorf("%s %v", docs, err)
		}
		for _, id := range []azure.ID{lb("l"), pip("p"), lb("never"), group} {
			if err := l.Delete(ctx, id); err != nil {
				t.Error(err)
			}
			if _, err := l.Get(ctx, id); !azure.IsNotFound(err) {
				t.Errorf("%s after its delete: %v", id, err)
			}
		}
	})
}

func contains(doc azure.Document, property string) bool {
	var r azure.Resource[map[string]any]
	if json.Unmarshal(doc, &r) != nil {
		return false
	}
	_, ok := r.Properties[property]
	return ok
}

// TestManyCallersUnderThrottling checks far more callers at once than Azure allows: none fails, and
// hardly any request is refused, because the budget knows Azure's limits.
func TestManyCallersUnderThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{Latency: 1, Throttle: true, Seed: 7})
		const callers = 400
		start := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { l.put(pip(fmt.Sprint(i)), address()) })
		}
		wg.Wait()
		// A write with its reads is about five requests. 250 reads may come at once and 25 a second, writes 200 and
		// 10.
		t.Logf("%d writes took %v, %d requests, of them %d refused", callers, time.Since(start), l.requests.Load(), l.refused.Load())
		if l.refused.Load() > callers/100 || time.Since(start) > 4*time.Minute {
			t.Errorf("%d of %d requests were refused in %v", l.refused.Load(), l.requests.Load(), time.Since(start))
		}
	})
}

// Whatever fails, a caller gets a document, or an error with the kind that says what to do.
func TestFaultsOfLocalAzure(t *testing.T) {
	for name, c := range map[string]struct {
		fault core.Fault
		kind  azure.Kind // Canceled: none
	}{
		"an answer is lost": {core.Fault{Method: "PUT", Fault: core.FaultLost, Times: 1}, azure.Changed},
		"a gateway is busy": {core.Fault{Method: "PUT", Fault: core.FaultError, Status: 503, Times: 2}, azure.Canceled},
		"too many requests": {core.Fault{Method: "PUT", Fault: core.FaultError, Status: 429, Code: "TooManyRequests",
			RetryAfter: 7, Times: 2}, azure.Canceled},
		"the operation fails": {core.Fault{Method: "PUT", Fault: core.FaultOperation,
			Code: "CanceledAndSupersededDueToAnotherOperation", Times: 1}, azure.Changed},
		"another write was first": {core.Fault{Method: "PUT", Fault: core.FaultError, Status: 412, Code: "PreconditionFailed",
			Times: 1}, azure.Changed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.fault.Type = "Microsoft.Network/publicIPAddresses"
				l := newLocal(t, core.Options{Latency: 1})
				first := l.put(pip("p"), address())
				if err := l.azure.SetFaults([]core.Fault{c.fault}); err != nil {
					t.Fatal(err)
				}
				_, err := l.Put(t.Context(), azure.Write{ID: pip("p"), Body: marshal(t, address()), IfMatch: first.Etag()})
				if c.kind == azure.Canceled && err != nil || c.kind != azure.Canceled && (err == nil || azure.KindOf(err) != c.kind) {
					t.Errorf("error %v, want kind %v", err, c.kind)
				}
				if _, err := l.Get(t.Context(), pip("p")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The pages of every list of compute are followed: their links have the default port and an
// unencoded query.
func TestListsOfComputeHavePages(t *testing.T) {
	o := core.Options{Providers: providers.All()}
	for _, p := range o.Providers {
		for i := range p.Types {
			p.Types[i].Page = 1
		}
	}
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	l := &local{t: t, carry: each(func(req *http.Request) (*http.Response, error) {
		if strings.Contains(req.URL.RawQuery, "skiptoken") {
			links++
		}
		return e.Transport().RoundTrip(req)
	})}
	client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: l})
	if err != nil {
		t.Fatal(err)
	}
	write := func(id azure.ID, body any) {
		t.Helper()
		if _, err := client.Put(t.Context(), azure.Write{ID: id, Body: marshal(t, body)}); err != nil {
			t.Fatal(err)
		}
	}
	write(group, map[string]any{"location": "eastus"})
	set := group.Resource("Microsoft.Compute/virtualMachineScaleSets", "a b")
	for _, name := range []string{"x", "y", "z"} {
		write(group.Resource("Microsoft.Compute/availabilitySets", name), map[string]any{"location": "eastus"})
		write(group.Resource("Microsoft.Compute/disks", name), map[string]any{"location": "eastus",
			"properties": map[string]any{"diskSizeGB": 4, "creationData": map[string]any{"createOption": "Empty"}}})
	}
	for _, q := range []azure.Query{
		{Scope: group, Type: "Microsoft.Compute/availabilitySets"},
		{Scope: group, Type: "Microsoft.Compute/availabilitySets", Filter: "'virtualMachineScaleSet/id' eq '" + string(set) + "'"},
		{Scope: azure.SubscriptionID(group.Subscription()), Type: "Microsoft.Compute/disks"},
	} {
		links = 0
		if got, err := client.List(t.Context(), q); err != nil || len(got) != 3 || links != 2 {
			t.Errorf("%v: %d documents, %d links followed, %v", q, len(got), links, err)
		}
	}
}

type each func(*http.Request) (*http.Response, error)

func (f each) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
