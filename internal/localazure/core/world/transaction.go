package world

import (
	"strconv"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
	"kaz/internal/template"
)

// Transaction has the documents, the subscriptions, access control and the operations during one call. Its World is what
// behaviours see of it: the methods below, and those that carry out requests.
type Transaction struct {
	*store.Transaction
	*Tenancy
	Parts  *Parts
	Access access.Control
	Runner operation.Runner
	trials int // of Try that have not ended
	work   *template.Work
	later  bool // long computations are for later
	draws  int  // of GUID so far
	// sizeBefore is the size of all documents at the start.
	sizeBefore int
}

func newTransaction(tx *store.Transaction, p *Parts) *Transaction {
	t := &Transaction{Transaction: tx, Tenancy: &p.Tenancy, Parts: p, sizeBefore: tx.Size(), work: template.NewWork()}
	tx.World = p.Behaviours(t)
	t.Access = access.Control{Enforced: p.AccessControl, SeveralTenants: p.Tenancy.several(), Kinds: p.Kinds, Docs: tx, World: tx.World}
	t.Runner = operation.Runner{Queue: p.Queue, Docs: tx, World: tx.World,
		Guard: func(f func() error) *behaviour.Error {
			return guarded(p.Log, func() error {
				if err := f(); err != nil {
					return err
				}
				return t.CheckSizes()
			})
		}}
	tx.Gone = t.Runner.Drop
	return t
}

// View implements [behaviour.World].
func (t *Transaction) View(id azure.ID) (behaviour.Object, bool) {
	doc, ok := t.Get(id)
	k := t.Parts.Kinds.Of(id.Type())
	if !ok || k == nil || !k.Shows() {
		return doc, ok
	}
	c := behaviour.Call{World: t.World, Verb: behaviour.Get, ID: id}
	if k.Parent != nil {
		c.Parent, _ = t.Get(id.Parent())
	}
	return document.View(c, k, doc), true
}

// Takes implements [behaviour.World].
func (t *Transaction) Takes(d time.Duration) time.Duration {
	return time.Duration(float64(d) * t.Parts.Latency.Factor.Value())
}

// Work implements [behaviour.World].
func (t *Transaction) Work() *template.Work { return t.work }

// Compute implements [behaviour.World].
func (t *Transaction) Compute(f func(look behaviour.Look)) error {
	if t.later {
		return &behaviour.NotComputed{Compute: f}
	}
	f(func(g func(behaviour.World)) { g(t.World) })
	return nil
}

// Share lets a transaction go on with the work of others of the same request, and leaves long computations for later.
func (t *Transaction) Share(work *template.Work) { t.work, t.later = work, true }

// GUID implements [behaviour.World]. A request that is carried out again draws the same ones: what was computed for it, such as the
// template of a deployment that is nested in the request's, was computed from them.
func (t *Transaction) GUID() string {
	if !t.later {
		return t.Transaction.GUID()
	}
	t.draws++
	return t.work.Once("GUID "+strconv.Itoa(t.draws), t.Transaction.GUID)
}

// Known implements [behaviour.World].
func (t *Transaction) Known(fullType string) bool { return t.Parts.Kinds.Of(fullType) != nil }

// Outcome implements [behaviour.World].
func (t *Transaction) Outcome(id azure.ID) error { return t.Runner.Outcome(id) }

// Cancel implements [behaviour.World].
func (t *Transaction) Cancel(id azure.ID) bool { return t.Runner.Cancel(id) }

// Try implements [behaviour.World].
func (t *Transaction) Try(f func()) {
	mark := t.Mark()
	t.trials++
	defer func() {
		t.trials--
		t.UndoTo(mark)
	}()
	f()
}

// Trying reports whether what happens now will be taken back.
func (t *Transaction) Trying() bool { return t.trials > 0 }

// Allowed implements [behaviour.World].
func (t *Transaction) Allowed(p *behaviour.Principal, action string, scope azure.ID) bool {
	return t.Access.Allowed(p, action, scope)
}

// AllowedData implements [behaviour.World].
func (t *Transaction) AllowedData(p *behaviour.Principal, action string, scope azure.ID) bool {
	return t.Access.AllowedData(p, action, scope)
}

// Resolver finds the targets of requests.
func (t *Transaction) Resolver() address.Resolver {
	return address.Resolver{Kinds: t.Parts.Kinds, TenantOf: t.TenantOf, Stored: func(id azure.ID) azure.ID {
		if e := t.Entry(id); e != nil {
			return e.ID
		}
		return ""
	}}
}

// goOn lets a transaction go on with the work of the request that began an operation, with a budget of its own.
func (t *Transaction) goOn(o *operation.Operation) {
	if o.Work != nil {
		o.Work.Budget, t.work = template.NewBudget(), o.Work
	}
}
