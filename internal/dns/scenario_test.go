package dns_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

// fault has the local Azure fail as rules say.
func (w *zonedAzure) fault(f ...core.Fault) {
	w.t.Helper()
	if err := w.SetFaults(f); err != nil {
		w.t.Fatal(err)
	}
}

const (
	aRecords   = network.DNSZones + "/A"
	txtRecords = network.DNSZones + "/TXT"
	privateA   = network.PrivateDNSZones + "/A"
)

// TestDefects has what goes wrong with the provider that ExternalDNS has for Azure.
func TestDefects(t *testing.T) {
	scenario(t, "a failed write is an error", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.fault(core.Fault{Method: "PUT", Type: aRecords, Fault: "error", Status: 500})
		want(t, "status", w.apply(records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}), http.StatusServiceUnavailable)
	})
	scenario(t, "D9 a CNAME that becomes an address comes back if the address fails", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{{Name: "app.example.com", Type: "CNAME", Targets: []string{"lb.example.net"}, TTL: 77}}}
		want(t, "first round", x.loop(), http.StatusNoContent)
		x.want[0].Type, x.want[0].Targets = "A", []string{"1.1.1.1"}
		w.fault(core.Fault{Method: "PUT", Type: aRecords, Fault: "error", Status: 500, Times: 4})
		w.Forget()
		want(t, "round with a failure", x.loop(), http.StatusServiceUnavailable)
		want(t, "CNAME", w.value(public, "CNAME", "app"), "lb.example.net")
		got, _ := w.have(public, "CNAME", "app")
		want(t, "its TTL", got.Properties.TTL, 77)
		want(t, "round after", x.loop(), http.StatusNoContent)
		want(t, "address", w.value(public, "A", "app")+" "+w.value(public, "CNAME", "app")+w.value(public, "TXT", "cname-app"), "1.1.1.1 ")
		want(t, "round at rest", x.loop(), 0)
	})
	scenario(t, "D14, D15 texts are kept whole", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		long := strings.Repeat("0123456789", 60)
		x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{{Name: "long.example.com", Type: "TXT", Targets: []string{long, "second"}}}}
		want(t, "first round", x.loop(), http.StatusNoContent)
		want(t, "texts", w.value(public, "TXT", "long"), long+"|second")
		got, _ := w.have(public, "TXT", "long")
		want(t, "strings of the first", len(got.Properties.TXT[0].Value), 3)
		w.restart()
		want(t, "round at rest", x.loop(), 0)
	})
	scenario(t, "D16, D17 aliases are seen and made", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		const ip = testkit.Group + "/providers/Microsoft.Network/publicIPAddresses/gate"
		w.Put(ip, object{"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
		w.set(public, "A", "human", object{"TTL": 60, "targetResource": object{"id": ip}})
		alias := []records.Property{{Name: records.AliasProperty, Value: string(ip)}}
		x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{
			{Name: "human.example.com", Type: "A", Targets: []string{"1.1.1.1"}},
			{Name: "ours.example.com", Type: "A", Targets: []string{"1.1.1.1"}, ProviderSpecific: alias},
		}}
		want(t, "first round", x.loop(), http.StatusNoContent)
		for _, name := range []string{"human", "ours"} {
			got, _ := w.have(public, "A", name)
			if !got.Properties.TargetResource.To().Equal(ip) {
				t.Errorf("%s is no alias: %+v", name, got.Properties)
			}
		}
		w.restart()
		want(t, "round at rest", x.loop(), 0)
		x.want = x.want[:1]
		want(t, "round that deletes", x.loop(), http.StatusNoContent)
		want(t, "records", lines(w.records()), "human.example.com A 60 "+strings.ToLower(string(ip))+" "+records.AliasProperty+"="+strings.ToLower(string(ip)))
	})
	scenario(t, "D4 a record that somebody made meanwhile stays, and nothing claims it", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.records()
		w.set(public, "A", "app", object{"TTL": 60, "ARecords": []object{{"ipv4Address": "9.9.9.9"}}})
		before := testkit.Must[network.RecordSet](w.Azure, public.Child("A", "app")).Etag
		want(t, "status", w.apply(records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}), http.StatusNoContent)
		want(t, "etag", testkit.Must[network.RecordSet](w.Azure, public.Child("A", "app")).Etag, before)
		want(t, "claim", w.value(public, "TXT", "a-app"), "")
		want(t, "records read again", lines(w.records()), "app.example.com A 60 9.9.9.9")
	})
	scenario(t, "the name servers of a zone stay", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		servers := w.value(public, "NS", "@")
		e := records.Endpoint{Name: "example.com", Type: "NS", Targets: strings.Split(servers, "|")}
		want(t, "status", w.apply(records.Changes{Delete: []records.Endpoint{e}}), http.StatusNoContent)
		want(t, "servers", w.value(public, "NS", "@"), servers)
	})
	scenario(t, "D6 metadata in another order is no change", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		tags := []records.Property{{Name: "azure/tags", Value: "b=2,a=1"}}
		x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{{Name: "app.example.com", Type: "A", Targets: []string{"1.1.1.1"}, ProviderSpecific: tags}}}
		want(t, "first round", x.loop(), http.StatusNoContent)
		got, _ := w.have(public, "A", "app")
		want(t, "metadata", fmt.Sprint(got.Properties.Metadata), "map[a:1 b:2]")
		for range 5 {
			w.restart()
			want(t, "round at rest", x.loop(), 0)
		}
	})
	scenario(t, "names that are shorter than a zone, or end like it", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		for _, name := range []string{"com", "notexample.com", "", "."} {
			want(t, "status", w.apply(records.Changes{Create: []records.Endpoint{{Name: name, Type: "A", Targets: []string{"1.1.1.1"}}}}), http.StatusNoContent)
		}
		want(t, "writes", len(w.methods()), 0)
	})
}

