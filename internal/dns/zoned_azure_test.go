package dns_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// Zones in the local Azure.
const (
	public  = testkit.Group + "/providers/" + network.DNSZones + "/example.com"
	private = testkit.Group + "/providers/" + network.PrivateDNSZones + "/corp.internal"
)

type object = map[string]any

// zonedAzure is a local Azure with a public and a private zone, and a provider behind its HTTP server.
type zonedAzure struct {
	*testkit.Azure
	t        testing.TB
	config   dns.Config
	provider *dns.Provider
	handler  http.Handler
	log      *bytes.Buffer
}

// doer adapts a RoundTripper to the ARM client.
type doer struct{ http.RoundTripper }

func (d doer) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }

// client returns an ARM client as the program has it.
func client(t testing.TB, way http.RoundTripper) *arm.Client {
	t.Helper()
	c, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: doer{way}, ThrottleWait: dns.ThrottleWait})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newZonedAzure(t testing.TB, o core.Options) *zonedAzure {
	t.Helper()
	w := &zonedAzure{Azure: testkit.NewAzure(t, o, 0), t: t, log: &bytes.Buffer{}}
	w.Put(public, object{"location": "global"})
	w.Put(private, object{"location": "global"})
	w.config = dns.Config{
		Azure: client(t, w.Transport()), Zones: dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true, Private: true},
		Options: records.Options{DefaultTTL: dns.DefaultTTL, MostDeleted: dns.MostDeleted}, Lease: dns.Lease,
		Refresh: dns.Refresh, Deadline: dns.Deadline, Parallel: dns.Parallel, PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	w.restart()
	w.Forget()
	return w
}

// restart replaces the provider by one that knows nothing.
func (w *zonedAzure) restart() {
	w.provider = dns.New(w.config)
	w.handler = dns.NewServer(w.provider).Handler()
}

// scenario runs a test in simulated time.
func scenario(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// call sends a request as ExternalDNS does and returns the answer.
func (w *zonedAzure) call(method, path string, body any) *httptest.ResponseRecorder {
	w.t.Helper()
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		text = bytes.NewReader(encoded)
	}
	r := httptest.NewRequestWithContext(context.WithoutCancel(w.t.Context()), method, path, text)
	r.Header.Set("Accept", dns.MediaType)
	if body != nil {
		r.Header.Set("Content-Type", dns.MediaType)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// records reads all records.
func (w *zonedAzure) records() []records.Endpoint {
	w.t.Helper()
	answer := w.call(http.MethodGet, "/records", nil)
	var all []records.Endpoint
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil || answer.Code != http.StatusOK {
		w.t.Fatalf("%d %v: %s", answer.Code, err, answer.Body)
	}
	return all
}

// lines shows records as one text a line.
func lines(all []records.Endpoint) string {
	var text []string
	for _, e := range all {
		line := fmt.Sprintf("%s %s %d %s", e.Name, e.Type, e.TTL, strings.Join(e.Targets, "|"))
		for _, p := range e.ProviderSpecific {
			line += " " + p.Name + "=" + p.Value
		}
		text = append(text, line)
	}
	return strings.Join(text, "\n")
}

// apply makes changes and returns the status.
func (w *zonedAzure) apply(c records.Changes) int {
	w.t.Helper()
	return w.call(http.MethodPost, "/records", c).Code
}

// set writes a record set as another program does.
func (w *zonedAzure) set(zone azure.ID, recordType, name string, properties object) {
	w.t.Helper()
	w.Put(zone.Child(recordType, name), object{"properties": properties})
}

// have returns a record set as Azure has it.
func (w *zonedAzure) have(zone azure.ID, recordType, name string) (azure.Resource[network.RecordSet], bool) {
	w.t.Helper()
	return testkit.Read[network.RecordSet](w.Azure, zone.Child(recordType, name))
}

// value returns the targets of a record set as Azure has it, "" for none.
func (w *zonedAzure) value(zone azure.ID, recordType, name string) string {
	w.t.Helper()
	doc, err := w.Client.Fresh().Get(context.WithoutCancel(w.t.Context()), zone.Child(recordType, name))
	if azure.IsNotFound(err) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := records.Read(records.Zone{ID: zone, Name: zone.Name(), Private: zone.Is(network.PrivateDNSZones)}, doc)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(s.Targets, "|")
}

// owned returns a record and the TXT record with which ExternalDNS owns it.
func owned(name, recordType string, targets ...string) []records.Endpoint {
	label := map[string]string{"owner": "default", "resource": "ingress/default/web"}
	txt := map[string]string{"ownedRecord": name}
	return []records.Endpoint{
		{Name: name, Type: recordType, Targets: targets, Labels: label},
		{Name: strings.ToLower(recordType) + "-" + name, Type: "TXT", Targets: []string{heritage}, Labels: txt},
	}
}

const heritage = `"heritage=external-dns,external-dns/owner=default,external-dns/resource=ingress/default/web"`

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%v\nwant\n%v", what, got, want)
	}
}

// methods returns the writes to Azure in their order, as "PUT app".
func (w *zonedAzure) methods() (all []string) {
	w.t.Helper()
	for _, r := range w.Requests() {
		if r.Method != http.MethodGet {
			all = append(all, fmt.Sprintf("%s %s %d", r.Method, r.Name(), r.Status))
		}
	}
	return all
}

// count returns how many requests have a status.
func (w *zonedAzure) count(status int) (n int) {
	w.t.Helper()
	for _, r := range w.Requests() {
		if r.Status == status {
			n++
		}
	}
	return n
}
