package server

import (
	"net/http"
	"strings"
	"testing"
)

const (
	secondSubscription = "00000000-0000-0000-0000-000000000002"
	thirdSubscription  = "00000000-0000-0000-0000-000000000003"
	secondTenant       = "22222222-2222-2222-2222-222222222222"
)

// Further subscriptions accept the tokens of their tenant. An invalid subscription is refused.
func TestOtherSubscriptions(t *testing.T) {
	a := startServer(t, Options{OtherSubscriptions: []string{secondSubscription, thirdSubscription + "=" + secondTenant}})
	info := a.Info()
	c := clientOf(t, a, false)
	for _, try := range []struct {
		tenant, subscription string
		status               int
	}{
		{info.Tenant, info.Subscription, http.StatusOK},
		{info.Tenant, secondSubscription, http.StatusOK},
		{info.Tenant, thirdSubscription, http.StatusUnauthorized},
		{secondTenant, thirdSubscription, http.StatusOK},
		{secondTenant, info.Subscription, http.StatusUnauthorized},
	} {
		issued, err := a.tokens.Issue(a.owner, try.tenant, info.ARM, ownerTokenLifetime)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := groups(t, c, info.ARM, try.subscription, issued.Text); status != try.status {
			t.Errorf("a token of %s in subscription %s: %d %v, want %d", try.tenant, try.subscription, status, body, try.status)
		}
	}
	for _, wrong := range []string{"second", secondSubscription + "=here", info.Subscription} {
		_, err := Start(t.Context(), Options{OtherSubscriptions: []string{wrong}})
		if err == nil || !strings.Contains(err.Error(), "--other-subscription "+wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