// TestConflict has a second writer.
func TestConflict(t *testing.T) {
	old, changed := owned("app.example.com", "A", "1.1.1.1"), owned("app.example.com", "A", "2.2.2.2")
	start := func(t *testing.T) *zonedAzure {
		w := newZonedAzure(t, core.Options{})
		w.apply(records.Changes{Create: old})
		return w
	}
	scenario(t, "metadata of others does not stop a change", func(t *testing.T) {
		w := start(t)
		w.set(public, "A", "app", object{"TTL": 300, "ARecords": []object{{"ipv4Address": "1.1.1.1"}}, "metadata": object{"by": "a person"}})
		w.Forget()
		want(t, "status", w.apply(records.Changes{UpdateOld: old, UpdateNew: changed}), http.StatusNoContent)
		want(t, "writes", strings.Join(w.methods(), ", "), "PUT app 412, PUT app 200")
		want(t, "record", w.value(public, "A", "app"), "2.2.2.2")
	})
	scenario(t, "addresses of others stay", func(t *testing.T) {
		w := start(t)
		w.set(public, "A", "app", object{"TTL": 300, "ARecords": []object{{"ipv4Address": "9.9.9.9"}}})
		want(t, "status", w.apply(records.Changes{UpdateOld: old, UpdateNew: changed}), http.StatusNoContent)
		want(t, "status of a deletion", w.apply(records.Changes{Delete: old}), http.StatusNoContent)
		want(t, "record", w.value(public, "A", "app"), "9.9.9.9")
		want(t, "its TXT record", w.value(public, "TXT", "a-app"), heritage)
	})
	scenario(t, "what is wanted is there already", func(t *testing.T) {
		w := start(t)
		w.set(public, "A", "app", object{"TTL": 300, "ARecords": []object{{"ipv4Address": "2.2.2.2"}}})
		want(t, "status", w.apply(records.Changes{UpdateOld: old, UpdateNew: changed}), http.StatusNoContent)
		want(t, "record", w.value(public, "A", "app"), "2.2.2.2")
	})
	scenario(t, "the record is gone", func(t *testing.T) {
		w := start(t)
		if err := w.Client.Delete(context.WithoutCancel(t.Context()), public.Child("A", "app")); err != nil {
			t.Fatal(err)
		}
		want(t, "status", w.apply(records.Changes{Delete: old}), http.StatusNoContent)
		want(t, "records", lines(w.records()), "")
	})
	scenario(t, "D26, D58 a part is written already", func(t *testing.T) {
		w := start(t)
		if err := w.Client.Delete(context.WithoutCancel(t.Context()), public.Child("A", "app")); err != nil {
			t.Fatal(err)
		}
		w.restart()
		w.Forget()
		want(t, "status", w.apply(records.Changes{Create: old}), http.StatusNoContent)
		want(t, "writes", strings.Join(w.methods(), ", "), "PUT app 201")
	})
}

