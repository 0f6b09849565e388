package core

import (
	"cmp"
	"strings"
)

// Subscription is a subscription other than the main subscription. Without a tenant it
// is in the tenant of the main subscription.
type Subscription struct{ ID, Tenant string }

// tenancy has the subscriptions of this Azure with the tenants that they trust. It
// implements a part of [behaviour.World].
type tenancy struct {
	subscription, tenant string // of the main subscription
	others               []Subscription
	quotas               map[string]int
	boots                bool
}

// Tenant implements [behaviour.World].
func (t *tenancy) Tenant() string { return t.tenant }

// Subscription implements [behaviour.World].
func (t *tenancy) Subscription() string { return t.subscription }

// Boots implements [behaviour.World].
func (t *tenancy) Boots() bool { return t.boots }

// Quota implements [behaviour.World].
func (t *tenancy) Quota(name string) (limit int, given bool) {
	for quota, limit := range t.quotas {
		if strings.EqualFold(quota, name) {
			return limit, true
		}
	}
	return 0, false
}

// Subscriptions implements [behaviour.World].
func (t *tenancy) Subscriptions() []string {
	all := []string{t.subscription}
	for _, s := range t.others {
		all = append(all, s.ID)
	}
	return all
}

// TenantOf implements [behaviour.World].
func (t *tenancy) TenantOf(subscription string) string {
	if strings.EqualFold(subscription, t.subscription) {
		return t.tenant
	}
	for _, s := range t.others {
		if strings.EqualFold(subscription, s.ID) {
			return cmp.Or(s.Tenant, t.tenant)
		}
	}
	return ""
}

// several reports whether there are several tenants.
func (t *tenancy) several() bool {
	for _, s := range t.others {
		if s.Tenant != "" && !strings.EqualFold(s.Tenant, t.tenant) {
			return true
		}
	}
	return false
}
