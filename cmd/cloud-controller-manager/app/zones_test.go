package app

import (
	"testing"

	"kaz/cmd/internal/access"
	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/plane/token"
	"kaz/internal/testkit"
)

// Who may not read which zones the region has does not know them, and that is no reason
// not to start.
func TestZonesThatMayNotBeRead(t *testing.T) {
	c := tenantsConfig(t)
	for name, granted := range map[string][]string{"with the right": {"Microsoft.Resources/subscriptions/providers/read"}, "without it": nil} {
		t.Run(name, func(t *testing.T) {
			w := testkit.NewSignIn(t, emulator.Options{
				Subscriptions: []emulator.Subscription{{ID: networkSub, Tenant: networkTenant}},
			}, token.Config{Applications: []token.Application{{ClientID: clientID, ObjectID: objectID, Secrets: []string{clientSecret}}}}, "")
			if granted != nil {
				w.Grant(t, objectID, azure.SubscriptionID(networkSub), granted...)
			}
			door, err := connect(t.Context(), c, access.DoorOptions{Transport: w})
			if err != nil {
				t.Fatal(err)
			}
			ask := zonesWhenAsked(door, c)
			const document = "/providers/Microsoft.Compute"
			if asked := len(w.Seen(document)); asked > 0 {
				t.Errorf("asked %d times before anybody needs to know", asked)
			}
			for range 2 {
				if zones := ask(t.Context()); (len(zones) > 0) != (granted != nil) {
					t.Errorf("zones %q", zones)
				}
			}
			if asked := len(w.Seen(document)); asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}
