package behaviour

import (
	"strings"

	"kaz/internal/azure"
)

// Headers says which polling headers a reply carries.
type Headers int

// The headers, to be combined with |. None makes the request end in its reply.
const (
	None           Headers = 0
	AsyncOperation Headers = 1 << iota
	Location
	Notification
)

// Etag is the form of a resource's etag.
type Etag int

// The forms: none, W/"guid", "1", a bare guid, a quoted guid, "0x8D...".
const (
	NoEtag Etag = iota
	WeakGUID
	Counter
	BareGUID
	QuotedGUID
	Ticks
)

// When says on which replies something is shown.
type When int

// The replies.
const (
	Never When = iota
	OnGet
	OnGetAndPut
)

// Overlap says what a write does while an operation of the same resource runs.
type Overlap int

// Queue waits for the running operation. Supersede cancels an operation on the same resource, and lets operations on other
// children of the document run. Busy is refused with 409. Parallel ignores running operations. A write to a resource that
// is being deleted is always refused.
const (
	Queue Overlap = iota
	Supersede
	Busy
	Parallel
)

// Accepted is the body of a 202 reply to a PUT.
type Accepted int

// The bodies: the whole document, {}, nothing.
const (
	Whole Accepted = iota
	EmptyObject
	Nothing
)

// Wait is the Retry-After in seconds of the first reply and of later polls; 0
// sends none.
type Wait struct{ First, Later int }

// Style is what a family of types has in common on the wire. The functions below
// return one each. A type that differs changes its own copy.
type Style struct {
	// Name is for the documentation.
	Name string

	Etag       Etag
	EtagHeader When
	// NoEtagBody leaves the etag out of the document.
	NoEtagBody bool
	// EtagHeaderForm is the header's form if it differs from the form in the body.
	EtagHeaderForm Etag
	// Unconditional types ignore If-Match and If-None-Match although they have an etag.
	Unconditional bool

	// Status codes; 0 means 201, 200, 200, 200, 204 in this order.
	Created, Updated, Patched, Deleted, Absent int

	// Long says which verbs are operations and what headers their replies have; verbs
	// that are not here end in their reply.
	Long map[Verb]Headers
	// Prompt verbs have finished when their reply is sent, though it has the headers.
	Prompt map[Verb]bool
	// Protocol is how operations are polled.
	Protocol Protocol
	// Wait are the Retry-After values by verb or action; Otherwise for the rest.
	Wait      map[Verb]Wait
	Otherwise Wait

	// Creating, Updating and Deleting are the provisioningState of a resource while
	// the operation runs; Creating is Updating's value when empty.
	Creating, Updating, Deleting string
	// Hidden resources are not to be seen before their creation is done.
	Hidden   bool
	Accepted Accepted
	Overlap  Overlap
	// Alone refuses a write while an operation runs on another resource in the same
	// document, with 429 AnotherOperationInProgress, as subnets do.
	Alone bool

	// Records says that the ids in a document are records: they refer to nothing.
	Records bool

	// Details makes every error carry details, if only [].
	Details bool
	// Bare sends errors without the "error" around them.
	Bare bool
	// Mismatch is the error for an If-Match that does not match; have is "" when the
	// resource does not exist.
	Mismatch func(id azure.ID, sent, have string) *Error
	// Exists is the error for If-None-Match: * when it does.
	Exists func(id azure.ID) *Error
	// PreconditionInPoll reports them when the operation ends.
	PreconditionInPoll bool
	// Missing is the error for a child that is not there. Nil is ARM's own.
	Missing func(id azure.ID) *Error

	// TagsOnly says that PATCH changes tags and nothing else.
	TagsOnly bool
	// EmptyTags shows "tags":{} where there are none.
	EmptyTags bool
	// Reduce replaces whole resources that a request nests by {"id": ...}.
	Reduce bool
	// Provisioned refuses references to resources on which an operation runs.
	Provisioned bool
	// CheckReferences refuses references to resources that do not exist, of types
	// this local Azure knows.
	CheckReferences bool
	// RawNextLink writes the nextLink of a list with its port, also the default one, and leaves
	// its query unencoded.
	RawNextLink bool
	// LowerGroup shows the group's name in lower case in ids, UpperGroup in upper.
	LowerGroup, UpperGroup bool
}

// HasPreconditions reports whether writes heed If-Match and If-None-Match. Types without an etag, such as disks, ignore both.
func (s Style) HasPreconditions() bool { return s.Etag != NoEtag && !s.Unconditional }

// Group is the style of resource groups.
func Group() Style {
	return Style{
		Name:     "Azure Resource Manager",
		Deleted:  202,
		Long:     map[Verb]Headers{Delete: Location},
		Protocol: Job("RESOURCEGROUPDELETIONJOB", 200),
		Wait:     map[Verb]Wait{Delete: {15, 15}},
		Updating: "Updating", Deleting: "Deleting",
		Overlap: Parallel,
	}
}

// Network is the style of Microsoft.Network but for DNS.
func Network() Style {
	return Style{
		Name: "Microsoft.Network", Etag: WeakGUID, EtagHeader: OnGet, Deleted: 202,
		Long: map[Verb]Headers{
			Create: AsyncOperation | Notification, Update: AsyncOperation | Notification,
			Delete: AsyncOperation | Location | Notification,
		},
		Protocol:  NetworkOperations(),
		Wait:      map[Verb]Wait{Delete: {10, 10}},
		Otherwise: Wait{3, 10},
		Updating:  "Updating", Deleting: "Deleting",
		Overlap: Supersede, Details: true, Mismatch: networkMismatch, Exists: networkExists,
		Missing:  networkMissing,
		TagsOnly: true, Reduce: true, Provisioned: true, CheckReferences: true,
	}
}

