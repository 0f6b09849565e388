package core_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// Many clients at once read, write, poll and delete. Nothing is lost, and the race
// detector has something to look at.
func TestManyClients(t *testing.T) {
	a := start(t, core.Options{Latency: 0.0001, Throttle: false})
	a.group()
	a.must("PUT", table, `{"location":"eastus"}`)
	const clients, rounds = 8, 20
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := range rounds {
				route := fmt.Sprintf("%s/routes/r%d-%d", table, i, j)
				created := a.do("PUT", route, `{"properties":{"addressPrefix":"10.0.0.0/8"}}`)
				if created.status != http.StatusCreated {
					t.Errorf("PUT %s: %d %v", route, created.status, created.body)
				}
				a.poll(created, "Azure-AsyncOperation")
				a.do("GET", table, "")
				a.do("GET", group+"/providers/Microsoft.Network/routeTables", "")
				other := fmt.Sprintf("%s-%d", address, i)
				a.do("PUT", other, `{"location":"eastus"}`)
				a.do("DELETE", other, "")
			}
		})
	}
	wg.Wait()
	if n := len(behaviour.Objects(a.must("GET", table, "").body, "properties.routes")); n != clients*rounds {
		t.Errorf("%d routes, want %d", n, clients*rounds)
	}
}