// TestErrors has an Azure that fails: the answer is 503, and never a part of a list.
func TestErrors(t *testing.T) {
	scenario(t, "D22 no rights in one of two zones", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.fault(core.Fault{Method: "GET", Type: network.PrivateDNSZones + "/ALL", Fault: "error", Status: 403, Code: "AuthorizationFailed"})
		want(t, "status", w.call(http.MethodGet, "/records", nil).Code, http.StatusServiceUnavailable)
		want(t, "ready", w.provider.Ready(t.Context()) == nil, false)
		w.fault()
		want(t, "status after", w.call(http.MethodGet, "/records", nil).Code, http.StatusOK)
		want(t, "ready after", w.provider.Ready(t.Context()) == nil, true)
	})
	scenario(t, "D54 a list breaks off at its second page", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		for n := range 120 {
			w.set(public, "A", fmt.Sprintf("h%d", n), object{"TTL": 60, "ARecords": []object{{"ipv4Address": "1.1.1.1"}}})
		}
		w.fault(core.Fault{Method: "GET", Type: network.DNSZones + "/recordsets", Fault: "error", Status: 429, RetryAfter: 30, Nth: 2, Times: 1})
		want(t, "status", w.call(http.MethodGet, "/records", nil).Code, http.StatusServiceUnavailable)
		pass(time.Minute)
		want(t, "records", len(w.records()), 120)
	})
	scenario(t, "D10 a zone that Azure slows down does not stop the others", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.records()
		w.fault(core.Fault{Method: "PUT", Type: aRecords, Fault: "error", Status: 429, RetryAfter: 30, Times: 1})
		var create []records.Endpoint
		for n := range 20 {
			create = append(create, records.Endpoint{Name: fmt.Sprintf("h%d.example.com", n), Type: "A", Targets: []string{"1.1.1.1"}},
				records.Endpoint{Name: fmt.Sprintf("h%d.corp.internal", n), Type: "A", Targets: []string{"10.0.0.1"}})
		}
		w.Forget()
		start := time.Now()
		want(t, "status", w.apply(records.Changes{Create: create}), http.StatusServiceUnavailable)
		if took := time.Since(start); took > dns.Deadline {
			t.Errorf("the answer took %v", took)
		}
		want(t, "private records", len(testkit.List[network.RecordSet](w.Azure, private, privateA)), 20)
		w.Forget()
		pass(10 * time.Second)
		want(t, "status before the time is over", w.apply(records.Changes{Create: create}), http.StatusServiceUnavailable)
		want(t, "requests before the time is over", len(w.methods()), 0)
		pass(20 * time.Second)
		want(t, "status after", w.apply(records.Changes{Create: create}), http.StatusNoContent)
		want(t, "public records", len(testkit.List[network.RecordSet](w.Azure, public, aRecords)), 20)
	})
	scenario(t, "D62 one of 25 names is refused", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		x := &externalDNS{w: w, owner: "me"}
		for n := range 25 {
			x.want = append(x.want, records.Endpoint{Name: fmt.Sprintf("h%d.example.com", n), Type: "A", Targets: []string{"1.1.1.1"}})
		}
		w.fault(core.Fault{Method: "PUT", Type: aRecords, Name: "h7", Fault: "error", Status: 400, Code: "BadRequest"})
		want(t, "first round", x.loop(), http.StatusNoContent)
		want(t, "records", len(w.records()), 48)
		w.Forget()
		for range 10 {
			pass(time.Minute)
			want(t, "round", x.loop(), http.StatusNoContent)
		}
		want(t, "writes within the hour", len(w.methods()), 0)
		w.fault()
		pass(time.Hour)
		want(t, "round after the hour", x.loop(), http.StatusNoContent)
		want(t, "round at rest", x.loop(), 0)
	})
	scenario(t, "a lock keeps a record", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		app := owned("app.example.com", "A", "1.1.1.1")
		w.apply(records.Changes{Create: app})
		w.Put(public.Child("A", "app")+"/providers/Microsoft.Authorization/locks/keep", object{"properties": object{"level": "CanNotDelete"}})
		want(t, "status", w.apply(records.Changes{Delete: app}), http.StatusNoContent)
		want(t, "record", w.value(public, "A", "app"), "1.1.1.1")
		want(t, "its TXT record", w.value(public, "TXT", "a-app"), heritage)
	})
	scenario(t, "D23 many deletions are held back", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		x := &externalDNS{w: w, owner: "me"}
		for n := range 40 {
			x.want = append(x.want, records.Endpoint{Name: fmt.Sprintf("h%d.example.com", n), Type: "A", Targets: []string{"1.1.1.1"}})
		}
		want(t, "first round", x.loop(), http.StatusNoContent)
		all := x.want
		x.want = nil
		w.Forget()
		want(t, "round without sources", x.loop(), http.StatusServiceUnavailable)
		want(t, "writes", len(w.methods()), 0)
		x.want = all[:30]
		want(t, "round with ten deletions", x.loop(), http.StatusNoContent)
		want(t, "records", len(w.records()), 60)
	})
	scenario(t, "D49 a dry run writes nothing", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.config.DryRun = true
		w.restart()
		want(t, "status", w.apply(records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}), http.StatusNoContent)
		want(t, "writes", len(w.methods()), 0)
		if !strings.Contains(w.log.String(), "PUT A app.example.com if absent: create") {
			t.Error(w.log.String())
		}
	})
	scenario(t, "protected names", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.config.Protect = []*regexp.Regexp{regexp.MustCompile(`^app\.`)}
		w.restart()
		want(t, "status", w.apply(records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}), http.StatusNoContent)
		want(t, "writes", len(w.methods()), 0)
	})
	scenario(t, "D26 the client goes away", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.records()
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel()
		if err := w.provider.Apply(ctx, records.Changes{Create: owned("app.example.com", "A", "1.1.1.1")}); err != nil {
			t.Error(err)
		}
		want(t, "record", w.value(public, "A", "app"), "1.1.1.1")
	})
}

