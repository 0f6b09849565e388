package azure

import "context"

// Query names a list of resources.
type Query struct {
	// Scope is what the list is in: a resource group, a subscription, or the
	// parent of sub-resources.
	Scope ID
	// Type is the full type of what is listed, "Microsoft.Network/loadBalancers".
	// For sub-resources it includes the parent's types.
	Type string
	// Expand and Filter are sent as $expand and $filter when not empty.
	Expand, Filter string
}

// Reader reads Azure. Errors are [*Error].
type Reader interface {
	// Get reads one resource; its absence is an error of kind NotFound.
	Get(ctx context.Context, id ID) (Document, error)
	// List reads all pages of a list; nothing there is an empty list.
	List(ctx context.Context, q Query) ([]Document, error)
}

// Write is what a [Writer] is asked to put.
type Write struct {
	ID   ID
	Body Document
	// IfMatch is the etag that the resource must still have, "" for none.
	IfMatch string
	// Create demands that the resource does not exist yet.
	Create bool
	// Unseen says that the caller does not look at what the write returns. Where
	// Azure's own answers do not hold the resource it is empty then, and need not be
	// read.
	Unseen bool
}

// Writer changes Azure. Every method returns when Azure has finished the
// operation, not when it has accepted it. Errors are [*Error].
type Writer interface {
	// Put creates or replaces a resource and returns it as Azure made it.
	Put(ctx context.Context, w Write) (Document, error)
	// Patch merges body into a resource.
	Patch(ctx context.Context, w Write) (Document, error)
	// Delete removes a resource; one that is not there is no error.
	Delete(ctx context.Context, id ID) error
	// Post runs an action of a resource and returns its answer, which may be empty.
	Post(ctx context.Context, id ID, action string, body Document) (Document, error)
}
