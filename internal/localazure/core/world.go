package core

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
	"kaz/internal/template"
)

// transaction is the [behaviour.World] of one call: the documents, the subscriptions,
// access control, and the operations. Its other methods make what carries out a
// request, each part with only what it needs.
type transaction struct {
	*store.Transaction
	*tenancy
	parts  *parts
	access access.Control
	runner operation.Runner
	trials int // of Try that have not ended
	budget *template.Budget
	// sizeBefore is the size of all documents at the start.
	sizeBefore int
}

func newTransaction(tx *store.Transaction, p *parts) *transaction {
	t := &transaction{Transaction: tx, tenancy: &p.tenancy, parts: p, sizeBefore: tx.Size(), budget: template.NewBudget()}
	t.access = access.Control{Enforced: p.accessControl, SeveralTenants: p.tenancy.several(), Kinds: p.kinds, Docs: tx, World: t}
	t.runner = operation.Runner{Queue: p.queue, Docs: tx, World: t,
		Guard: func(f func() error) *behaviour.Error {
			return guarded(p.log, func() error {
				if err := f(); err != nil {
					return err
				}
				return t.checkSizes()
			})
		}}
	tx.World, tx.Gone = t, t.runner.Drop
	return t
}

// View implements [behaviour.World].
func (t *transaction) View(id azure.ID) (behaviour.Object, bool) {
	doc, ok := t.Get(id)
	k := t.parts.kinds.Of(id.Type())
	if !ok || k == nil || !k.Shows() {
		return doc, ok
	}
	c := behaviour.Call{World: t, Verb: behaviour.Get, ID: id}
	if k.Parent != nil {
		c.Parent, _ = t.Get(id.Parent())
	}
	return document.View(c, k, doc), true
}

// Takes implements [behaviour.World].
func (t *transaction) Takes(d time.Duration) time.Duration {
	return time.Duration(float64(d) * t.parts.latency.Factor)
}

// Budget implements [behaviour.World].
func (t *transaction) Budget() *template.Budget { return t.budget }

// Known implements [behaviour.World].
func (t *transaction) Known(fullType string) bool { return t.parts.kinds.Of(fullType) != nil }

// Permit implements [behaviour.World].
func (t *transaction) Permit(by behaviour.Caller, action string, scope azure.ID) error {
	if by.Principal != nil && by.Principal.Azure {
		return nil
	}
	if err := t.access.Authorize(by.Principal, action, scope); err != nil {
		return err
	}
	return t.Unlocked(scope, changeOf(action))
}

// Unlocked implements [behaviour.World].
func (t *transaction) Unlocked(id azure.ID, change string) error {
	return t.scopes().checkLocks(id, change)
}

// Apply implements [behaviour.World]. An error takes back what it did, unless the error says to keep it.
func (t *transaction) Apply(by behaviour.Caller, id azure.ID, body behaviour.Object) error {
	mark := t.Mark()
	err := t.apply(by, id, body)
	if kept, ok := errors.AsType[*behaviour.Error](err); err != nil && (!ok || !kept.Keep) {
		t.UndoTo(mark)
	}
	return err
}

func (t *transaction) apply(by behaviour.Caller, id azure.ID, body behaviour.Object) error {
	r, err := t.inner(by, http.MethodPut, string(id), body)
	if err != nil {
		return fmt.Errorf("apply %s: %w", id, err)
	}
	if err := t.faulty(r); err != nil {
		return err
	}
	if _, err := t.writer().put(r); err != nil {
		return err
	}
	return t.runner.FinishRunning(r.Kind, r.ID)
}

// faulty applies the fault rules to a write that a deployment makes. What is only tried has no faults.
func (t *transaction) faulty(r *request) error {
	if t.trials > 0 {
		return nil
	}
	rule, answered := t.parts.faults.Pick(fault.Request{
		Method: r.method, Type: r.Kind.Name, Name: r.ID.Name(), Parent: r.ID.Parent().Key(),
	})
	answered()
	switch {
	case rule == nil:
		return nil
	case rule.Fault == fault.Error:
		return rule.Refusal()
	case rule.Fault == fault.Operation:
		r.operationFault = rule.Refusal()
	case rule.Fault == fault.Drop:
		r.forget = rule.Forget
	}
	return nil
}

// Outcome implements [behaviour.World].
func (t *transaction) Outcome(id azure.ID) error { return t.runner.Outcome(id) }

