package core_test

import (
	"context"
	"testing"

	"kaz/internal/localazure/core"
)

// A change between the subscription and the first call is among the changes, too.
func TestASubscriptionMissesNothing(t *testing.T) {
	a := slow(t)
	changes := a.Subscribe()
	a.must("PUT", address, `{"location":"eastus"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []core.Change
	changes(ctx, func(batch []core.Change) {
		seen = append(seen, batch...)
		cancel()
	})
	if len(seen) == 0 || seen[0].New == nil || !seen[0].ID.Equal(address) {
		t.Errorf("got %v, want that %s is new", seen, address)
	}
}
