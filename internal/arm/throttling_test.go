package arm_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

// One provider is throttled and asks for half a minute. Its writes wait for just that long and then succeed, in one
// more request than there are callers. Meanwhile its reads, and reads and writes of another provider, go on as usual.
func TestThrottledProviderBlocksNoOtherProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{})
		l.put(pip("p"), address())
		set := group.Resource("Microsoft.Compute/availabilitySets", "set")
		if err := l.azure.SetFaults([]core.Fault{{
			Method: "PUT", Type: "Microsoft.Network/publicIPAddresses", Fault: core.FaultError,
			Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: 30, Times: 1,
		}}); err != nil {
			t.Fatal(err)
		}
		var writes atomic.Int64
		carry := l.carry
		l.carry = roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPut && strings.Contains(req.URL.Path, "publicIPAddresses") {
				writes.Add(1)
			}
			return carry.RoundTrip(req)
		})
		start := time.Now()
		const callers = 10
		var throttled sync.WaitGroup
		for i := range callers {
			throttled.Go(func() { l.put(pip(fmt.Sprint("p", i)), address()) })
			synctest.Wait() // the first one is refused before the others ask
		}
		for range 20 {
			l.put(set, map[string]any{"location": "eastus", "sku": map[string]any{"name": "Aligned"}})
			for _, id := range []azure.ID{set, pip("p")} {
				if _, err := l.Fresh().Get(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("others waited %v", took)
		}
		throttled.Wait()
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the throttled ones took %v, want what Azure asked for, 30 s", took)
		}
		if sent := writes.Load(); sent != callers+1 {
			t.Errorf("%d writes were sent, want one for each caller and one that was refused", sent)
		}
	})
}

// TestThrottledUntilAnInstant checks a refusal that names an instant instead of a time. A caller that may not wait
// that long gets an error with the time to wait.
func TestThrottledUntilAnInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{})
		l.carry = refuseOnce(l.carry, time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		start := time.Now()
		l.put(pip("p"), address())
		if took := time.Since(start); took < 89*time.Second || took > 91*time.Second {
			t.Errorf("the write took %v, want until the instant that Azure named, 90 s", took)
		}
	})
}

// refuseOnce refuses the first write with an instant.
func refuseOnce(carry http.RoundTripper, until string) http.RoundTripper {
	refused := false
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := carry.RoundTrip(req)
		if err == nil && req.Method == http.MethodPut && !refused {
			refused = true
			resp.StatusCode = http.StatusTooManyRequests
			resp.Header = http.Header{"Retry-After": {until}}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A gateway is busy twice. The caller does not notice.
func TestBusyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{})
		var seen []string
		carry := l.carry
		l.carry = roundTripper(func(req *http.Request) (*http.Response, error) {
			seen = append(seen, req.Method)
			return carry.RoundTrip(req)
		})
		if err := l.azure.SetFaults([]core.Fault{{Method: "GET", Fault: core.FaultError, Status: http.StatusServiceUnavailable,
			Times: 2}}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Fresh().Get(t.Context(), group); err != nil {
			t.Error(err)
		}
		if want := []string{"GET", "GET", "GET"}; !slices.Equal(seen, want) {
			t.Errorf("requests %s, want %s", strings.Join(seen, " "), strings.Join(want, " "))
		}
	})
}