// Remove implements [behaviour.World]. An error takes back what it did.
func (t *transaction) Remove(by behaviour.Caller, id azure.ID) error {
	mark := t.Mark()
	r, err := t.inner(by, http.MethodDelete, string(id), nil)
	if err == nil {
		_, err = t.remover().remove(r)
	}
	if err == nil {
		err = t.runner.FinishRunning(r.Kind, r.ID)
	}
	if err != nil {
		t.UndoTo(mark)
	}
	return err
}

// Try implements [behaviour.World].
func (t *transaction) Try(f func()) {
	mark := t.Mark()
	t.trials++
	defer func() {
		t.trials--
		t.UndoTo(mark)
	}()
	f()
}

// Act implements [behaviour.World].
func (t *transaction) Act(by behaviour.Caller, id azure.ID, action string, body behaviour.Object) (any, error) {
	r, err := t.inner(by, http.MethodPost, string(id)+"/"+action, body)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", action, id, err)
	}
	if a, _, _ := r.Kind.Action(r.Action); a.Long {
		return nil, fmt.Errorf("%s of %s is a long-running operation", action, id)
	}
	answer, err := t.actions().post(r)
	return answer.body, err
}

// inner is a request that is made inside of the local Azure for a caller.
func (t *transaction) inner(by behaviour.Caller, method, path string, body behaviour.Object) (*request, error) {
	r := &request{method: method, query: url.Values{}, http: &http.Request{Header: http.Header{}}, body: behaviour.Clone(body), caller: by}
	if err := r.resolve(t.resolver(), path); err != nil {
		return r, err
	}
	return r, t.Permit(by, access.ActionOf(method, r.Kind, r.Action), r.ID)
}

// Cancel implements [behaviour.World].
func (t *transaction) Cancel(id azure.ID) bool { return t.runner.Cancel(id) }

// Allowed implements [behaviour.World].
func (t *transaction) Allowed(p *behaviour.Principal, action string, scope azure.ID) bool {
	return t.access.Allowed(p, action, scope)
}

// AllowedData implements [behaviour.World].
func (t *transaction) AllowedData(p *behaviour.Principal, action string, scope azure.ID) bool {
	return t.access.AllowedData(p, action, scope)
}

func (t *transaction) resolver() address.Resolver {
	return address.Resolver{Kinds: t.parts.kinds, TenantOf: t.TenantOf, Stored: func(id azure.ID) azure.ID {
		if e := t.Entry(id); e != nil {
			return e.ID
		}
		return ""
	}}
}

func (t *transaction) scopes() scopes {
	return scopes{docs: t.Transaction, world: t, groups: t.parts.groups}
}

func (t *transaction) reader() reader { return reader{scopes: t.scopes()} }

func (t *transaction) starter() starter {
	return starter{docs: t.Transaction, runner: &t.runner, latency: t.parts.latency, random: t.parts.random, groups: t.parts.groups}
}

func (t *transaction) writer() writer {
	return writer{
		scopes: t.scopes(), starter: t.starter(), access: &t.access, remover: t.remover(),
		references: references{docs: t.Transaction, kinds: t.parts.kinds, queue: t.parts.queue},
		identities: identities{known: t.parts.kinds.Of(userAssigned) != nil},
	}
}

func (t *transaction) remover() remover { return remover{scopes: t.scopes(), starter: t.starter()} }

func (t *transaction) actions() actions {
	return actions{scopes: t.scopes(), starter: t.starter(), access: &t.access}
}

// permissionsType lists what the caller may do at a scope.
func permissionsType() behaviour.Type {
	return behaviour.Type{
		Name: "Microsoft.Authorization/permissions", Style: behaviour.Plain("Microsoft.Authorization"), ReadOnly: true,
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			t, ok := c.World.(*transaction)
			if !ok || c.Caller.Principal == nil {
				return nil, nil
			}
			items := []behaviour.Object{}
			for _, p := range t.access.Permissions(c.Caller.Principal, c.ID) {
				items = append(items,
					behaviour.Object{"actions": list(p.Actions), "notActions": list(p.NotActions), "dataActions": []any{},
						"notDataActions": []any{}})
			}
			return items, nil
		},
	}
}

func list(texts []string) []any {
	l := make([]any, len(texts))
	for i, s := range texts {
		l[i] = s
	}
	return l
}
