// Package externaldns_test has ExternalDNS itself work on the local Azure: its webhook client, its TXT registry and its plan.
//
// ExternalDNS's controller cannot be imported: its sources need a module that the Go proxy does not have. [cluster.sync] is its loop.
package externaldns_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/sirupsen/logrus"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/webhook"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/txt"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	logrus.SetOutput(io.Discard)
	os.Exit(m.Run())
}

const zone = testkit.Group + "/providers/" + network.DNSZones + "/example.com"

// doer adapts a RoundTripper to the ARM client.
type doer struct{ http.RoundTripper }

func (d doer) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }

// azureZone is a local Azure with a zone.
type azureZone struct {
	*testkit.Azure
	t *testing.T
}

func newAzureZone(t *testing.T) *azureZone {
	t.Helper()
	w := &azureZone{testkit.NewAzure(t, core.Options{}, 0), t}
	w.Put(zone, map[string]any{"location": "global"})
	return w
}

// cluster is an ExternalDNS with its webhook.
type cluster struct {
	t        *testing.T
	registry registry.Registry
	oldOwner string // --migrate-from-txt-owner
	want     []*endpoint.Endpoint
}

// start starts a webhook on a loopback address, and an ExternalDNS that uses it.
func (w *azureZone) start(change func(c *externaldns.Config)) *cluster {
	w.t.Helper()
	return w.startAs("", change)
}

// startAs is start for a cluster that shares names.
func (w *azureZone) startAs(id string, change func(c *externaldns.Config)) *cluster {
	w.t.Helper()
	return w.startWith(arm.Config{Endpoint: "http://127.0.0.1", Transport: doer{w.Transport()}}, testkit.Group, id, change)
}

