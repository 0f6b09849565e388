package core

import (
	"encoding/json"
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/throttle"
	"kaz/internal/pause"
	"kaz/internal/template"
)

// front answers requests: it reads them, applies throttling and fault rules, carries
// them out in transactions, and sends the replies.
type front struct {
	*transactions
	identity authentication
	routes   []route
	throttle *throttle.Limiter
	faults   *fault.Rules
	crash    func(Fault)    // nil for none
	requests *requestLog    // nil for none
	draws    *random.Source // for request ids
	download Downloader
}

// serveHTTP answers one request.
func (f *front) serveHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newRequest(hr)
	f.answer(r)
	_ = pause.For(hr.Context(), r.wait) // no longer than the client waits
	r.answered()                        // before the client can know
	out := 0
	if !r.cut {
		out = f.send(w, r)
	}
	if f.requests != nil {
		if err := f.requests.write(r, began, out); err != nil {
			f.log.Error("request log", "error", err)
		}
	}
	if r.cut {
		panic(http.ErrAbortHandler) // what net/http offers to cut a connection
	}
}

// answer makes r.reply, whatever happens.
func (f *front) answer(r *request) {
	defer func() {
		if p := recover(); p != nil {
			logPanic(f.log, r.method+" "+r.http.URL.Path, p)
			r.refuse(internalError())
		}
	}()
	f.endDue()
	if err := f.serve(r); err != nil {
		r.refuse(asError(f.log, err))
	}
}

// serve is the way of a request: every step may refuse it.
func (f *front) serve(r *request) error {
	if err := r.readQuery(); err != nil {
		return err
	}
	f.findRoute(r)
	if !r.open() {
		if err := f.identity.authenticate(r); err != nil {
			return err
		}
		if err := r.readVersion(); err != nil {
			return err
		}
	}
	if err := r.readBody(); err != nil {
		return err
	}
	unknown := f.findTarget(r)
	if !r.open() {
		if err := f.admit(r); err != nil { // a request to an unknown resource counts as well
			return err
		}
	}
	switch {
	case unknown != nil:
		return unknown
	case r.route != nil:
		return f.serveRoute(r)
	case r.polled != nil:
		return f.poll(r)
	}
	return f.serveTarget(r)
}

// findTarget finds the operation or the resource of a request, and checks that the
// caller has the right to it.
func (f *front) findTarget(r *request) (err error) {
	if r.route != nil {
		return nil
	}
	f.read(func(t *transaction) {
		if r.method == http.MethodGet {
			if o, _ := f.queue.Polled(r.http.URL.Path); o != nil {
				r.polled = &o.Operation
				return
			}
		}
		if err = r.resolve(t.resolver(), r.http.URL.Path); err == nil {
			action := access.ActionOf(r.method, r.Kind, r.Action)
			err = t.access.Authorize(r.caller.Principal, action, r.ID)
			filtered := r.reads() && r.List && r.Kind.Parent == nil && r.Kind.Where != behaviour.Nowhere
			if err != nil && filtered && t.access.AllowedBelow(r.caller.Principal, action, r.ID) {
				r.onlyAllowed, err = true, nil
			}
		}
	})
	return err
}

// admit counts a request and refuses it when there were too many.
func (f *front) admit(r *request) error {
	q := throttle.Request{Method: r.method, Subscription: f.tenancy.subscription, ID: r.ID, List: r.List, Action: r.Action,
		Polled: r.polled}
	if p := r.caller.Principal; p != nil {
		q.Actor = p.ObjectID
	}
	if r.Kind != nil {
		q.Type = r.Kind.Name
	}
	headers, err := f.throttle.Admit(time.Now(), q)
	r.always = headers
	return err
}

