package emulator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/emulator/behaviour"
)

// Authenticator says who holds a bearer token.
type Authenticator interface {
	// Authenticate returns an error that is an [*behaviour.Error] for a bad token.
	Authenticate(token string) (*behaviour.Principal, error)
}

// signature fills the parameters of poll URLs that Azure signs with.
func signature(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ServeHTTP answers one request.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := &request{http: hr, method: hr.Method, host: hostOf(hr)}
	e.answer(r)
	sleep(hr.Context(), r.wait)
	out := 0
	if !r.cut {
		out = e.send(w, r)
	}
	if e.log != nil {
		if err := e.log.write(r, began, out); err != nil {
			e.options.Log.Error("request log", "error", err)
		}
	}
	if r.cut {
		panic(http.ErrAbortHandler) // what net/http offers to cut a connection
	}
}

// answer makes r.reply, whatever happens.
func (e *Emulator) answer(r *request) {
	defer func() {
		if p := recover(); p != nil {
			e.logPanic(r.method+" "+r.http.URL.Path, p)
			e.refuse(r, internalError())
		}
	}()
	e.endDue()
	if err := e.serve(r); err != nil {
		e.refuse(r, err)
	}
}

func hostOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

func (e *Emulator) serve(r *request) error {
	if err := r.parseQuery(); err != nil {
		return err
	}
	rt, param := e.route(r)
	if rt == nil || !rt.Open {
		if err := e.authenticate(r); err != nil {
			return err
		}
		if r.version = r.query.Get("api-version"); r.version == "" {
			return gateway(400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
		}
		if !versionForm.MatchString(r.version) {
			return gateway(400, "InvalidApiVersionParameter", "The api-version '%s' is invalid. The api-version must be a date in the form yyyy-MM-dd, with an optional suffix such as -preview.", r.version)
		}
	}
	if err := r.readBody(); err != nil {
		return err
	}
	if rt != nil {
		return e.serveRoute(r, rt, param)
	}
	unknown := e.resolve(r)
	if err := e.admit(r); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	if r.polled != nil {
		return e.poll(r)
	}
	return e.faulty(r)
}

// resolve finds out what the request is about: an operation, or a resource.
func (e *Emulator) resolve(r *request) (err error) {
	e.read(func(t *transaction) {
		if r.method == http.MethodGet {
			if o := t.operations.byPath[pollKey(strings.TrimSuffix(r.http.URL.Path, "/"))]; o != nil {
				r.polled = &o.Operation
				return
			}
		}
		if err = t.address(r, r.http.URL.Path); err == nil {
			err = t.authorize(r)
		}
	})
	return err
}

// faulty carries out a request, and lets it go wrong where a fault rule says so.
func (e *Emulator) faulty(r *request) error {
	rule := e.faults.pick(r)
	if rule == nil {
		return e.dispatch(r)
	}
	e.options.Log.Debug("fault rule applies", "fault", rule.Fault, "method", r.method, "path", r.http.URL.Path)
	switch rule.Fault {
	case FaultError:
		return rule.error()
	case FaultOperation:
		r.operationFault = rule.error()
	case FaultStale:
		r.stale = true
	}
	err := e.dispatch(r)
	switch rule.Fault {
	case FaultLost:
		r.cut = true
	case FaultCrash:
		r.cut = true
		if e.options.Crash != nil {
			e.options.Crash(*rule)
		}
	}
	return err
}

// parseQuery reads the query; names are the same in any case.
func (r *request) parseQuery() error {
	values, err := url.ParseQuery(r.http.URL.RawQuery)
	if err != nil {
		return gateway(400, "InvalidRequestUri", "The query of the request is invalid: %v.", err)
	}
	r.query = url.Values{}
	for key, v := range values {
		r.query[strings.ToLower(key)] = v
	}
	return nil
}

func (e *Emulator) authenticate(r *request) error {
	if e.options.Authenticator == nil {
		r.principal = &behaviour.Principal{Owner: true, Tenant: e.options.Tenant}
		return nil
	}
	challenge := e.challenge(r, e.options.Tenant)
	header := r.http.Header.Get("Authorization")
	scheme, token, _ := strings.Cut(header, " ")
	if header == "" || !strings.EqualFold(scheme, "Bearer") {
		r.challenge = challenge
		return gateway(401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	p, err := e.options.Authenticator.Authenticate(strings.TrimSpace(token))
	if err != nil {
		r.challenge = challenge
		return err
	}
	r.principal = p
	if err := e.checkTenant(r); err != nil {
		return err
	}
	return e.authenticateAuxiliary(r)
}

// maxBody is ARM's limit on requests.
const maxBody = 4 << 20

func (r *request) readBody() error {
	text, err := io.ReadAll(io.LimitReader(r.http.Body, maxBody+1))
	if err != nil {
		return gateway(400, "InvalidRequestContent", "The request content could not be read: %v.", err)
	}
	if len(text) > maxBody {
		return gateway(413, "RequestContentTooLarge", "The request content size exceeds the maximum size of %d MB.", maxBody>>20)
	}
	r.bytesIn = len(text)
	text = bytes.TrimSpace(text)
	if len(text) == 0 || r.method == http.MethodGet || r.method == http.MethodHead || r.method == http.MethodDelete {
		return nil
	}
	if err := json.Unmarshal(text, &r.body); err != nil {
		return gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%v'.", err)
	}
	return nil
}

// dispatch carries out a request to a resource, an action or a list.
func (e *Emulator) dispatch(r *request) (err error) {
	if r.method == http.MethodGet || r.method == http.MethodHead {
		e.read(func(t *transaction) {
			if err = t.address(r, r.http.URL.Path); err != nil {
				return
			}
			r.wait = t.latency.reply(r.kind, readVerb(r))
			if r.list {
				err = t.all(r)
			} else {
				err = t.get(r)
			}
			t.ownHeaders(r, err)
			t.freeze(r)
		})
		return err
	}
	return e.write(func(t *transaction) error {
		if err := t.address(r, r.http.URL.Path); err != nil {
			return err
		}
		if err := t.change(r); err != nil {
			return err
		}
		t.ownHeaders(r, nil)
		t.freeze(r)
		return nil
	})
}

// ownHeaders adds the headers that a provider sends besides those of all replies.
func (t *transaction) ownHeaders(r *request, err error) {
	if err != nil || r.kind == nil || r.kind.Header == nil {
		return
	}
	for name, value := range r.kind.Header(r.call(t), r.reply.status) {
		r.set(name, value)
	}
}

func readVerb(r *request) behaviour.Verb {
	if r.list {
		return behaviour.List
	}
	return behaviour.Get
}

// change carries out a request that may change something.
func (t *transaction) change(r *request) error {
	if r.method == http.MethodPut || r.method == http.MethodPatch {
		if err := shapely(r.body); err != nil {
			return err
		}
	}
	switch {
	case r.list:
		return methodNotAllowed(r)
	case r.method == http.MethodPut && r.action == "":
		return t.put(r)
	case r.method == http.MethodPatch && r.action == "":
		return t.patch(r)
	case r.method == http.MethodDelete && r.action == "":
		return t.delete(r)
	case r.method == http.MethodPost && r.action != "":
		return t.post(r)
	}
	return methodNotAllowed(r)
}

// freeze encodes the reply while the lock is held, since it may share documents
// with the store.
func (t *transaction) freeze(r *request) {
	if r.reply.body == nil {
		return
	}
	if _, done := r.reply.body.(json.RawMessage); done {
		return
	}
	text, err := json.Marshal(r.reply.body)
	if err != nil {
		panic("a reply's body is not JSON: " + err.Error())
	}
	r.reply.body = json.RawMessage(text)
}
