// Package checks has what may refuse a request to a resource: one list, in Azure's order. Layer L2.
package checks

import (
	"net/http"
	"slices"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
	"kaz/internal/localazure/core/world"
)

// Stage is how far a request has come when a check is made.
type Stage int

// The stages, in their order.
const (
	Targeted    Stage = iota // its target is found
	Received                 // the request from outside is to be carried out
	Placed                   // its resource is to be found
	Compared                 // the resource is found that it is about
	Intended                 // its document is what the client wants
	Conditional              // the condition of its headers counts
	Accepted                 // it is to be carried out
	Completed                // its provider has completed the document
	Whole                    // the document that holds an inline child is complete
)

// The methods of requests for which a check is made.
var (
	writes  = []string{http.MethodPut, http.MethodPatch}
	bodies  = append([]string{http.MethodPost}, writes...)
	deletes = []string{http.MethodDelete}
)

// inOrder are all checks. Those of Targeted come before the count of requests by package throttle, the others after it.
var inOrder = []struct {
	at      Stage
	methods []string // nil for all
	check   func(t Checks, r *message.Request, c *behaviour.Call) error
}{
	{Targeted, nil, Checks.authorized},
	{Targeted, nil, Checks.version},
	{Received, writes, Checks.frame},
	{Received, nil, Checks.locks},
	{Placed, append(deletes, writes...), Checks.writable},
	{Placed, append([]string{http.MethodGet, http.MethodHead}, bodies...), Checks.scope},
	{Placed, deletes, Checks.group},
	{Compared, writes, Checks.members},
	{Intended, bodies, Checks.links},
	{Intended, writes, Checks.policies},
	{Conditional, nil, Checks.precondition},
	{Accepted, writes, Checks.kept},
	{Accepted, deletes, Checks.removable},
	{Completed, writes, Checks.values},
	{Completed, writes, Checks.references},
	{Whole, writes, Checks.blockers},
}

// Checks are the checks within a transaction.
type Checks struct {
	docs   *store.Transaction
	world  behaviour.World
	access *access.Control
	groups *kind.Kind
	kinds  kind.Table
	queue  *operation.Queue
}

// In makes the checks of a transaction.
func In(t *world.Transaction) Checks {
	p := t.Parts
	return Checks{docs: t.Transaction, world: t.World, access: &t.Access, groups: p.Groups, kinds: p.Kinds, queue: p.Queue}
}

// Pass makes the checks of a stage. Only those from Compared on need the behaviour's view of the request.
func (t Checks) Pass(at Stage, r *message.Request, c *behaviour.Call) error {
	for _, one := range inOrder {
		if one.at != at || one.methods != nil && !slices.Contains(one.methods, r.Method) {
			continue
		}
		if err := one.check(t, r, c); err != nil {
			return err
		}
	}
	return nil
}

// version refuses an api-version that the type does not have. Actions have versions of their own.
func (t Checks) version(r *message.Request, _ *behaviour.Call) error {
	if r.Action != "" || !behaviour.Lacks(r.Kind.Versions, r.Version) {
		return nil
	}
	location := behaviour.Text(r.Body, "location")
	if doc, there := t.world.Get(r.ID); location == "" && there && !r.List {
		location = behaviour.Text(doc, "location")
	}
	return behaviour.UnknownVersion(r.Kind.Name, r.Version, location, r.Kind.Versions)
}

// Frame is the check of a body that a deployment sends: of the stage Received it has no other.
func (t Checks) Frame(r *message.Request) error { return t.frame(r, nil) }

// frame refuses a body in which the members that all resources have are not of their form.
func (t Checks) frame(r *message.Request, _ *behaviour.Call) error {
	return document.CheckFrame(r.Body)
}

// writable refuses to change what can only be read.
func (t Checks) writable(r *message.Request, _ *behaviour.Call) error {
	if r.Kind.ReadOnly {
		return r.NotAllowed()
	}
	return nil
}
