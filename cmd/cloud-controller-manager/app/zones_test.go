package app

import (
	"context"
	"errors"
	"slices"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/component/access"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/testkit"
)

// TestZonesThatMayNotBeRead checks that the program starts without the right to read the zones of the
// region.
func TestZonesThatMayNotBeRead(t *testing.T) {
	c := tenantsConfig(t)
	for name, granted := range map[string][]string{"with the right": {"Microsoft.Resources/subscriptions/providers/read"},
		"without it": nil} {
		t.Run(name, func(t *testing.T) {
			w := testkit.NewSignIn(t, core.Options{
				Subscriptions: []core.Subscription{{ID: networkSub, Tenant: networkTenant}},
			}, token.Config{Applications: []token.Application{{ClientID: clientID, ObjectID: objectID, Secrets: []string{clientSecret}}}},
				"")
			if granted != nil {
				w.Grant(t, objectID, azure.SubscriptionID(networkSub), granted...)
			}
			client, err := connect(t.Context(), c, access.ClientOptions{Transport: w})
			if err != nil {
				t.Fatal(err)
			}
			ask := zonesWhenAsked(client, c)
			const document = "/providers/Microsoft.Compute"
			if asked := len(w.Seen(document)); asked > 0 {
				t.Errorf("asked %d times before a Service needs them", asked)
			}
			for range 2 {
				if zones, err := ask(t.Context()); err != nil || (len(zones) > 0) != (granted != nil) {
					t.Errorf("zones %q, %v", zones, err)
				}
			}
			if asked := len(w.Seen(document)); asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}

// unanswered is a reader that fails for a while.
type unanswered struct {
	azure.Reader
	err error
}

func (u *unanswered) Get(context.Context, azure.ID) (azure.Document, error) {
	return azure.Document(`{"resourceTypes":[{"resourceType":"virtualMachines","zoneMappings":[{"location":"West Europe","zones":["2","1"]}]}]}`), u.err
}

// TestZonesThatAreNotAnswered checks that a failed read of the zones is an error and is tried again.
func TestZonesThatAreNotAnswered(t *testing.T) {
	c := tenantsConfig(t)
	c.Location = "westeurope"
	for _, err := range []*azure.Error{
		{Kind: azure.Unavailable, Status: 503}, {Kind: azure.Throttled, Status: 429}, {Kind: azure.Denied, Status: 401},
		{Kind: azure.Denied}, {Kind: azure.Canceled},
	} {
		client := &unanswered{err: err}
		ask := zonesWhenAsked(client, c)
		for range 2 {
			if zones, got := ask(t.Context()); !errors.Is(got, err) || len(zones) > 0 {
				t.Errorf("%v: zones %q, %v", err, zones, got)
			}
		}
		client.err = nil
		if zones, got := ask(t.Context()); got != nil || !slices.Equal(zones, []string{"1", "2"}) {
			t.Errorf("after %v: zones %q, %v", err, zones, got)
		}
	}
}
