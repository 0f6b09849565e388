package dns_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// FuzzRequest sends bodies: no answer may be anything but a success, 400, or 503, and the zone's own records stay.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"create":[{"dnsName":"a.example.com","recordType":"A","targets":["1.1.1.1"]}]}`, `null`, `[null]`, `[{}]`, `{"delete":[{"dnsName":"@"}]}`,
		`{"updateOld":[{"dnsName":"example.com","recordType":"NS"}],"updateNew":[{"dnsName":"example.com","recordType":"NS","targets":["x"]}]}`,
		`{"create":[{"dnsName":"*.example.com","recordType":"TXT","targets":["\u0000"],"labels":{"ownedRecord":"x"}}]}`,
		`[{"dnsName":"a.example.com","recordType":"CAA","targets":["0 issue \"x"],"providerSpecific":[{"name":"azure/tags","value":"=,="}]}]`,
	} {
		f.Add(body)
	}
	w := newZonedAzure(f, core.Options{})
	w.config.Zones = dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true, Private: true}
	w.config.PublicWrites, w.config.PrivateWrites = 1<<30, 1<<30
	w.restart()
	servers := w.value(public, "NS", "@")
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/records", "/adjustendpoints"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", dns.MediaType)
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			switch answer.Code {
			case http.StatusOK, http.StatusNoContent, http.StatusBadRequest, http.StatusServiceUnavailable:
			default:
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
		}
		if strings.Contains(w.log.String(), "msg=panic") {
			t.Error(w.log.String())
		}
		w.log.Reset()
		one := *w
		one.t = t
		want(t, "name servers", one.value(public, "NS", "@"), servers)
	})
}