// TestZones has the ways to find zones.
func TestZones(t *testing.T) {
	filter := func(w *zonedAzure, z dns.Zones) string {
		w.config.Zones = z
		w.restart()
		return strings.TrimSpace(w.call(http.MethodGet, "/", nil).Body.String())
	}
	group := []azure.ID{testkit.Group}
	scenario(t, "D21 by group, subscription, tag, name and id", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		other := azure.GroupID(testkit.Subscription, "other")
		w.Put(other, object{"location": testkit.Location})
		w.Put(other.Resource(network.DNSZones, "a.example.com"), object{"location": "global", "tags": object{"dns": "yes"}})
		for name, z := range map[string]dns.Zones{
			`{"include":["example.com"]}`:                                 {Groups: group, Public: true},
			`{"include":["corp.internal"]}`:                               {Groups: group, Private: true},
			`{"include":["a.example.com","corp.internal"]}`:               {IDs: []azure.ID{other.Resource(network.DNSZones, "a.example.com"), private}},
			`{"include":["a.example.com"]}`:                               {Groups: []azure.ID{azure.SubscriptionID(testkit.Subscription)}, Public: true, Tags: map[string]string{"DNS": "yes"}},
			`{"include":["a.example.com","corp.internal","example.com"]}`: {Groups: []azure.ID{azure.SubscriptionID(testkit.Subscription)}, Public: true, Private: true},
			`{"include":["a.example.com","example.com"]}`:                 {Groups: []azure.ID{group[0], other}, Public: true, Private: true, Names: []string{"example.com"}},
		} {
			want(t, "filter", filter(w, z), name)
		}
	})
	scenario(t, "two zones of the same name, and none", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.Put(testkit.Group.Resource(network.PrivateDNSZones, "example.com"), object{"location": "global"})
		if got := filter(w, dns.Zones{Groups: group, Public: true, Private: true}); !strings.Contains(got, "have the same name") {
			t.Error(got)
		}
		if got := filter(w, dns.Zones{Groups: group, Public: true, Tags: map[string]string{"none": ""}}); !strings.Contains(got, "no zone is found") {
			t.Error(got)
		}
	})
	scenario(t, "D20 the zone with the longest name, and a zone that goes", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		inner := testkit.Group.Resource(network.DNSZones, "a.example.com")
		w.Put(inner, object{"location": "global"})
		x := &externalDNS{w: w, owner: "me", want: []records.Endpoint{{Name: "x.a.example.com", Type: "A", Targets: []string{"1.1.1.1"}}}}
		want(t, "first round", x.loop(), http.StatusNoContent)
		want(t, "record", w.value(inner, "A", "x"), "1.1.1.1")
		if err := w.Client.Delete(context.WithoutCancel(t.Context()), inner); err != nil {
			t.Fatal(err)
		}
		pass(dns.Refresh + time.Second)
		want(t, "round after", x.loop(), http.StatusNoContent)
		want(t, "record of the outer zone", w.value(public, "A", "x.a"), "1.1.1.1")
	})
	scenario(t, "a list that lacks a zone loses nothing", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.set(public, "A", "app", object{"TTL": 60, "ARecords": []object{{"ipv4Address": "1.1.1.1"}}})
		want(t, "records", len(w.records()), 1)
		pass(dns.Refresh + time.Second)
		w.fault(core.Fault{Method: "GET", Type: network.DNSZones, Fault: "answer", Path: "value", Value: []any{}})
		want(t, "records while the list is empty", len(w.records()), 1)
	})
}

