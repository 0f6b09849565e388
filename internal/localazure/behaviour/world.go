package behaviour

import (
	"iter"
	"time"

	"kaz/internal/azure"
	"kaz/internal/template"
)

// World is the state of the local Azure during a call. Documents it returns are
// shared and not to be changed; [Clone] makes a copy. Ids of inline children
// work as the ids of other resources do.
type World interface {
	// Get is the document with the id.
	Get(id azure.ID) (Object, bool)
	// View is what a client sees of the resource with the id.
	View(id azure.ID) (Object, bool)
	// Known reports whether there is a resource type with the name.
	Known(fullType string) bool
	// List yields resources of a type in a scope, in the order in which they were
	// created: a subscription, a group, or a parent.
	List(scope azure.ID, fullType string) iter.Seq2[azure.ID, Object]
	// Count is the number of resources that List yields, without reading them.
	Count(scope azure.ID, fullType string) int
	// In yields the resources of all types directly in a group, or below a resource,
	// in the order in which they were created. Inline children are not among them.
	In(scope azure.ID) iter.Seq2[azure.ID, Object]
	// Heads yields what In yields, as documents without their properties but for the provisioningState, which
	// takes less time.
	Heads(scope azure.ID) iter.Seq2[azure.ID, Object]
	// Referrers are the places that refer to the id, in the order of their ids.
	Referrers(id azure.ID) []Referrer

	// Put creates or replaces a document: a resource that the call makes besides its
	// own. Fields like id, name, type and etag are set by the core; Fill does not run.
	Put(id azure.ID, doc Object)
	// Permit refuses what access control or a management lock keeps a caller from. The action is as in role definitions. Apply, Remove
	// and Act do that themselves. The other methods know no caller: a behaviour that passes on what they return asks Permit first.
	Permit(by Caller, action string, scope azure.ID) error
	// Unlocked refuses a change of a resource, "write" or "delete", because of a management lock.
	Unlocked(id azure.ID, change string) error
	// Apply does what a client's PUT of the body does, and its operation ends at once.
	Apply(by Caller, id azure.ID, body Object) error
	// ApplyVersion is Apply with an api-version, "" for the newest.
	ApplyVersion(by Caller, id azure.ID, version string, body Object) error
	// Outcome is the error with which the last operation on a resource ended, the error of [Later] while it runs, or nil.
	Outcome(id azure.ID) error
	// Remove does what a client's DELETE does, and its operation ends at once.
	Remove(by Caller, id azure.ID) error
	// Try calls f, and takes back all that it did.
	Try(f func())
	// Act does what a client's POST of an action does, and returns the body of its reply.
	// Actions that are operations are refused.
	Act(by Caller, id azure.ID, action string, body Object) (any, error)
	// Edit changes a stored document. It reports whether it is stored.
	Edit(id azure.ID, change func(doc Object)) bool
	// Delete removes a document with all that lies below it, each with its Removed.
	Delete(id azure.ID)
	// Move gives a resource and all below it another id. What refers to it refers to the new id.
	Move(from, to azure.ID)
	// Cancel ends the operations that run on a resource as canceled. It reports whether
	// there are any. Deletions are not canceled.
	Cancel(id azure.ID) bool
	// Touch gives the resource a new etag though its document stays the same.
	Touch(id azure.ID)

	// Allowed reports whether access control lets a principal do an action, such as
	// "Microsoft.Network/loadBalancers/write", at a scope.
	Allowed(p *Principal, action string, scope azure.ID) bool
	// AllowedData is Allowed for a data action, such as "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read".
	AllowedData(p *Principal, action string, scope azure.ID) bool

	// Now is the time of the call.
	Now() time.Time
	// Takes returns how long something takes here that takes d on Azure: no time without latency.
	Takes(d time.Duration) time.Duration
	// Work bounds what the templates of the request compute together, and keeps what they computed.
	Work() *template.Work
	// Compute calls f, which computes what takes long and keeps it in the Work. During a request it returns a [NotComputed] with f
	// instead, which the behaviour returns: the core calls f while no transaction is open, and then the behaviour again.
	Compute(f func(look Look)) error
	// GUID and Intn draw from the seeded source.
	GUID() string
	Intn(n int) int
	// Tenant and Subscription are the main tenant and subscription of this local Azure. Subscriptions are all
	// subscriptions, the main one first. TenantOf is the tenant of a subscription, "" when
	// that does not exist.
	Tenant() string
	Subscription() string
	Subscriptions() []string
	TenantOf(subscription string) string
	// Quota is the limit of a quota of vCPUs in each region. Quotas that are not given are not enforced.
	Quota(name string) (limit int, given bool)
	// User is the user of the directory with an object id.
	User(objectID string) (User, bool)
	// Boots reports whether machines with custom data boot. In other Azures they are documents.
	Boots() bool
}

// Referrer is a place in a document that names a resource.
type Referrer struct {
	// Resource is the id of the stored document.
	Resource azure.ID
	// Object is the id of the nearest object around the place that has an id:
	// ".../networkInterfaces/n/ipConfigurations/c". It is Resource when there is none.
	Object azure.ID
	// Path leads to the place, without array indexes and without the "id" of an
	// {"id": ...}: "properties.ipConfigurations.properties.subnet".
	Path string
}
