package token

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// refusal is an error response of Entra ID.
type refusal struct {
	status  int
	kind    string // OAuth's name
	code    int    // Entra ID's number
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("AADSTS%d: %s", r.code, r.message) }

func refuse(status int, kind string, code int, format string, args ...any) *refusal {
	return &refusal{status: status, kind: kind, code: code, message: fmt.Sprintf(format, args...)}
}

// The kinds of refusals.
const (
	invalidRequest   = "invalid_request"
	invalidClient    = "invalid_client"
	unauthorizedApp  = "unauthorized_client"
	unsupportedGrant = "unsupported_grant_type"
	invalidScope     = "invalid_scope"
	invalidInstance  = "invalid_instance"
	serverError      = "server_error"
)

func unknownTenant(tenant string) *refusal {
	return refuse(400, invalidRequest, 90002,
		"Tenant '%s' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud. Check "+
			"with your subscription administrator, this may happen if there are no active subscriptions for the tenant.", tenant)
}

func missing(parameter string) *refusal {
	return refuse(400, invalidRequest, 900144, "The request body must contain the following parameter: '%s'.", parameter)
}

// write sends the refusal in Entra ID's form.
func (r *refusal) write(w http.ResponseWriter, req *http.Request) {
	const timeForm = "2006-01-02 15:04:05Z"
	now, trace, correlation := time.Now().UTC().Format(timeForm), guid(), req.Header.Get("client-request-id")
	if len(correlation) != len(trace) {
		correlation = guid()
	}
	writeJSON(w, r.status, map[string]any{
		"error": r.kind,
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s Correlation ID: %s Timestamp: %s", r.code, r.message, trace,
			correlation, now),
		"error_codes":    []int{r.code},
		"timestamp":      now,
		"trace_id":       trace,
		"correlation_id": correlation,
		"error_uri":      fmt.Sprintf("https://login.microsoftonline.com/error?code=%d", r.code),
	})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store, no-cache")
	w.Header().Set("Pragma", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
