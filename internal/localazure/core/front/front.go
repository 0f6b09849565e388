// Package front takes HTTP requests in and sends the replies: it parses, authenticates, counts, routes and logs. Layer
// L2.
package front

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/throttle"
	"kaz/internal/localazure/core/verbs"
	"kaz/internal/localazure/core/world"
	"kaz/internal/pause"
	"kaz/internal/template"
)

// Front answers requests: it reads them, applies throttling and fault rules, lets
// them be carried out in transactions, and sends the replies.
type Front struct {
	world    *world.World
	identity authentication
	routes   []route
	// Throttle counts requests.
	Throttle *throttle.Limiter
	crash    func(fault.Rule)
	requests *requestLog // nil for none
	draws    *random.Source
	download Downloader
	computes chan struct{} // of the computations that go on
}

// Options are what a front needs in addition to the world.
type Options struct {
	Authenticator Authenticator // nil lets every request in as an owner
	Routes        []behaviour.Route
	Throttle      bool
	Crash         func(fault.Rule) // nil for none
	RequestLog    io.Writer        // nil for none
	Draws         *random.Source   // for request ids
	Download      Downloader       // nil is [Download]
}

// New makes the front of a world.
func New(w *world.World, o Options) *Front {
	f := &Front{world: w, identity: authentication{o.Authenticator, &w.Tenancy}, Throttle: throttle.New(o.Throttle), crash: o.Crash,
		draws: o.Draws, download: o.Download, computes: make(chan struct{}, mostAtOnce)}
	if o.Download == nil {
		f.download = Download
	}
	if o.RequestLog != nil {
		f.requests = &requestLog{to: o.RequestLog}
	}
	for _, r := range o.Routes {
		f.routes = append(f.routes, newRoute(r))
	}
	return f
}

// ServeHTTP answers one request.
func (f *Front) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newExchange(hr)
	f.answer(r)
	_ = pause.For(hr.Context(), r.Wait) // no longer than the client waits
	r.answered()                        // before the client can know
	out := 0
	if !r.cut {
		out = f.send(w, r)
	}
	if f.requests != nil {
		if err := f.requests.write(r, began, out); err != nil {
			f.world.Log.Error("request log", "error", err)
		}
	}
	if r.cut {
		panic(http.ErrAbortHandler) // what net/http offers to cut a connection
	}
}

// answer makes r.reply, whatever happens.
func (f *Front) answer(r *exchange) {
	defer func() {
		if p := recover(); p != nil {
			r.refuse(world.Recovered(f.world.Log, r.Method+" "+r.URL.Path, p))
		}
	}()
	f.world.EndDue()
	if err := f.serve(r); err != nil {
		r.refuse(world.RefusalOf(f.world.Log, err))
	}
}

// serve is the way of a request: every step may refuse it.
func (f *Front) serve(r *exchange) error {
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
func (f *Front) findTarget(r *exchange) (err error) {
	if r.route != nil {
		return nil
	}
	f.world.Read(func(t *world.Transaction) {
		if r.Method == http.MethodGet {
			if o, _ := f.world.Queue.Polled(r.URL.Path); o != nil {
				r.polled = &o.Operation
				return
			}
		}
		if err = r.Resolve(t.Resolver(), r.URL.Path); err == nil {
			err = checks.In(t).Pass(checks.Targeted, r.Request, nil)
		}
	})
	return err
}

// admit counts a request and refuses it when there were too many.
func (f *Front) admit(r *exchange) error {
	q := throttle.Request{Method: r.Method, Subscription: f.world.Tenancy.Main, ID: r.ID, List: r.List, Action: r.Action,
		Polled: r.polled}
	if p := r.Caller.Principal; p != nil {
		q.Actor = p.ObjectID
	}
	if r.Kind != nil {
		q.Type = r.Kind.Name
	}
	headers, err := f.Throttle.Admit(time.Now(), q)
	r.always = headers
	return err
}

// serveTarget carries out a request to a resource, an action or a list, and applies the
// fault rule for it, if any.
func (f *Front) serveTarget(r *exchange) error {
	q := fault.Request{Method: r.Method, Type: r.Kind.Name, Action: r.Action}
	if !r.List {
		q.Name, q.Parent = r.ID.Name(), r.ID.Parent().Key()
	}
	var rule *fault.Rule
	rule, r.answered = f.world.Faults.Pick(q)
	if rule == nil {
		return f.carryOut(r)
	}
	f.world.Log.Debug("fault rule applies", "fault", rule.Fault, "method", r.Method, "path", r.URL.Path)
	switch rule.Fault {
	case fault.Error, fault.Overlap:
		return rule.Refusal()
	case fault.Operation:
		r.OperationFault = rule.Refusal()
	case fault.Stale:
		r.Stale = true
	case fault.Drop:
		r.Forget = rule.Forget
	case fault.Unconditional:
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
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
func (f *Front) deny(r *exchange) error {
	switch err := f.carryOut(r); {
	case err != nil || !r.Reads():
		return err
	case r.List:
		r.reply.Body = json.RawMessage(`{"value":[]}`)
		return nil
	}
	return behaviour.NotFound(r.ID)
}

// alter changes the answer of a read as a fault rule says. Other requests are carried out.
func (f *Front) alter(r *exchange, rule *fault.Rule, err error) error {
	text, is := r.reply.Body.(json.RawMessage)
	if err != nil || !r.Reads() || !is {
		return err
	}
	altered, err := rule.Alter(text, r.List)
	r.reply.Body = altered
	return err
}

// carryOut carries out a request in one transaction. It finds the target again, because
// the store may have changed since findTarget.
func (f *Front) carryOut(r *exchange) (err error) {
	do := func(t *world.Transaction) (err error) {
		if err = r.Resolve(t.Resolver(), r.URL.Path); err == nil {
			r.reply, err = verbs.Do(t, r.Request)
		}
		return err
	}
	if r.Reads() {
		f.world.Read(func(t *world.Transaction) { err = do(t) })
		return err
	}
	r.Work = template.NewWork() // of all tries
	return f.untilComplete(r, func() error {
		return f.world.Write(func(t *world.Transaction) error {
			t.Share(r.Work)
			t.By = r.author()
			if err := do(t); err != nil {
				return err
			}
			return t.CheckSizes()
		})
	})
}
