package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const keysGroup = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg")

// opened is the client of an azure.json, with a local Azure that answers immediately.
type opened struct {
	*arm.Client
	azure *core.Emulator
	at    []time.Time // times of the requests
	carry http.RoundTripper
}

func (o *opened) Do(req *http.Request) (*http.Response, error) {
	o.at = append(o.at, time.Now())
	return o.carry.RoundTrip(req)
}

func openWith(t *testing.T, keys string) *opened {
	t.Helper()
	c, warnings, err := cloudconfig.Parse([]byte(`{` + keys + `}`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	c.Complete()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{azure: e, carry: e.Transport()}
	o.Client, err = arm.New(armConfig(c, cloudconfig.Environment{ResourceManager: "http://127.0.0.1"}, ClientOptions{Transport: o}))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRateLimitKeys checks that rate limits, general and of one client, delay requests, and that
// without limits nothing is delayed.
func TestRateLimitKeys(t *testing.T) {
	const (
		lb     = keysGroup + "/providers/Microsoft.Network/loadBalancers/lb"
		table  = keysGroup + "/providers/Microsoft.Network/routeTables/table"
		set    = keysGroup + "/providers/Microsoft.Compute/virtualMachineScaleSets/set"
		single = set + "/virtualMachines/0"
	)
	const slow = `{"cloudProviderRateLimit":true,"cloudProviderRateLimitQPS":1,"cloudProviderRateLimitBucket":1}`
	const general = `"cloudProviderRateLimit":true,"cloudProviderRateLimitQPS":1,"cloudProviderRateLimitBucket":1`
	for name, c := range map[string]struct {
		keys          string
		reads, writes []azure.ID
		took          time.Duration
	}{
		"none":                             {"", many(lb, 30), many(lb, 30), 0},
		"numbers, but not switched on":     {`"cloudProviderRateLimitQPS":1,"cloudProviderRateLimitBucket":1`, many(lb, 9), many(lb, 9), 0},
		"general, the second waits":        {general, many(lb, 2), nil, time.Second},
		"general, reads and writes apart":  {general, many(lb, 2), many(lb, 2), 2 * time.Second},
		"general, each client has its own": {general, []azure.ID{lb, table, set}, nil, 0},
		"writes have their own": {general + `,"cloudProviderRateLimitQPSWrite":0.5,"cloudProviderRateLimitBucketWrite":2`, nil,
			many(lb, 4), 4 * time.Second},
		"the usual when only switched on": {`"cloudProviderRatelimit":true`, many(lb, 7), nil, 2 * time.Second},
		"of one client":                   {`"loadBalancerRateLimit":` + slow, many(lb, 3), nil, 2 * time.Second},
		"of one client, others are free":  {`"loadBalancerRateLimit":` + slow, many(table, 30), many(table, 30), 0},
		"one client without":              {general + `,"routeTableRateLimit":{"cloudProviderRateLimit":false}`, many(table, 30), nil, 0},
		"a set and its instances share": {`"virtualMachineScaleSetRateLimit":` + slow, []azure.ID{set, single, set}, nil,
			2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openWith(t, c.keys)
				start := time.Now()
				for _, id := range c.reads {
					if _, err := o.Get(t.Context(), id); err != nil && !azure.IsNotFound(err) {
						t.Fatal(err)
					}
				}
				for _, id := range c.writes { // a rejected request has been sent too
					if err := o.Delete(t.Context(), id); err != nil && !azure.IsNotFound(err) {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took.Round(time.Millisecond) != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

func many(id azure.ID, n int) []azure.ID {
	all := make([]azure.ID, n)
	for i := range all {
		all[i] = id
	}
	return all
}

// TestBackoffKeys checks the number of attempts, the delays, their growth and their jitter.
func TestBackoffKeys(t *testing.T) {
	for name, c := range map[string]struct {
		keys   string
		waits  []float64 // in seconds
		jitter float64   // fraction of the delays that may be added, and subtracted if jitter allows it
	}{
		"off, as in arm.Client":  {``, []float64{1, 2, 4}, .2},
		"on, the usual":          {`"cloudProviderBackoff":true`, []float64{5, 7.5, 11.25, 16.875, 25.3125}, 1},
		"all keys":               {`"cloudProviderBackoff":true,"cloudProviderBackoffRetries":4,"cloudProviderBackoffExponent":3,"cloudProviderBackoffDuration":2,"cloudProviderBackoffJitter":0.1`, []float64{2, 6, 18}, .1},
		"one try":                {`"cloudProviderBackoff":true,"cloudProviderBackoffRetries":1`, nil, 1},
		"numbers without the on": {`"cloudProviderBackoffRetries":9,"cloudProviderBackoffDuration":9`, []float64{1, 2, 4}, .2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openWith(t, c.keys)
				if err := o.azure.SetFaults([]core.Fault{{Fault: core.FaultError,
					Status: http.StatusServiceUnavailable}}); err != nil {
					t.Fatal(err)
				}
				if _, err := o.Get(t.Context(), keysGroup); azure.KindOf(err) != azure.Unavailable {
					t.Fatal(err)
				}
				if len(o.at) != len(c.waits)+1 {
					t.Fatalf("%d tries, want %d", len(o.at), len(c.waits)+1)
				}
				less := 0.001
				if !strings.Contains(c.keys, `Backoff":true`) {
					less = c.jitter
				}
				for i, want := range c.waits {
					if wait := o.at[i+1].Sub(o.at[i]).Seconds(); wait < want*(1-less)-.001 || wait > want*(1+c.jitter)+.001 {
						t.Errorf("wait %d is %.2f s, want %v s and at most %v of that more", i+1, wait, want, c.jitter)
					}
				}
			})
		})
	}
}

// TestMinimumRetryAfterKey checks the polling interval of operations: Azure's, or with the key at
// least the first delay.
func TestMinimumRetryAfterKey(t *testing.T) {
	for keys, want := range map[string]time.Duration{
		``:                               time.Second,
		`"cloudProviderBackoff":true`:    time.Second,
		`"enableMinimumRetryAfter":true`: time.Second,
		`"enableMinimumRetryAfter":true,"cloudProviderBackoff":true`:                                  5 * time.Second,
		`"enableMinimumRetryAfter":true,"cloudProviderBackoff":true,"cloudProviderBackoffDuration":3`: 3 * time.Second,
	} {
		t.Run(keys, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openWith(t, keys)
				o.carry = polled{}
				start := time.Now()
				if err := o.Delete(t.Context(), keysGroup+"/providers/Microsoft.Network/loadBalancers/lb"); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != want {
					t.Errorf("the state was asked for after %v, want %v", took, want)
				}
			})
		})
	}
}

// polled is an Azure with operations that ask for a poll after one second.
type polled struct{}

func (polled) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if req.Method == http.MethodGet {
		_, _ = w.WriteString(`{"status":"Succeeded"}`) // never fails
		return w.Result(), nil
	}
	w.Header().Set("Azure-AsyncOperation", "http://127.0.0.1/operation")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusAccepted)
	return w.Result(), nil
}
