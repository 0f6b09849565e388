package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// refusal is an error in the form of registries.
type refusal struct {
	status        int
	code, message string
	detail        any
	challenge     string // value of Www-Authenticate, "" for none
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// unauthorized is ACR's error for a client without access.
func unauthorized() *refusal {
	return refuse(http.StatusUnauthorized, "UNAUTHORIZED",
		"authentication required, visit https://aka.ms/acr/authorization for more information.")
}

func (r *refusal) write(w http.ResponseWriter) {
	if r.challenge != "" {
		w.Header().Set("Www-Authenticate", r.challenge)
	}
	entry := map[string]any{"code": r.code, "message": r.message}
	if r.detail != nil {
		entry["detail"] = r.detail
	}
	writeJSON(w, r.status, map[string]any{"errors": []any{entry}})
}

func (v call) fail(err error) {
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		v.service.Log.Error("registry request failed", "registry", v.registry.server, "path", v.r.URL.Path, "error", err)
		refused = refuse(http.StatusInternalServerError, "UNKNOWN", "The registry could not do it.")
	}
	refused.write(v.w)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
