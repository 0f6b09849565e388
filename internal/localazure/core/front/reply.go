package front

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
)

// send sends the reply and returns the size of its body.
func (f *Front) send(w http.ResponseWriter, r *exchange) int {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Pragma", "no-cache")
	h.Set("Expires", "-1")
	h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	h.Set("X-Content-Type-Options", "nosniff")
	id := f.draws.GUID()
	h.Set("x-ms-request-id", id)
	correlation := r.Header.Get("x-ms-correlation-request-id")
	if correlation == "" {
		correlation = id
	}
	h.Set("x-ms-correlation-request-id", correlation)
	h.Set("x-ms-routing-request-id", "LOCAL:"+time.Now().UTC().Format("20060102T150405Z")+":"+id)
	f.providerHeaders(h, r)
	for _, headers := range []http.Header{r.always, r.reply.Header} {
		maps.Copy(h, headers)
	}
	var text []byte
	switch body := r.reply.Body.(type) {
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
	if r.reply.Status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(r.reply.Status)
	if r.Method == http.MethodHead || r.reply.Status == http.StatusNoContent {
		return 0
	}
	_, _ = w.Write(text) // a client that has gone needs no reply
	return len(text)
}

// providerHeaders adds the headers of a resource provider.
func (f *Front) providerHeaders(h http.Header, r *exchange) {
	if r.Kind == nil || r.Kind == f.world.Groups || r.byGateway {
		return
	}
	object := ""
	if r.Caller.Principal != nil {
		object = r.Caller.Principal.ObjectID
	}
	h.Set("x-ms-operation-identifier", "tenantId="+f.world.Tenancy.MainTenant+",objectId="+object+"/local/"+f.draws.GUID())
	if strings.HasPrefix(strings.ToLower(r.Kind.Name), "microsoft.network/") {
		h.Set("x-ms-arm-service-request-id", f.draws.GUID())
	}
	if r.List && r.Kind.Parent == nil {
		h.Set("x-ms-original-request-ids", f.draws.GUID())
	}
}

// refuse makes an error the reply.
func (r *exchange) refuse(refusal *behaviour.Error) {
	r.refused, r.byGateway = refusal.Code, refusal.Gateway
	body := refusal.Body()
	bare := refusal.Bare
	if r.Kind != nil && !refusal.Gateway {
		if r.Kind.Style.Details && body["details"] == nil {
			body["details"] = []any{}
		}
		bare = bare || r.Kind.Style.Bare
	}
	r.reply = message.Reply{Status: refusal.Status, Body: body}
	if !bare {
		r.reply.Body = behaviour.Object{"error": body}
	}
	switch {
	case refusal.Gateway:
		r.reply.Set("x-ms-failure-cause", "gateway")
	case refusal.Status >= http.StatusInternalServerError:
		r.reply.Set("x-ms-failure-cause", "service")
	}
	if r.challenge != "" {
		r.reply.Set("WWW-Authenticate", r.challenge)
	}
	if refusal.RetryAfter > 0 {
		r.reply.Set("Retry-After", strconv.Itoa(refusal.RetryAfter))
	}
}