// serveTarget carries out a request to a resource, an action or a list, and applies the
// fault rule for it, if any.
func (f *front) serveTarget(r *request) error {
	q := fault.Request{Method: r.method, Type: r.Kind.Name, Action: r.Action}
	if !r.List {
		q.Name, q.Parent = r.ID.Name(), r.ID.Parent().Key()
	}
	var rule *fault.Rule
	rule, r.answered = f.faults.Pick(q)
	if rule == nil {
		return f.carryOut(r)
	}
	f.log.Debug("fault rule applies", "fault", rule.Fault, "method", r.method, "path", r.http.URL.Path)
	switch rule.Fault {
	case fault.Error, fault.Overlap:
		return rule.Refusal()
	case fault.Operation:
		r.operationFault = rule.Refusal()
	case fault.Stale:
		r.stale = true
	case fault.Drop:
		r.forget = rule.Forget
	case fault.Unconditional:
		r.http.Header.Del("If-Match")
		r.http.Header.Del("If-None-Match")
	case fault.Absent:
		return f.deny(r)
	}
	err := f.carryOut(r)
	switch rule.Fault {
	case fault.Lost:
		r.cut = true
	case fault.Answer:
		return f.alter(r, rule, err)
	case fault.Crash:
		r.cut = true
		if f.crash != nil {
			f.crash(*rule)
		}
	}
	return err
}

// deny answers a read as a replica of Azure's that does not know the resource, or has none to
// list. Other requests are carried out.
func (f *front) deny(r *request) error {
	switch err := f.carryOut(r); {
	case err != nil || !r.reads():
		return err
	case r.List:
		r.reply.body = json.RawMessage(`{"value":[]}`)
		return nil
	}
	return behaviour.NotFound(r.ID)
}

// alter changes the answer of a read as a fault rule says. Other requests are carried out.
func (f *front) alter(r *request, rule *fault.Rule, err error) error {
	text, is := r.reply.body.(json.RawMessage)
	if err != nil || !r.reads() || !is {
		return err
	}
	altered, err := rule.Alter(text, r.List)
	r.reply.body = altered
	return err
}

// carryOut carries out a request in one transaction. It finds the target again, because
// the store may have changed since findTarget.
func (f *front) carryOut(r *request) (err error) {
	if r.reads() {
		f.read(func(t *transaction) {
			if err = r.resolve(t.resolver(), r.http.URL.Path); err == nil {
				r.wait = f.latency.Reply(r.Kind, r.readVerb())
				err = r.finish(t, t.reader().read)
			}
		})
		return err
	}
	budget := template.NewBudget() // of all tries
	return f.withDownloads(r, func() error {
		return f.write(func(t *transaction) error {
			t.budget = budget
			if err := r.resolve(t.resolver(), r.http.URL.Path); err != nil {
				return err
			}
			if err := r.finish(t, t.change); err != nil {
				return err
			}
			return t.checkSizes()
		})
	})
}

// finish makes the reply while the transaction lasts, with the headers that only this
// provider sends.
func (r *request) finish(t *transaction, serve func(r *request) (reply, error)) (err error) {
	if r.reply, err = serve(r); err != nil {
		return err
	}
	if r.Kind.Header != nil {
		for name, value := range r.Kind.Header(r.call(t, ""), r.reply.status) {
			r.reply.set(name, value)
		}
	}
	r.reply.freeze()
	return nil
}

func (r *request) readVerb() behaviour.Verb {
	if r.List {
		return behaviour.List
	}
	return behaviour.Get
}

// change carries out a request that may change something.
func (t *transaction) change(r *request) (reply, error) {
	if r.method == http.MethodPut || r.method == http.MethodPatch {
		if err := document.CheckFrame(r.body); err != nil {
			return reply{}, err
		}
	}
	if err := t.scopes().checkRequestLocks(r); err != nil {
		return reply{}, err
	}
	switch {
	case r.List:
	case r.method == http.MethodPut && r.Action == "":
		return t.writer().put(r)
	case r.method == http.MethodPatch && r.Action == "":
		return t.writer().patch(r)
	case r.method == http.MethodDelete && r.Action == "":
		return t.remover().remove(r)
	case r.method == http.MethodPost && r.Action != "":
		return t.actions().post(r)
	}
	return reply{}, methodNotAllowed(r)
}

func methodNotAllowed(r *request) error {
	return behaviour.Gateway(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"The HTTP method '%s' is not supported for resource type '%s'.", r.method, r.Kind.Name)
}
