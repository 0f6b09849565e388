package core_test

import (
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// A request that computes for a long time does not keep others from reading and writing, and finds what they wrote when it goes on.
func TestOthersDoNotWaitForAComputation(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	done := false
	provider := behaviour.Provider{Types: []behaviour.Type{{
		Name: "Kaz.Test/slow", Style: behaviour.Plain("test"), Where: behaviour.Located,
		Fill: func(c *behaviour.Call) error {
			if done {
				_, there := c.Get(table)
				behaviour.Set(c.Doc, "properties.tableIsThere", there)
				return nil
			}
			return c.Compute(func(look behaviour.Look) {
				close(began)
				<-end
				look(func(w behaviour.World) { _, done = w.Get(table) })
			})
		},
	}}}
	a := start(t, core.Options{Providers: []behaviour.Provider{pilots(), provider}})
	a.group()
	slow, others := make(chan answer, 1), make(chan struct{})
	go func() { slow <- a.do("PUT", group+"/providers/Kaz.Test/slow/s", `{"location":"eastus"}`) }()
	<-began
	go func() {
		defer close(others)
		for _, method := range []string{"PUT", "GET"} {
			if got := a.do(method, table, `{"location":"eastus"}`); got.status >= 300 {
				t.Errorf("%s meanwhile: %d %v", method, got.status, got.body)
			}
		}
	}()
	select {
	case <-others:
	case <-time.After(30 * time.Second):
		t.Error("other requests wait for the computation")
	}
	close(end)
	if got := <-slow; got.status != 201 || behaviour.At(got.body, "properties.tableIsThere") != true {
		t.Errorf("the request that computed: %d %v", got.status, got.body)
	}
}