// startOver is start with a local Azure that is served over TLS.
func (w *azureZone) startOver(info client.Info, group azure.ID) *cluster {
	w.t.Helper()
	text, err := os.ReadFile(info.CAFile)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	way := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	w.t.Cleanup(way.CloseIdleConnections)
	identity, err := azidentity.NewManagedIdentityCredential(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	config := arm.Config{Endpoint: info.ARM, Transport: doer{way}, Credential: identity}
	return w.startWith(config, group, "", func(c *externaldns.Config) { c.TXTWildcardReplacement = "any" })
}

func (w *azureZone) startWith(way arm.Config, group azure.ID, id string, change func(c *externaldns.Config)) *cluster {
	w.t.Helper()
	way.ThrottleWait = dns.ThrottleWait
	client, err := arm.New(way)
	if err != nil {
		w.t.Fatal(err)
	}
	p := dns.New(dns.Config{
		Azure: client, Zones: dns.Zones{Groups: []azure.ID{group}, Public: true},
		Options: records.Options{DefaultTTL: dns.DefaultTTL, MostDeleted: dns.MostDeleted, Cluster: id},
		Refresh: dns.Refresh, Deadline: dns.Deadline, Parallel: dns.Parallel, PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites,
		Log: slog.New(slog.DiscardHandler),
	})
	server := httptest.NewServer(dns.NewServer(p).Handler())
	w.t.Cleanup(server.Close)
	return newExternalDNS(w.t, server.URL, change)
}

// newExternalDNS returns an ExternalDNS for a webhook that serves.
func newExternalDNS(t *testing.T, url string, change func(c *externaldns.Config)) *cluster {
	t.Helper()
	config := externaldns.NewConfig()
	config.WebhookProviderURL, config.TXTOwnerID = url, "mycluster"
	if change != nil {
		change(config)
	}
	hook, err := webhook.New(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := txt.New(config, hook)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, registry: r, oldOwner: config.TXTOwnerOld}
}

// sync is a round of ExternalDNS's controller. It returns whether there was something to change.
func (c *cluster) sync() (bool, error) {
	ctx := context.WithoutCancel(c.t.Context())
	current, err := c.registry.Records(ctx)
	if err != nil {
		return false, err
	}
	var want []*endpoint.Endpoint
	for _, e := range c.want {
		want = append(want, e.DeepCopy())
	}
	desired, err := c.registry.AdjustEndpoints(want)
	if err != nil {
		return false, err
	}
	p := &plan.Plan{
		Policies: []plan.Policy{&plan.SyncPolicy{}}, Current: current, Desired: desired,
		DomainFilter: endpoint.MatchAllDomainFilters{c.registry.GetDomainFilter()}, OwnerID: c.registry.OwnerID(),
		ManagedRecords: []string{endpoint.RecordTypeA, endpoint.RecordTypeAAAA, endpoint.RecordTypeCNAME}, OldOwnerID: c.oldOwner,
	}
	if p = p.Calculate(); !p.Changes.HasChanges() {
		return false, nil
	}
	return true, c.registry.ApplyChanges(ctx, p.Changes)
}

// settle makes one round with changes and one without.
func (c *cluster) settle(want ...*endpoint.Endpoint) {
	c.t.Helper()
	c.want = want
	changed, err := c.sync()
	if err != nil || !changed {
		c.t.Fatalf("changes %v, %v", changed, err)
	}
	if changed, err = c.sync(); err != nil || changed {
		c.t.Fatalf("the next round has changes %v, %v", changed, err)
	}
}

// has compares the record sets of the zone, but for those that belong to Azure.
func (w *azureZone) has(want ...string) {
	w.t.Helper()
	var got []string
	docs, err := w.Client.Fresh().List(context.WithoutCancel(w.t.Context()), azure.Query{Scope: zone, Type: network.DNSZones + "/recordsets"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, doc := range docs {
		s, err := records.Read(records.Zone{ID: zone, Name: zone.Name()}, doc)
		if err != nil {
			w.t.Fatal(err)
		}
		if e, ok := s.Endpoint(); ok {
			slices.Sort(e.Targets)
			got = append(got, fmt.Sprintf("%s %s %d %s", e.Name, e.Type, e.TTL, strings.Join(e.Targets, "|")))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	text     = `"heritage=external-dns,external-dns/owner=mycluster"`
	typeA    = endpoint.RecordTypeA
	typeAAAA = endpoint.RecordTypeAAAA
)

// TestLife creates, changes and deletes records, and changes their type.
func TestLife(t *testing.T) {
	w := newAzureZone(t)
	w.Put(zone.Child("A", "human"), map[string]any{"properties": map[string]any{"TTL": 60, "ARecords": []map[string]any{{"ipv4Address": "9.9.9.9"}}}})
	const human = "human.example.com A 60 9.9.9.9"
	c := w.start(nil)
	c.settle(endpoint.NewEndpoint("app.example.com", typeA, "1.1.1.1"), endpoint.NewEndpoint("app.example.com", typeAAAA, "2001:DB8::1"))
	w.has(human, "app.example.com A 300 1.1.1.1", "a-app.example.com TXT 300 "+text,
		"app.example.com AAAA 300 2001:db8::1", "aaaa-app.example.com TXT 300 "+text)
	c.settle(endpoint.NewEndpointWithTTL("app.example.com", typeA, 60, "2.2.2.2", "1.1.1.1"))
	w.has(human, "app.example.com A 60 1.1.1.1|2.2.2.2", "a-app.example.com TXT 300 "+text)
	c.settle(endpoint.NewEndpoint("app.example.com", endpoint.RecordTypeCNAME, "lb.example.net"))
	w.has(human, "app.example.com CNAME 300 lb.example.net", "cname-app.example.com TXT 300 "+text)
	c.settle(endpoint.NewEndpoint("app.example.com", typeA, "1.1.1.1"))
	w.has(human, "app.example.com A 300 1.1.1.1", "a-app.example.com TXT 300 "+text)
	c.settle()
	w.has(human)
	c.want = []*endpoint.Endpoint{endpoint.NewEndpoint("human.example.com", typeA, "1.1.1.1")}
	if changed, err := c.sync(); changed || err != nil {
		t.Errorf("a record of a person: changes %v, %v", changed, err)
	}
}

// TestSettings has settings of the registry that change its TXT records.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *externaldns.Config)
		want   []*endpoint.Endpoint
		names  []string // of the TXT records
	}{
		"encrypted": {func(c *externaldns.Config) {
			c.TXTEncryptEnabled, c.TXTEncryptAESKey = true, "01234567890123456789012345678901"
		}, []*endpoint.Endpoint{endpoint.NewEndpoint("app.example.com", typeA, "1.1.1.1")}, []string{"a-app"}},
		"a prefix that has place at the apex": {func(c *externaldns.Config) { c.TXTPrefix = "_edns-%{record_type}." },
			[]*endpoint.Endpoint{endpoint.NewEndpoint("example.com", typeA, "1.1.1.1")}, []string{"_edns-a"}},
		"a wildcard": {func(c *externaldns.Config) { c.TXTWildcardReplacement = "any" },
			[]*endpoint.Endpoint{endpoint.NewEndpoint("*.app.example.com", typeA, "1.1.1.1")}, []string{"a-any.app"}},
		"metadata": {nil, []*endpoint.Endpoint{
			endpoint.NewEndpoint("app.example.com", typeA, "1.1.1.1").WithProviderSpecific("azure/tags", "b=2,a=1").WithProviderSpecific("aws/weight", "3"),
		}, []string{"a-app"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAzureZone(t)
			w.start(c.change).settle(c.want...)
			for _, name := range c.names {
				if _, ok := testkit.Read[network.RecordSet](w.Azure, zone.Child("TXT", name)); !ok {
					t.Errorf("no TXT record %s", name)
				}
			}
			again := w.start(c.change)
			again.want = c.want
			if changed, err := again.sync(); changed || err != nil {
				t.Errorf("at rest: changes %v, %v", changed, err)
			}
			again.settle()
			w.has()
		})
	}
}

// TestFaults checks that ExternalDNS goes on after errors of Azure.
func TestFaults(t *testing.T) {
	w := newAzureZone(t)
	c := w.start(nil)
	c.want = []*endpoint.Endpoint{endpoint.NewEndpoint("app.example.com", typeA, "1.1.1.1")}
	if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.DNSZones + "/A", Fault: "error", Status: 429, RetryAfter: 30, Times: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.sync(); !errors.Is(err, provider.SoftError) {
		t.Errorf("%v, want an error after which ExternalDNS goes on", err)
	}
}

// TestShared has two clusters that share a name, with the owner id that both have by default. The second one had the name for itself.
func TestShared(t *testing.T) {
	w := newAzureZone(t)
	const app = "app.example.com"
	const claim = `"heritage=external-dns,external-dns/owner=default`
	same := func(c *externaldns.Config) { c.TXTOwnerID = "default" }
	east, west := w.startAs("east", same), w.startAs("west", same)
	at := func(cluster, target string) *endpoint.Endpoint {
		e := endpoint.NewEndpoint(app, typeA, target).WithSetIdentifier(cluster)
		e.Labels[endpoint.ResourceLabelKey] = "service/default/" + cluster
		return e
	}
	texts := func(clusters ...string) string {
		var all []string
		for _, c := range clusters {
			all = append(all, claim+",external-dns/resource=service/default/"+c+`"`)
		}
		return "a-app.example.com TXT 300 " + strings.Join(all, "|")
	}
	alone := endpoint.NewEndpoint(app, typeA, "2.2.2.2")
	alone.Labels[endpoint.ResourceLabelKey] = "service/default/west"
	west.settle(alone)
	east.want = []*endpoint.Endpoint{at("east", "1.1.1.1")}
	if changed, err := east.sync(); err != nil {
		t.Errorf("a name of another cluster: changes %v, %v", changed, err)
	}
	w.has(app+" A 300 2.2.2.2", texts("west"))
	west.settle(at("west", "2.2.2.2"))
	east.settle(at("east", "1.1.1.1"))
	w.has(app+" A 300 1.1.1.1|2.2.2.2", texts("east", "west"))
	east.settle(at("east", "1.1.1.2"))
	w.has(app+" A 300 1.1.1.2|2.2.2.2", texts("east", "west"))
	west.settle()
	w.has(app+" A 300 1.1.1.2", texts("east"))
	east.settle()
	w.has()
}

// TestNewOwner has one of two clusters that share a name change its owner id. The TXT records of the other one stay.
func TestNewOwner(t *testing.T) {
	w := newAzureZone(t)
	const app = "app.example.com"
	owned := func(change func(c *externaldns.Config)) func(c *externaldns.Config) {
		return func(c *externaldns.Config) {
			c.TXTOwnerID = "default"
			change(c)
		}
	}
	same := owned(func(*externaldns.Config) {})
	at := func(cluster, target string) *endpoint.Endpoint {
		return endpoint.NewEndpoint(app, typeA, target).WithSetIdentifier(cluster)
	}
	east, west := w.startAs("east", same), w.startAs("west", same)
	east.settle(at("east", "1.1.1.1"))
	west.settle(at("west", "2.2.2.2"))
	rename := w.startAs("west", owned(func(c *externaldns.Config) { c.TXTOwnerID, c.TXTOwnerOld = "west", "default" }))
	rename.want = west.want
	if changed, err := rename.sync(); !changed || err != nil { // ExternalDNS makes these changes as long as it has the flag
		t.Fatalf("changes %v, %v", changed, err)
	}
	const claim = `"heritage=external-dns,external-dns/owner=`
	w.has(app+" A 300 1.1.1.1|2.2.2.2", "a-app.example.com TXT 300 "+claim+`default"|`+claim+`west"`)
	if changed, err := east.sync(); changed || err != nil {
		t.Errorf("the other cluster: changes %v, %v", changed, err)
	}
	rest(t, "without --migrate-from-txt-owner", w.startAs("west", owned(func(c *externaldns.Config) { c.TXTOwnerID = "west" })), west.want)
}
