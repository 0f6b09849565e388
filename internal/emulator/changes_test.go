package emulator_test

import (
	"context"
	"testing"

	"kaz/internal/emulator"
)

// A change between the subscription and the first call is among the changes, too.
func TestASubscriptionMissesNothing(t *testing.T) {
	a := slow(t)
	changes := a.Subscribe()
	a.must("PUT", address, `{"location":"eastus"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []emulator.Change
	changes(ctx, func(batch []emulator.Change) {
		told = append(told, batch...)
		cancel()
	})
	if len(told) == 0 || told[0].New == nil || !told[0].ID.Equal(address) {
		t.Errorf("told %v, want that %s is new", told, address)
	}
}
