package verbs

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/world"
)

// inside is the [behaviour.World] of a transaction. Its behaviours can carry out requests inside of the local Azure.
type inside struct{ *world.Transaction }

// Inside is what behaviours see of a transaction.
func Inside(t *world.Transaction) behaviour.World { return inside{t} }

// Permit implements [behaviour.World].
func (w inside) Permit(by behaviour.Caller, action string, scope azure.ID) error {
	return checks.In(w.Transaction).Permit(by, action, scope)
}

// Unlocked implements [behaviour.World].
func (w inside) Unlocked(id azure.ID, change string) error {
	return checks.In(w.Transaction).Unlocked(id, change)
}

// Apply implements [behaviour.World]. An error takes back what it did, unless the error says to keep it.
func (w inside) Apply(by behaviour.Caller, id azure.ID, body behaviour.Object) error {
	return w.ApplyVersion(by, id, "", body)
}

// ApplyVersion implements [behaviour.World].
func (w inside) ApplyVersion(by behaviour.Caller, id azure.ID, version string, body behaviour.Object) error {
	mark := w.Mark()
	err := w.apply(by, id, version, body)
	if kept, ok := errors.AsType[*behaviour.Error](err); err != nil && (!ok || !kept.Keep) {
		w.UndoTo(mark)
	}
	return err
}

func (w inside) apply(by behaviour.Caller, id azure.ID, version string, body behaviour.Object) error {
	r, err := w.request(by, http.MethodPut, string(id), body)
	if err != nil {
		return fmt.Errorf("apply %s: %w", id, err)
	}
	if version != "" {
		r.Version = version
		r.Query.Set("api-version", version)
	}
	if err := w.faulty(r); err != nil {
		return err
	}
	if err := checks.In(w.Transaction).Frame(r); err != nil {
		return err
	}
	if _, err := newWriter(w.Transaction).put(r); err != nil {
		return err
	}
	return w.Runner.FinishRunning(r.Kind, r.ID)
}

// faulty applies the fault rules to a write that a deployment makes. What is only tried has no faults.
func (w inside) faulty(r *message.Request) error {
	if w.Trying() {
		return nil
	}
	rule, answered := w.Parts.Faults.Pick(fault.Request{
		Method: r.Method, Type: r.Kind.Name, Name: r.ID.Name(), Parent: r.ID.Parent().Key(),
	})
	answered()
	switch {
	case rule == nil:
		return nil
	case rule.Fault == fault.Error:
		return rule.Refusal()
	case rule.Fault == fault.Operation:
		r.OperationFault = rule.Refusal()
	case rule.Fault == fault.Drop:
		r.Forget = rule.Forget
	}
	return nil
}

// Remove implements [behaviour.World]. An error takes back what it did.
func (w inside) Remove(by behaviour.Caller, id azure.ID) error {
	mark := w.Mark()
	r, err := w.request(by, http.MethodDelete, string(id), nil)
	if err == nil {
		_, err = newRemover(w.Transaction).remove(r)
	}
	if err == nil {
		err = w.Runner.FinishRunning(r.Kind, r.ID)
	}
	if err != nil {
		w.UndoTo(mark)
	}
	return err
}

// Act implements [behaviour.World].
func (w inside) Act(by behaviour.Caller, id azure.ID, action string, body behaviour.Object) (any, error) {
	r, err := w.request(by, http.MethodPost, string(id)+"/"+action, body)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", action, id, err)
	}
	if a, _, _ := r.Kind.Action(r.Action); a.Long {
		return nil, fmt.Errorf("%s of %s is a long-running operation", action, id)
	}
	answer, err := newActions(w.Transaction).post(r)
	return answer.Body, err
}

// request is one that is made inside of the local Azure for a caller.
func (w inside) request(by behaviour.Caller, method, path string, body behaviour.Object) (*message.Request, error) {
	r := &message.Request{Method: method, Query: url.Values{}, Header: http.Header{}, Body: behaviour.Clone(body), Caller: by}
	if err := r.Resolve(w.Resolver(), path); err != nil {
		return r, err
	}
	return r, w.Permit(by, r.Right(), r.ID)
}

// PermissionsType lists what the caller may do at a scope.
func PermissionsType() behaviour.Type {
	return behaviour.Type{
		Name: "Microsoft.Authorization/permissions", Style: behaviour.Plain("Microsoft.Authorization"), ReadOnly: true,
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			w, ok := c.World.(inside)
			if !ok || c.Caller.Principal == nil {
				return nil, nil
			}
			items := []behaviour.Object{}
			for _, p := range w.Access.Permissions(c.Caller.Principal, c.ID) {
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
