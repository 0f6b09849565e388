package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"kaz/internal/emulator/behaviour"
)

// gateway is an error that ARM itself makes.
func gateway(status int, code, format string, args ...any) *behaviour.Error {
	e := behaviour.Refusal(status, code, format, args...)
	e.Gateway = true
	return e
}

func internalError() *behaviour.Error {
	return behaviour.Refusal(500, "InternalServerError", "The server encountered an internal error. Please retry the request.")
}

func methodNotAllowed(r *request) error {
	return gateway(http.StatusMethodNotAllowed, "MethodNotAllowed", "The HTTP method '%s' is not supported for resource type '%s'.", r.method, r.kind.Name)
}

func (e *Emulator) logPanic(where string, p any) {
	e.options.Log.Error("panic in the local Azure", "where", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// asError is what a client is told of an error.
func (e *Emulator) asError(err error) *behaviour.Error {
	if refusal, ok := errors.AsType[*behaviour.Error](err); ok {
		return refusal
	}
	e.options.Log.Error("error in the local Azure", "error", err)
	return internalError()
}

// plain is a value as JSON text, which takes less room than its tree.
func plain(value any) any {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic("a behaviour's output is not JSON: " + err.Error())
	}
	return json.RawMessage(text)
}

// precondition checks If-Match and If-None-Match.
func (t *transaction) precondition(r *request) *behaviour.Error {
	match, none := r.http.Header.Get("If-Match"), r.http.Header.Get("If-None-Match")
	if match == "" && none == "" {
		return nil
	}
	style := r.kind.Style
	_, exists := t.Get(r.id)
	have := ""
	if e := t.store.entries[holderOf(r.kind, r.id).Key()]; e != nil && exists {
		have = e.etag
	}
	if none == "*" && exists {
		if style.Exists != nil {
			return style.Exists(r.id)
		}
		return behaviour.Refusal(412, "PreconditionFailed", "The resource %s exists already.", r.id)
	}
	if match == "" || style.Etag == behaviour.NoEtag && match != "*" || exists && (match == "*" || sameEtag(match, have)) {
		return nil
	}
	if style.Mismatch != nil {
		return style.Mismatch(r.id, match, have)
	}
	return behaviour.Refusal(412, "PreconditionFailed", "The condition '%s' in the If-Match header is not met.", match)
}

func sameEtag(a, b string) bool {
	bare := func(s string) string { return strings.Trim(strings.TrimPrefix(s, "W/"), `"`) }
	return bare(a) == bare(b)
}

// acceptAndFail makes an operation that fails, for providers that check
// preconditions after they have accepted the request.
func (t *transaction) acceptAndFail(r *request, c *behaviour.Call, fault *behaviour.Error) error {
	o := t.newOperation(r, c.Verb)
	t.register(o)
	o.index, o.End, o.Error = -1, t.now, fault
	t.retire(o)
	r.reply = reply{status: successStatus(r.kind, c.Verb), body: behaviour.Object{}}
	t.pollHeaders(r, o, r.kind.Style.Long[c.Verb])
	return nil
}

func (t *transaction) notBeingDeleted(r *request) error {
	for id := r.id; id != ""; id = id.Parent() {
		for _, o := range t.operations.byKey[id.Key()] {
			if o.Verb == behaviour.Delete && o.Resource.Equal(id) && o.kind == t.groups {
				return gateway(409, "ResourceGroupBeingDeleted", "The resource group '%s' is in deprovisioning state and cannot perform this operation.", id.Group())
			}
		}
	}
	return nil
}

func successStatus(k *kind, v behaviour.Verb) int {
	switch v {
	case behaviour.Create:
		return or(k.Style.Created, http.StatusCreated)
	case behaviour.Patch:
		return or(k.Style.Patched, http.StatusOK)
	}
	return or(k.Style.Updated, http.StatusOK)
}

// writeReply is the reply to a PUT or PATCH.
func (t *transaction) writeReply(r *request, c *behaviour.Call, o *operation, long behaviour.Headers) error {
	k := r.kind
	status := successStatus(k, c.Verb)
	if k.AtOnce != nil && long == behaviour.None {
		status = or(k.Style.Updated, http.StatusOK)
	}
	r.reply = reply{status: status}
	switch {
	case status == http.StatusAccepted && k.Style.Accepted == behaviour.EmptyObject:
		r.reply.body = behaviour.Object{}
	case status == http.StatusAccepted && k.Style.Accepted == behaviour.Nothing:
	default:
		doc, ok := t.Get(r.id)
		if !ok {
			return fmt.Errorf("%s is not there after it was written", r.id)
		}
		r.reply.body = t.view(c, k, doc)
	}
	if k.Style.EtagHeader == behaviour.OnGetAndPut {
		t.etagHeader(r)
	}
	t.pollHeaders(r, o, long)
	return nil
}

// output is the resource as the last poll of its operation shows it.
func (t *transaction) output(o *operation, saved *entry) any {
	p := o.kind.Style.Protocol
	if p.Poll == nil || p.NoOutput || o.kind.Inline != "" {
		return nil
	}
	if !o.kind.shows() {
		return json.RawMessage(saved.text)
	}
	c := &behaviour.Call{World: t, Verb: behaviour.Get, ID: saved.id, Type: o.kind.Type}
	return plain(t.view(c, o.kind, t.store.doc(saved)))
}

// pollHeaders adds the headers by which a client follows an operation.
func (t *transaction) pollHeaders(r *request, o *operation, long behaviour.Headers) {
	if long == behaviour.None {
		return
	}
	p := r.kind.Style.Protocol
	if long&behaviour.AsyncOperation != 0 && p.Status != nil {
		r.set("Azure-AsyncOperation", t.pollURL(r, p, p.Status(o.Operation)))
	}
	if long&behaviour.Location != 0 && p.Result != nil {
		r.set("Location", t.pollURL(r, p, p.Result(o.Operation)))
	}
	if long&behaviour.Notification != 0 {
		r.set("Azure-AsyncNotification", "Enabled")
	}
	t.latency.retryAfter(r.headers(), waitOf(r.kind, o.Verb).First)
}

func waitOf(k *kind, v behaviour.Verb) behaviour.Wait {
	if w, ok := k.Style.Wait[v]; ok {
		return w
	}
	return k.Style.Otherwise
}

// pollURL makes a poll path absolute, with the parameters that ARM appends.
func (t *transaction) pollURL(r *request, p behaviour.Protocol, path string) string {
	version := r.version
	if p.Version != "" {
		version = p.Version
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	tick := strconv.FormatInt(ticks(t.now), 10)
	return r.host + path + sep + "api-version=" + version + "&t=" + tick + "&c=local&s=" + signature(path, tick) + "&h=" + signature(tick, path)
}

// pollKey is the path of a poll URL as the index has it.
func pollKey(url string) string {
	path, _, _ := strings.Cut(url, "?")
	return strings.ToLower(path)
}

// send sends the reply and returns the size of its body.
func (e *Emulator) send(w http.ResponseWriter, r *request) int {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Pragma", "no-cache")
	h.Set("Expires", "-1")
	h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	h.Set("X-Content-Type-Options", "nosniff")
	id := e.weather.guid()
	h.Set("x-ms-request-id", id)
	correlation := r.http.Header.Get("x-ms-correlation-request-id")
	if correlation == "" {
		correlation = id
	}
	h.Set("x-ms-correlation-request-id", correlation)
	h.Set("x-ms-routing-request-id", "LOCAL:"+time.Now().UTC().Format("20060102T150405Z")+":"+id)
	e.providerHeaders(h, r)
	for _, headers := range []http.Header{r.always, r.reply.header} {
		maps.Copy(h, headers)
	}
	var text []byte
	switch body := r.reply.body.(type) {
	case nil:
	case json.RawMessage:
		text = body
	default:
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(body); err != nil {
			panic(fmt.Sprintf("a reply's body is not JSON: %v", err))
		}
		text = bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	}
	if text != nil {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	if r.reply.status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(r.reply.status)
	if r.method == http.MethodHead || r.reply.status == http.StatusNoContent {
		return 0
	}
	_, _ = w.Write(text) // a client that has gone needs no reply
	return len(text)
}

// providerHeaders are those that a resource provider adds.
func (e *Emulator) providerHeaders(h http.Header, r *request) {
	if r.kind == nil || r.kind == e.groups || r.byGateway {
		return
	}
	object := ""
	if r.principal != nil {
		object = r.principal.ObjectID
	}
	h.Set("x-ms-operation-identifier", "tenantId="+e.options.Tenant+",objectId="+object+"/local/"+e.weather.guid())
	if strings.HasPrefix(strings.ToLower(r.kind.Name), "microsoft.network/") {
		h.Set("x-ms-arm-service-request-id", e.weather.guid())
	}
	if r.list && r.kind.parent == nil {
		h.Set("x-ms-original-request-ids", e.weather.guid())
	}
}

// refuse makes an error the reply.
func (e *Emulator) refuse(r *request, err error) {
	refusal := e.asError(err)
	r.refused, r.byGateway = refusal.Code, refusal.Gateway
	body := refusal.Body()
	bare := refusal.Bare
	if r.kind != nil && !refusal.Gateway {
		if r.kind.Style.Details && body["details"] == nil {
			body["details"] = []any{}
		}
		bare = bare || r.kind.Style.Bare
	}
	r.reply = reply{status: refusal.Status, body: body}
	if !bare {
		r.reply.body = behaviour.Object{"error": body}
	}
	switch {
	case refusal.Gateway:
		r.set("x-ms-failure-cause", "gateway")
	case refusal.Status >= http.StatusInternalServerError:
		r.set("x-ms-failure-cause", "service")
	}
	if r.challenge != "" {
		r.set("WWW-Authenticate", r.challenge)
	}
	if refusal.RetryAfter > 0 {
		r.set("Retry-After", strconv.Itoa(refusal.RetryAfter))
	}
}
