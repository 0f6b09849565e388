// Package storage has the behaviour of Microsoft.Storage: accounts with their blob
// and file services, containers and shares. Layer L2.
package storage

import (
	_ "embed"
	"slices"

	"kaz/internal/localazure/behaviour"
)

//go:embed types.txt
var table string

// styles are the styles of the types that only the table has.
func styles() map[string]behaviour.Style {
	updated, ticks := child(behaviour.NoEtag), child(behaviour.Ticks)
	updated.Created, ticks.Created = 200, 200
	data := updated // of the data plane
	data.Deleted = 204
	return map[string]behaviour.Style{"child": updated, "data": data, "scope": child(behaviour.NoEtag), "ticks": ticks}
}

// Provider is Microsoft.Storage.
func Provider() behaviour.Provider {
	types := behaviour.Describe(table, styles(), []behaviour.Type{accounts(), behaviour.PrivateLinkResources(AccountType, linkGroups),
		deletedAccounts(), blobServices(), containers(), fileServices(), shares(), queueServices(), tableServices(), tables()})
	for i := range types {
		switch t := &types[i]; t.Name {
		case policyType:
			t.Actions = map[string]behaviour.Action{"lock": {Do: lockPolicy}, "extend": {Do: extendPolicy}}
			t.Refuse, t.DeleteReply = refuseLocked, noPolicy
			t.Own, t.Settle = append(slices.Clip(t.Own), policyHistory), notePut
			t.Show = func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
		case QueueType:
			completeQueue(t)
		case AccountType + "/encryptionScopes":
			t.Fill, t.Show, t.All, t.Filter = rotateScope, showScope, listScopes, startsWith
		case AccountType + "/localUsers":
			t.Show = showUser
		case AccountType + "/inventoryPolicies":
			t.Show = showName("DefaultInventoryPolicy")
		case AccountType + "/objectReplicationPolicies":
			t.Fill = keepRuleIDs
		case AccountType + "/managementPolicies":
			t.Show = showName("DefaultManagementPolicy")
			t.Missing = func(c *behaviour.Call) error {
				return behaviour.Refusal(404, "ManagementPolicyNotFound", "No ManagementPolicy found for account %s", c.ID.Parent().Name())
			}
		}
	}
	return behaviour.Provider{
		Types: types,
		Routes: []behaviour.Route{
			{
				Method: "POST", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Storage/checkNameAvailability",
				Do: checkName, Permission: "Microsoft.Storage/checknameavailability/read",
			},
			{
				Method: "GET", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Storage/locations/{location}/usages",
				Do: usages, Permission: "Microsoft.Storage/locations/usages/read",
			},
			{
				Method: "GET", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Storage/skus", Do: listSKUs,
				Permission: "Microsoft.Storage/skus/read",
			},
			{
				Method: "PUT",
				Pattern: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Storage/storageAccounts/{account}/" +
					"objectReplicationPolicies/default",
				Do: newReplication, Permission: AccountType + "/objectReplicationPolicies/write", Writes: true,
			},
			{
				Method: "GET", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Storage/deletedAccounts",
				Do: listDeletedAccounts, Permission: "Microsoft.Storage/deletedAccounts/read",
			},
		},
	}
}

// The types that the data plane reads.
const (
	AccountType = "Microsoft.Storage/storageAccounts"
	ShareType   = AccountType + "/fileServices/shares"
)

// showName shows an account's only policy of a kind by a name that its id does not have.
func showName(name string) func(*behaviour.Call, behaviour.Object) {
	return func(_ *behaviour.Call, view behaviour.Object) { view["name"] = name }
}

// showUser shows whether a user has a password, but in replies to writes that do not say it.
func showUser(c *behaviour.Call, view behaviour.Object) {
	if c.Verb != behaviour.Create && c.Verb != behaviour.Update {
		behaviour.Default(view, "properties.hasSshPassword", false)
	}
}

// child returns the style of an account's children, which have no operations and no states.
func child(etag behaviour.Etag) behaviour.Style {
	s := behaviour.Plain("Microsoft.Storage children")
	s.Protocol = behaviour.StorageOperations()
	s.Etag = etag
	if etag != behaviour.NoEtag {
		s.EtagHeader = behaviour.OnGetAndPut
	}
	return s
}

// unconditional returns the style of children that ignore, on writes, If-Match and If-None-Match, though they show an etag.
func unconditional(s behaviour.Style) behaviour.Style {
	s.Unconditional = true
	return s
}

// notFound returns the error of the data plane for a missing resource.
func notFound(c *behaviour.Call, code, what string) error {
	return behaviour.Refusal(404, code, "The specified %s does not exist.\nRequestId:%s\nTime:%s", what, c.GUID(),
		behaviour.Timestamp(c.Now()))
}

// missing returns the error of a type for a missing resource, also of a missing account.
func missing(code, what string) func(c *behaviour.Call) error {
	return func(c *behaviour.Call) error {
		if _, there := c.Get(c.ID.Parent()); !there {
			return behaviour.ParentNotFound("read", c.ID)
		}
		return notFound(c, code, what)
	}
}
