package resources

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/provider"
	"kaz/internal/localazure/core/catalog"
)

func ok(body any) (behaviour.Reply, error) { return behaviour.Reply{Status: 200, Body: body}, nil }

func subscription(c *behaviour.Call, id string) behaviour.Object {
	return behaviour.Object{
		"id": string(azure.SubscriptionID(id)), "subscriptionId": id, "tenantId": c.TenantOf(id),
		"displayName": behaviour.SubscriptionName, "state": "Enabled", "authorizationSource": "RoleBased", "managedByTenants": []any{},
		"subscriptionPolicies": behaviour.Object{"locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01",
			"spendingLimit": "Off"},
	}
}

func listSubscriptions(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for _, id := range c.Subscriptions() {
		if strings.EqualFold(c.TenantOf(id), tenantOf(c)) {
			items = append(items, subscription(c, id))
		}
	}
	return ok(behaviour.Object{"value": items, "count": behaviour.Object{"type": "Total", "value": len(items)}})
}

func getSubscription(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	return ok(subscription(c, scope.Subscription()))
}

// tenantOf is the tenant that the caller has signed in to.
func tenantOf(c *behaviour.Call) string {
	if c.Caller.Principal == nil || c.Caller.Principal.Tenant == "" {
		return c.Tenant()
	}
	return c.Caller.Principal.Tenant
}

func listTenants(c *behaviour.Call) (behaviour.Reply, error) {
	const domain = "kaz.onmicrosoft.com"
	return ok(behaviour.Object{"value": []any{behaviour.Object{
		"id": "/tenants/" + tenantOf(c), "tenantId": tenantOf(c), "countryCode": "US", "displayName": "kaz", "domains": []any{domain},
		"defaultDomain": domain, "tenantCategory": "Home", "tenantType": "AAD",
	}}})
}

func listLocations(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	items := []any{}
	for _, r := range catalog.Regions() {
		items = append(items, location(scope, r))
	}
	return ok(behaviour.Object{"value": items})
}

func location(scope azure.ID, r catalog.Region) behaviour.Object {
	id := func(name string) string { return string(scope) + "/locations/" + name }
	pair := []any{}
	if r.Pair != "" {
		pair = append(pair, behaviour.Object{"name": r.Pair, "id": id(r.Pair)})
	}
	doc := behaviour.Object{
		"id": id(r.Name), "name": r.Name, "type": "Region", "displayName": r.Display, "regionalDisplayName": "(" + r.Group +
			") " + r.Display,
		"metadata": behaviour.Object{
			"regionType": "Physical", "regionCategory": r.Category, "geographyGroup": r.Group, "physicalLocation": r.Place,
			"longitude": r.Longitude, "latitude": r.Latitude, "pairedRegion": pair,
		},
	}
	if len(r.Zones) > 0 {
		zones := make([]any, len(r.Zones))
		for i, z := range r.Zones {
			zones[i] = behaviour.Object{"logicalZone": z, "physicalZone": physicalZone(r, z)}
		}
		doc["availabilityZoneMappings"] = zones
	}
	return doc
}

// physicalZone is the physical name of an availability zone of a region.
func physicalZone(r catalog.Region, zone string) string { return r.Name + "-az" + zone }
