// Package behaviour is the contract between the core of the local Azure and the resource types that the core knows. A type
// is a [Type]: a struct of data and optional functions. Layer L2: azure and the standard library only.
//
// The core does what all resources have in common: routing, ids, etags and preconditions, operations and their polls,
// lists, references and cascades. It also keeps inline children in their parent's document. A type has what is particular
// to it: the fields that Azure fills in, its refusals, the effects of ended operations, and the computed fields.
//
// The core calls these functions under the store's lock, so they never wait, and compute what takes long with [World].Compute. They run
// in a transaction: after an error or a panic nothing that they did remains.
package behaviour

import (
	"net/http"
	"net/url"

	"kaz/internal/azure"
	"kaz/internal/localazure/core/model"
)

// Object is a JSON object as encoding/json decodes it.
type Object = map[string]any

// Verb is what a request does to a resource.
type Verb string

// The verbs. An action is named by its own name, "start".
const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
	Get    Verb = "get"
	List   Verb = "list"
)

// Where says whether a type's resources have a location.
type Where int

// Located resources must have a location in their request. The location of Anywhere resources is optional. Global resources
// have the location "global". Nowhere resources have no location.
const (
	Nowhere Where = iota
	Located
	Anywhere
	Global
)

// Type is one resource type. Only Name and Style are needed.
type Type struct {
	// Name is the full type as Azure spells it, "Microsoft.Network/routeTables/routes".
	Name  string
	Style Style
	Where Where

	// Inline says where the parent's document holds resources of this type, such as
	// "properties.routes": an array of objects with names. There is one truth, the
	// parent's document: writing the child edits it, and writing the parent writes
	// its children. The core gives every element its id, etag, type and
	// provisioningState.
	Inline string
	// ReadOnly types can be read and listed but not written by clients.
	ReadOnly bool
	// NoState types have no properties.provisioningState.
	NoState bool
	// NoType types do not show their type.
	NoType bool

	// Own are paths ("properties.resourceGuid") that belong to Azure: what a request
	// says there is ignored, and what the stored document has there is kept. A path
	// that goes through an array of named objects applies to every element.
	Own []string

	// Versions are the api-versions of the type, the newest first, nil if not all are known.
	Versions []string
	// Model has what the official model of the type says of requests, nil for a type that takes any members.
	Model *model.Table
	// Fields describe the documents. Before Fill the core converts the values that were sent. After Fill the core fills in
	// the values that were left out.
	Fields Fields
	// Fill completes c.Doc, the document that a create or update makes. It sets defaults and fields that Azure adds, and
	// checks the document. c.Old is the document before, nil on create. For an inline child, Doc and Old are the element,
	// and c.Parent is the parent's new document. Fill of a parent runs before the Fill of its children. It runs again when
	// a child was written. It must accept its own output.
	Fill func(c *Call) error
	// Check runs on the parent after all its inline children are filled.
	Check func(c *Call) error
	// BlockedBy returns other resources that forbid a write while operations run on them. A write of this resource, or of
	// an inline child, is then refused with 409 AnotherOperationInProgress. Operations on the children of a returned
	// resource do not count.
	BlockedBy func(c *Call) []azure.ID
	// Settle runs when a create, update or patch succeeds, and may change c.Doc. Its error makes the operation fail. For an
	// inline child, c.Parent is its parent.
	Settle func(c *Call) error
	// Failed is called when an operation or an action on the resource fails, except a delete. c.Doc is the stored document
	// with the state Failed. The function may change it.
	Failed func(c *Call)
	// Merge applies a PATCH. c.Doc is a copy of the stored document, and c.Body is the request's body. Without Merge the
	// core merges as the Style says. Fill runs afterwards.
	Merge func(c *Call) error
	// InUse is called before a delete when other resources refer to this resource. Its error refuses the delete. Without
	// InUse the references do not matter. Children and resources below this resource do not count.
	InUse func(c *Call, by []Referrer) error
	// Refuse is called before a delete. Its error refuses the delete for a reason other than InUse. It is not called for
	// inline children that are deleted with their parent.
	Refuse func(c *Call) error
	// Release runs when a delete succeeds, before the resource is removed, with c.Old and c.Notes. Its error makes the
	// operation fail. It does not run for resources that are deleted with their parent or group.
	Release func(c *Call) error
	// Removed is called when the resource is gone, with c.Old. The core removes the children, and for a group everything in
	// it. It calls Removed for each of them.
	Removed func(c *Call) error
	// Show completes what a client sees, with back-references and computed fields. The view is a copy. c.Verb distinguishes
	// replies to writes from reads and lists.
	Show func(c *Call, view Object)
	// Version returns the version of c.Old that a GET names by a header, such as a snapshot. If the GET names none, it
	// returns c.Old. RemoveVersion removes the version that a DELETE names, and reports whether it names one.
	Version       func(c *Call) (Object, error)
	RemoveVersion func(c *Call) (bool, error)
	// Filter returns the test of a list's $filter. Without Filter the $filter is ignored.
	Filter func(c *Call, filter string) (func(Object) bool, error)

	// Find computes resources that are not in the store. It returns nil for a resource that does not exist. All replaces
	// the list. A type that is only computed is also ReadOnly.
	Find func(c *Call) (Object, error)
	All  func(c *Call) ([]Object, error)
	// Adopt stores what Find makes up before a PATCH or a DELETE changes it.
	Adopt bool
	// AnyScope types are extensions that are read at any scope, there or not.
	AnyScope bool
	// AtOnce says that this write ends in its reply though its verb has polling headers:
	// cheap SKUs of a type. The status of an update is then Style.Updated, and that of a delete is 200.
	AtOnce func(c *Call) bool
	// Header gives further headers of a good reply.
	Header func(c *Call, status int) map[string]string
	// DeleteReply is the body of the reply to a delete, of providers that send back what
	// they deleted.
	DeleteReply func(c *Call) any
	// Missing replaces the error for a resource that is not there.
	Missing func(c *Call) error
	// Page is the most resources on a page of a list, 0 for the default.
	Page int
	// EmptyLast ends a list that has pages with an empty page.
	EmptyLast bool

	// Actions are POST requests to a resource by name, in any case.
	Actions map[string]Action
	// Star says that "*" as a resource's name means all: an action on it is the parent's action of the same name.
	Star bool
	// Views are GET requests below a resource by name, such as "instanceView".
	Views map[string]func(c *Call) (any, error)

	// Latency names the row of the latency table, when it is not the type's own name.
	Latency string
}

