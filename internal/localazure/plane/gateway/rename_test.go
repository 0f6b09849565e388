package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// No request fails while documents rename the pool and the settings that it is led to.
func TestRenamedPools(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	w.serve(site(b[0].address))
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 8 {
		c := w.client()
		clients.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example.com/", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				got.Body.Close()
				mu.Lock()
				codes[got.StatusCode]++
				mu.Unlock()
			}
		})
	}
	for n := range 60 {
		name := fmt.Sprint("web", n)
		p := site(b[0].address)
		p["backendAddressPools"], p["backendHttpSettingsCollection"] = list{pool(name, b[0].address)}, list{child(name, setting(b[0].address))}
		r := rule(10, "any", name)
		r["backendHttpSettings"] = ref("backendHttpSettingsCollection", name)
		p["requestRoutingRules"] = list{child("any", r)}
		w.serve(p)
	}
	stop()
	clients.Wait()
	if len(codes) != 1 || codes[http.StatusOK] == 0 {
		t.Errorf("answers by their status: %v", codes)
	}
}
