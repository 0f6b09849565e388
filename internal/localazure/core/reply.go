package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
)

// reply is the answer to a request.
type reply struct {
	status int
	body   any // JSON value, or json.RawMessage; nil for none
	header http.Header
}

func (r *reply) set(name, value string) { r.headers().Set(name, value) }

func (r *reply) headers() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// freeze encodes the body while the lock is held, since it may share documents with the
// store.
func (r *reply) freeze() {
	if r.body == nil {
		return
	}
	if _, done := r.body.(json.RawMessage); done {
		return
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		panic("a reply's body is not JSON: " + err.Error())
	}
	r.body = json.RawMessage(text)
}

func internalError() *behaviour.Error {
	return behaviour.Refusal(500, "InternalServerError", "The server encountered an internal error. Please retry the request.")
}

func logPanic(log *slog.Logger, where string, p any) {
	log.Error("panic in the local Azure", "where", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// asError is the refusal that a client gets for an error.
func asError(log *slog.Logger, err error) *behaviour.Error {
	if refusal, ok := errors.AsType[*behaviour.Error](err); ok {
		return refusal
	}
	log.Error("error in the local Azure", "error", err)
	return internalError()
}

// guarded runs a behaviour at a time when there is no request to answer.
func guarded(log *slog.Logger, f func() error) (refusal *behaviour.Error) {
	defer func() {
		if p := recover(); p != nil {
			logPanic(log, "operation", p)
			refusal = internalError()
		}
	}()
	if err := f(); err != nil {
		return asError(log, err)
	}
	return nil
}

// send sends the reply and returns the size of its body.
func (f *front) send(w http.ResponseWriter, r *request) int {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Pragma", "no-cache")
	h.Set("Expires", "-1")
	h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	h.Set("X-Content-Type-Options", "nosniff")
	id := f.draws.GUID()
	h.Set("x-ms-request-id", id)
	correlation := r.http.Header.Get("x-ms-correlation-request-id")
	if correlation == "" {
		correlation = id
	}
	h.Set("x-ms-correlation-request-id", correlation)
	h.Set("x-ms-routing-request-id", "LOCAL:"+time.Now().UTC().Format("20060102T150405Z")+":"+id)
	f.providerHeaders(h, r)
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

// providerHeaders adds the headers of a resource provider.
func (f *front) providerHeaders(h http.Header, r *request) {
	if r.Kind == nil || r.Kind == f.groups || r.byGateway {
		return
	}
	object := ""
	if r.caller.Principal != nil {
		object = r.caller.Principal.ObjectID
	}
	h.Set("x-ms-operation-identifier", "tenantId="+f.tenancy.tenant+",objectId="+object+"/local/"+f.draws.GUID())
	if strings.HasPrefix(strings.ToLower(r.Kind.Name), "microsoft.network/") {
		h.Set("x-ms-arm-service-request-id", f.draws.GUID())
	}
	if r.List && r.Kind.Parent == nil {
		h.Set("x-ms-original-request-ids", f.draws.GUID())
	}
}

// refuse makes an error the reply.
func (r *request) refuse(refusal *behaviour.Error) {
	r.refused, r.byGateway = refusal.Code, refusal.Gateway
	body := refusal.Body()
	bare := refusal.Bare
	if r.Kind != nil && !refusal.Gateway {
		if r.Kind.Style.Details && body["details"] == nil {
			body["details"] = []any{}
		}
		bare = bare || r.Kind.Style.Bare
	}
	r.reply = reply{status: refusal.Status, body: body}
	if !bare {
		r.reply.body = behaviour.Object{"error": body}
	}
	switch {
	case refusal.Gateway:
		r.reply.set("x-ms-failure-cause", "gateway")
	case refusal.Status >= http.StatusInternalServerError:
		r.reply.set("x-ms-failure-cause", "service")
	}
	if r.challenge != "" {
		r.reply.set("WWW-Authenticate", r.challenge)
	}
	if refusal.RetryAfter > 0 {
		r.reply.set("Retry-After", strconv.Itoa(refusal.RetryAfter))
	}
}
