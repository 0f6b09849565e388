package site

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/server"
)

// TestGateways checks that a cluster gets the application gateways that are missing, each with a public address of its own, and
// that the present ones keep their names.
func TestGateways(t *testing.T) {
	local, err := server.Start(t.Context(), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := local.Client()
	if err != nil {
		t.Fatal(err)
	}
	s := New(local.Info().Tenant, local.Info().Subscription, 1)
	if ids := s.GatewayIDs(); len(ids) > 0 {
		t.Errorf("a cluster without application gateways has %s", ids)
	}
	s.Gateway = GatewayName
	for _, test := range []struct {
		gateways int
		created  []string
	}{
		{0, []string{"kaz-gateway"}},
		{1, nil},
		{12, []string{
			"kaz-gateway-10", "kaz-gateway-11", "kaz-gateway-12", "kaz-gateway-2", "kaz-gateway-3", "kaz-gateway-4", "kaz-gateway-5",
			"kaz-gateway-6", "kaz-gateway-7", "kaz-gateway-8", "kaz-gateway-9",
		}},
	} {
		s.Gateways = test.gateways
		var mu sync.Mutex
		var created []string
		err := s.Create(t.Context(), client, 1, false, func(id azure.ID, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if id.Equal(s.Network("applicationGateways", id.Name())) {
				created = append(created, id.Name())
			}
		})
		if slices.Sort(created); err != nil || !slices.Equal(created, test.created) {
			t.Fatalf("%d application gateways: created %s, %v, want %s", test.gateways, created, err, test.created)
		}
	}
	addresses := map[string]bool{}
	for _, id := range s.GatewayIDs() {
		doc, err := client.Get(t.Context(), s.Network("publicIPAddresses", id.Name()))
		if err != nil {
			t.Fatal(err)
		}
		address, err := azure.Decode[network.PublicIPAddress](doc)
		if err != nil {
			t.Fatal(err)
		}
		addresses[address.Properties.IPAddress] = true
	}
	if len(addresses) != 12 || addresses[""] {
		t.Errorf("12 application gateways have the public addresses %s", fmt.Sprint(addresses))
	}
}
