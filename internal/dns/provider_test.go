package dns_test

import (
	"net/http"
	"strings"
	"testing"

	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

// TestRoundTrip has the basic scenarios of a zone: read, create, change, delete.
func TestRoundTrip(t *testing.T) {
	scenario(t, "D1 the negotiation", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		answer := w.call(http.MethodGet, "/", nil)
		want(t, "status", answer.Code, http.StatusOK)
		want(t, "media type", answer.Header().Get("Content-Type"), dns.MediaType)
		want(t, "filter", answer.Body.String(), `{"include":["corp.internal","example.com"]}`+"\n")
	})
	scenario(t, "D3 a record is created after the record that owns it", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		want(t, "records of an empty zone", lines(w.records()), "")
		want(t, "status", w.apply(records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}), http.StatusNoContent)
		want(t, "writes", strings.Join(w.methods(), ", "), "PUT a-app 201, PUT app 201")
		w.Forget()
		want(t, "records", lines(w.records()), "a-app.example.com TXT 300 "+heritage+"\napp.example.com A 300 1.1.1.1")
		want(t, "requests after own writes", len(w.Requests()), 0)
		w.restart()
		want(t, "records of Azure", lines(w.records()), "a-app.example.com TXT 300 "+heritage+"\napp.example.com A 300 1.1.1.1")
	})
	scenario(t, "a record is changed and deleted", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		old := owned("app.example.com", "A", "1.1.1.1")
		w.apply(records.Changes{Create: old})
		changed := owned("app.example.com", "A", "2.2.2.2", "1.1.1.1")
		changed[0].TTL = 60
		w.Forget()
		want(t, "status", w.apply(records.Changes{UpdateOld: old, UpdateNew: changed}), http.StatusNoContent)
		want(t, "writes", strings.Join(w.methods(), ", "), "PUT app 200")
		want(t, "records", lines(w.records()), "a-app.example.com TXT 300 "+heritage+"\napp.example.com A 60 2.2.2.2|1.1.1.1")
		w.Forget()
		want(t, "status", w.apply(records.Changes{Delete: changed}), http.StatusNoContent)
		want(t, "writes", strings.Join(w.methods(), ", "), "DELETE app 200, DELETE a-app 200")
		want(t, "records", lines(w.records()), "")
	})
}
