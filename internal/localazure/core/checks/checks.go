// Package checks has what may refuse a request to a resource: one list, in Azure's order.
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

var (
	change    = []string{http.MethodPut, http.MethodPatch}
	changeAct = append([]string{http.MethodPost}, change...)
	remove    = []string{http.MethodDelete}
)

// inOrder are all checks. Those of Targeted come before the count of requests by package throttle, the others after it.
var inOrder = []struct {
	at      Stage
	methods []string // nil for all
	check   func(t Checks, r *message.Request, c *behaviour.Call) error
}{
	{Targeted, nil, Checks.authorized},
	{Received, change, Checks.frame},
	{Received, nil, Checks.locks},
	{Placed, append(remove, change...), Checks.writable},
	{Placed, append([]string{http.MethodGet, http.MethodHead}, changeAct...), Checks.scope},
	{Placed, remove, Checks.group},
	{Compared, change, Checks.members},
	{Intended, changeAct, Checks.links},
	{Intended, change, Checks.policies},
	{Conditional, nil, Checks.precondition},
	{Accepted, change, Checks.kept},
	{Accepted, remove, Checks.removable},
	{Completed, change, Checks.values},
	{Completed, change, Checks.references},
	{Whole, change, Checks.blockers},
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
	return Checks{docs: t.Transaction, world: t.World, access: &t.Access, groups: t.Parts.Groups, kinds: t.Parts.Kinds, queue: t.Parts.Queue}
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

// frame refuses a body whose members that all resources have are not of their form.
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
