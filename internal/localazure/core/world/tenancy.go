package world

import (
	"cmp"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// Subscription is a subscription other than the main subscription. Without a tenant it
// is in the tenant of the main subscription.
type Subscription struct{ ID, Tenant string }

// Tenancy has the subscriptions of this Azure with the tenants that they trust. It
// implements a part of [behaviour.World].
type Tenancy struct {
	Main, MainTenant string // the main subscription and its tenant
	Others           []Subscription
	Quotas           map[string]int
	Users            []behaviour.User
	Booting          bool // something boots the machines
}

// Tenant implements [behaviour.World].
func (t *Tenancy) Tenant() string { return t.MainTenant }

// Subscription implements [behaviour.World].
func (t *Tenancy) Subscription() string { return t.Main }

// Boots implements [behaviour.World].
func (t *Tenancy) Boots() bool { return t.Booting }

// Quota implements [behaviour.World].
func (t *Tenancy) Quota(name string) (limit int, given bool) {
	for quota, limit := range t.Quotas {
		if strings.EqualFold(quota, name) {
			return limit, true
		}
	}
	return 0, false
}

// User implements [behaviour.World].
func (t *Tenancy) User(objectID string) (behaviour.User, bool) {
	for _, u := range t.Users {
		if strings.EqualFold(u.ObjectID, objectID) {
			return u, true
		}
	}
	return behaviour.User{}, false
}

// Subscriptions implements [behaviour.World].
func (t *Tenancy) Subscriptions() []string {
	all := []string{t.Main}
	for _, s := range t.Others {
		all = append(all, s.ID)
	}
	return all
}

// TenantOf implements [behaviour.World].
func (t *Tenancy) TenantOf(subscription string) string {
	if strings.EqualFold(subscription, t.Main) {
		return t.MainTenant
	}
	for _, s := range t.Others {
		if strings.EqualFold(subscription, s.ID) {
			return cmp.Or(s.Tenant, t.MainTenant)
		}
	}
	return ""
}

// several reports whether there are several tenants.
func (t *Tenancy) several() bool {
	for _, s := range t.Others {
		if s.Tenant != "" && !strings.EqualFold(s.Tenant, t.MainTenant) {
			return true
		}
	}
	return false
}