func networkMismatch(id azure.ID, sent, have string) *Error {
	e := Refusal(412, "PreconditionFailed", "Precondition failed.")
	if have == "" {
		return e.With("PreconditionFailedEtagMismatch",
			"Etag provided in if-match header %s does not match: resource %s does not exist in NRP data store.", weak(sent), id)
	}
	return e.With("PreconditionFailedEtagMismatch",
		"Etag provided in if-match header %s does not match etag %s of resource %s in NRP data store.", weak(sent), have, id)
}

func weak(sent string) string {
	if strings.HasPrefix(sent, "W/") {
		return sent
	}
	return `W/"` + strings.Trim(sent, `"`) + `"`
}

func networkExists(id azure.ID) *Error {
	return Refusal(412, "PreconditionFailed", "Precondition failed.").
		With("PreconditionFailedResourceExists", "Resource %s already exists.", id)
}

func networkMissing(id azure.ID) *Error {
	return Refusal(404, "NotFound", "Resource %s not found.", id)
}

// Compute is the style of virtual machines and scale sets.
func Compute() Style {
	return Style{
		Name: "Microsoft.Compute", Etag: Counter, EtagHeader: OnGetAndPut, Deleted: 202,
		Long: map[Verb]Headers{
			Create: AsyncOperation | Notification, Update: AsyncOperation | Notification, Patch: AsyncOperation | Notification,
			Delete: AsyncOperation | Location | Notification,
		},
		Protocol: ComputeOperations("operations", false),
		Wait:     map[Verb]Wait{Delete: {10, 30}, "start": {10, 30}, "deallocate": {10, 30}},
		Creating: "Creating", Updating: "Updating", Deleting: "Deleting",
		Overlap: Queue, Mismatch: computeMismatch, RawNextLink: true,
	}
}

func computeMismatch(_ azure.ID, sent, have string) *Error {
	if have == "" {
		return Refusal(412, "PreconditionFailed", "Etag provided in if-match header %s does not match: the resource does not exist.",
			quoted(sent))
	}
	return Refusal(412, "PreconditionFailed", "Etag provided in if-match header %s does not match etag %s of resource.", quoted(sent), have)
}

func quoted(sent string) string { return `"` + strings.Trim(sent, `"`) + `"` }

// Disk is the style of disks and snapshots.
func Disk() Style {
	s := Compute()
	s.Name, s.Etag, s.EtagHeader = "Microsoft.Compute disks", NoEtag, Never
	s.Created, s.Updated, s.Patched = 202, 202, 202
	s.Long = map[Verb]Headers{
		Create: AsyncOperation | Location, Update: AsyncOperation | Location, Patch: AsyncOperation | Location,
		Delete: AsyncOperation | Location,
	}
	s.Protocol = ComputeOperations("DiskOperations", true)
	s.Wait = map[Verb]Wait{Create: {2, 30}, Update: {2, 30}, Patch: {2, 30}, Delete: {10, 30}}
	s.Creating, s.Updating = "Updating", "Updating"
	return s
}

// Storage is the style of storage accounts; their children are [Plain] with an
// etag of [Ticks].
func Storage() Style {
	return Style{
		Name: "Microsoft.Storage", Created: 202,
		Long:     map[Verb]Headers{Create: Location},
		Protocol: StorageOperations(),
		Wait:     map[Verb]Wait{Create: {17, 3}},
		Creating: "Creating", Updating: "Updating",
		Hidden: true, Accepted: Nothing, EmptyTags: true, Overlap: Parallel,
	}
}

// PrivateDNS is the style of private zones and their links; record sets are
// [Plain] with an etag of [BareGUID].
func PrivateDNS() Style {
	both := AsyncOperation | Location
	return Style{
		Name: "Microsoft.Network private DNS", Etag: QuotedGUID, EtagHeader: OnGet,
		Created: 202, Updated: 202, Patched: 202, Deleted: 202,
		Long:     map[Verb]Headers{Create: both, Update: both, Patch: both, Delete: both},
		Protocol: PrivateDNSOperations(),
		Creating: "Creating", Updating: "Updating", Deleting: "Deleting",
		Hidden: true, Accepted: EmptyObject, PreconditionInPoll: true, LowerGroup: true,
		Overlap: Queue,
	}
}

// Plain is the style of types without long-running operations. A PUT answers 201 for a new resource and 200 for an existing
// resource. A DELETE answers 200, or 204 if there is no resource.
func Plain(name string) Style {
	return Style{Name: name, Overlap: Parallel}
}

// Deployment is the style of template deployments.
func Deployment() Style {
	return Style{
		Name: "Azure Resource Manager deployments", Deleted: 202, Records: true,
		Long:     map[Verb]Headers{Create: AsyncOperation, Update: AsyncOperation, Delete: Location},
		Protocol: DeploymentOperations(),
		Creating: "Accepted", Updating: "Accepted", Deleting: "Deleting",
		Wait:    map[Verb]Wait{Delete: {15, 15}},
		Overlap: Busy,
	}
}