// Action is a POST to a resource.
type Action struct {
	// Do checks and does it, and returns the reply's body. It may change c.Doc, a
	// copy of the resource's document.
	Do func(c *Call) (any, error)
	// Status of a good reply: when 0 it is 200, or 202 for a long action.
	Status int
	// OnAbsent actions work on resources that are not there, too.
	OnAbsent bool
	// Deferred actions are operations: what Do returns is the output, and the reply is empty. They are Long, without Settle.
	Deferred bool
	// Long actions are operations; Settle runs when they end and returns the output.
	Long   bool
	Settle func(c *Call) (any, error)
	// Headers of the reply to a long action, when they differ from the Style's
	// Long[Delete].
	Headers Headers
	// Busy is the provisioningState while it runs, "Updating" when empty; "-" leaves
	// the state alone.
	Busy string
	// Permission is the action's name for access control when it is not the request's.
	Permission string
	// Latency names the verb in the latency table, when it is not the action's name.
	Latency string
}

// Route is a request that is not to a resource of a type: catalogues, checks,
// anything with locations/{location} in it.
type Route struct {
	Method  string
	Pattern string // "/subscriptions/{subscription}/providers/Microsoft.Compute/skus"; names go to c.Param
	// Do answers it. An error that is an [*Error] is sent as such.
	Do func(c *Call) (Reply, error)
	// Permission is what access control asks for, "" for nothing.
	Permission string
	// Writes says that Do changes the world.
	Writes bool
	// Open routes need no token.
	Open bool
}

// Reply is a status and a body that is encoded as JSON. A nil body is empty.
type Reply struct {
	Status int
	Body   any
	Header map[string]string
}

// Provider is what a package of behaviours gives the core.
type Provider struct {
	Types  []Type
	Routes []Route
}

// Call is a request, or the end of an operation, as a behaviour sees it.
type Call struct {
	World
	Verb Verb
	// Action is the name of the action or view.
	Action string
	ID     azure.ID
	Type   *Type
	// Old is the stored document, nil when there is none. It is not to be changed.
	Old Object
	// Doc is the document being made.
	Doc Object
	// Body is the request's body, nil if it has none.
	Body Object
	// Parent is the document of the parent of a sub-resource, nil otherwise. For
	// inline children it is the document being made.
	Parent Object
	// Query are the request's query parameters. The case of keys does not matter.
	Query url.Values
	// Header are the request's headers, nil when there is no request.
	Header http.Header
	// Param are the names in a Route's pattern.
	Param map[string]string
	// Notes is kept with an operation from its start to its end; JSON values only.
	Notes Object
	// Caller is the principal that makes the request. An operation has the caller of the request that began it.
	Caller Caller
	// Download returns the content at a URI that the request names, nil when there is no request. It may return a
	// [NotDownloaded], which the behaviour returns: then the core gets the content, and calls the behaviour again.
	Download func(uri string) ([]byte, error)
	// Host is scheme and host under which the client knows this server.
	Host string
}

// Expands reports whether the request's $expand names what.
func (c *Call) Expands(what string) bool { return hasWord(c.Query.Get("$expand"), what) }

// Location is the document's location.
func (c *Call) Location() string {
	for _, doc := range []Object{c.Doc, c.Parent, c.Old} {
		if l := Text(doc, "location"); l != "" {
			return l
		}
	}
	return ""
}

// Changed reports whether the path has another value than before.
func (c *Call) Changed(path string) bool {
	return c.Old != nil && !Equal(At(c.Old, path), At(c.Doc, path))
}
