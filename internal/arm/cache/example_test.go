package cache_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kaz/internal/arm"
	"kaz/internal/arm/budget"
	"kaz/internal/arm/cache"
	"kaz/internal/azure"
)

// transport answers every request alike and counts them.
type transport struct{ requests int }

func (t *transport) Do(req *http.Request) (*http.Response, error) {
	t.requests++
	body := fmt.Sprintf(`{"id":%q,"properties":{"provisioningState":"Succeeded"}}`, req.URL.Path)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// A program composes one budget, a client for each subscription or tenant that it
// works in, and a cache in front of each.
func Example() {
	const endpoint = "https://management.azure.com"
	wire := &transport{}
	shared := budget.New(budget.Config{
		LimitOf: func(fullType string) (budget.Limit, bool) {
			balancers := budget.Limit{Name: "balancers", Write: budget.Rate{PerSecond: 5, Burst: 10}}
			return balancers, fullType == "microsoft.network/loadbalancers"
		},
	})
	client, err := arm.New(arm.Config{Endpoint: endpoint, Transport: wire, Budget: shared})
	if err != nil {
		fmt.Println(err)
		return
	}
	network, err := cache.Over(client, cache.Options{TTL: map[string]time.Duration{
		"Microsoft.Network/loadBalancers": 2 * time.Minute,
		"Microsoft.Compute":               10 * time.Minute,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	id := azure.GroupID("s", "g").Resource("Microsoft.Network/loadBalancers", "kubernetes")
	for range 3 {
		doc, err := network.Get(ctx, id)
		fmt.Println(doc.ID().Name(), err, wire.requests)
	}
	_, err = network.Fresh().Get(ctx, id)
	fmt.Println("fresh", err, wire.requests)
	// Output:
	// kubernetes <nil> 1
	// kubernetes <nil> 1
	// kubernetes <nil> 1
	// fresh <nil> 2
}
