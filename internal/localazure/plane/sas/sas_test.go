package sas_test

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"kaz/internal/localazure/plane/sas"
)

// FuzzCheck checks that a request is accepted only before the end of its signature, whatever the parameters are.
func FuzzCheck(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Add("se=2026-01-02T03:05:00Z&spr=https&sip=192.0.2.1-192.0.2.9", "192.0.2.1:1234")
	f.Add("st=2026-01-01&se=2026-01-03", "[::1]:1")
	f.Add("se=2026-01-02T03:04Z&sip=-", "x")
	f.Fuzz(func(t *testing.T, query, remote string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		r := httptest.NewRequest("GET", "/c/b", nil)
		r.RemoteAddr = remote
		code, message := sas.Check(r, v, now)
		if (code == "") != (message == "") || code == "" && v.Get("se") <= "2026-01-02" {
			t.Errorf("%q from %q: %q %q", query, remote, code, message)
		}
	})
}