// TestProtocol checks what the server answers to requests that are not as they should be.
func TestProtocol(t *testing.T) {
	w := newZonedAzure(t, core.Options{})
	server := httptest.NewServer(w.handler)
	defer server.Close()
	for name, c := range map[string]struct {
		method, path, accept, kind, body string
		status                           int
	}{
		"negotiation":         {"GET", "/", dns.MediaType, "", "", 200},
		"any media type":      {"GET", "/", "*/*", "", "", 200},
		"no media type":       {"GET", "/records", "", "", "", 200},
		"another media type":  {"GET", "/", "text/html", "", "", 406},
		"another version":     {"GET", "/records", "application/external.dns.webhook+json;version=2", "", "", 406},
		"another path":        {"GET", "/applychanges", "", "", "", 404},
		"another method":      {"DELETE", "/records", "", "", "", 405},
		"empty changes":       {"POST", "/records", "", dns.MediaType, "{}", 204},
		"null":                {"POST", "/records", "", dns.MediaType, "null", 204},
		"D2 old names":        {"POST", "/records", "", dns.MediaType, `{"Create":[{"dnsName":"old.example.com","recordType":"A","targets":["1.1.1.1"]}]}`, 204},
		"null in a list":      {"POST", "/adjustendpoints", dns.MediaType, dns.MediaType, "[null]", 200},
		"malformed":           {"POST", "/records", "", dns.MediaType, `{"create":`, 400},
		"more after the end":  {"POST", "/adjustendpoints", "", dns.MediaType, "[] []", 400},
		"another body":        {"POST", "/records", "", "application/json", "{}", 415},
		"no type of the body": {"POST", "/records", "", "", "{}", 415},
		"D44 a large body":    {"POST", "/records", "", dns.MediaType, `{"create":[` + strings.Repeat(" ", dns.LongestBody) + `]}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Content-Type", c.kind)
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			want(t, "status", answer.StatusCode, c.status)
			if c.status == http.StatusOK {
				want(t, "media type", answer.Header.Get("Content-Type"), dns.MediaType)
			}
		})
	}
	want(t, "record by old names", w.value(public, "A", "old"), "1.1.1.1")
}
