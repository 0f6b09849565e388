package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/dns/explain"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/testkit"
)

type object = map[string]any

const (
	public  = testkit.Group + "/providers/" + network.DNSZones + "/example.com"
	inner   = testkit.Group + "/providers/" + network.DNSZones + "/in.example.com"
	private = testkit.Group + "/providers/" + network.PrivateDNSZones + "/example.com"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// share is the metadata of contributions.
func share(t *testing.T, shares map[string]records.Contribution) object {
	t.Helper()
	all := object{"team": "web"}
	for id, c := range shares {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		all["kaz-set-"+id] = string(text)
	}
	return all
}

func lease(cluster string, ago time.Duration) object {
	text := records.Lease{Cluster: cluster, Every: 4 * time.Minute, At: now.Add(-ago)}.Text()
	return object{"properties": object{"TTL": 300, "TXTRecords": []object{{"value": []string{text}}}}}
}

func a(targets ...string) object {
	var all []object
	for _, target := range targets {
		all = append(all, object{"ipv4Address": target})
	}
	return object{"TTL": 60, "ARecords": all}
}

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update if this is as it should be (-want +got):\n%s", diff)
	}
}

// TestName explains a name in the states that it can have.
func TestName(t *testing.T) {
	w := testkit.NewAzure(t, core.Options{}, 0)
	for _, z := range []azure.ID{public, inner, private} {
		w.Put(z, object{"location": "global"})
	}
	app := a("1.1.1.1", "2.2.2.2")
	app["metadata"] = share(t, map[string]records.Contribution{
		"east":  {Cluster: "east", TTL: 300, Targets: []string{"1.1.1.1"}, Resource: "service/default/web"},
		"west":  {Cluster: "west", TTL: 60, Targets: []string{"2.2.2.2"}},
		"south": {Cluster: "south", TTL: 60, Targets: []string{"3.3.3.3"}, Out: records.Silent},
	})
	w.Put(public.Child("A", "app"), object{"properties": app})
	w.Put(public.Child("TXT", "a-app"), object{"properties": object{"TTL": 300, "TXTRecords": []object{
		{"value": []string{`"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/default/web"`}},
	}}})
	w.Put(public.Child("TXT", "east._kaz-lease"), lease("east", time.Minute))
	w.Put(public.Child("TXT", "west._kaz-lease"), lease("west", 20*time.Minute))
	w.Put(private.Child("A", "app"), object{"properties": object{"ttl": 60, "aRecords": []object{{"ipv4Address": "10.0.0.1"}}}})
	w.Put(public.Child("A", "plain"), object{"properties": a("4.4.4.4")})
	odd := a("5.5.5.5")
	odd["metadata"] = object{"kaz-set-east": "{"}
	w.Put(public.Child("A", "odd"), object{"properties": odd})
	profile := testkit.Group + "/providers/" + records.ProfileType + "/kaz-t"
	w.Put(profile, object{"location": "global", "properties": object{
		"trafficRoutingMethod": "Priority", "dnsConfig": object{"relativeName": "kaz-t", "ttl": 60},
		"monitorConfig": object{"protocol": "TCP", "port": 443},
		"endpoints": []object{{"name": "east", "type": records.ProfileType + "/externalEndpoints", "properties": object{
			"target": "20.0.0.1", "priority": 1,
		}}},
	}})
	way := func(value string) *records.Routing {
		return &records.Routing{Policy: "priority", Probe: "TCP:443", Value: value}
	}
	w.Put(public.Child("A", "t"), object{"properties": object{"TTL": 60, "targetResource": object{"id": profile},
		"metadata": share(t, map[string]records.Contribution{
			"east": {Cluster: "east", TTL: 60, Targets: []string{"20.0.0.1"}, Routing: way("1")},
			"west": {Cluster: "west", TTL: 60, Targets: []string{"20.0.0.2"}, Routing: way("2")},
		})}})
	last := a("6.6.6.6")
	last["metadata"] = share(t, map[string]records.Contribution{"east": {Cluster: "east", TTL: 60, Targets: []string{"6.6.6.6"}, Out: records.Empty}})
	w.Put(public.Child("A", "last"), object{"properties": last})

	for name, c := range map[string]struct {
		host   string
		answer explain.Answer
		reads  int
	}{
		"shared":  {"App.example.com.", explain.Answer{Code: "NOERROR", TTL: 60, Targets: []string{"1.1.1.1", "2.2.2.2"}}, 24},
		"plain":   {"plain.example.com", explain.Answer{Code: "NOERROR", TTL: 60, Targets: []string{"4.4.4.3"}}, 20},
		"odd":     {"odd.example.com", explain.Answer{Error: "i/o timeout"}, 20},
		"last":    {"last.example.com", explain.Answer{Code: "NOERROR", TTL: 60, Targets: []string{"6.6.6.6"}}, 21},
		"routed":  {"t.example.com", explain.Answer{Code: "NOERROR", TTL: 60, Targets: []string{"20.0.0.1"}}, 24},
		"missing": {"x.in.example.com", explain.Answer{Code: "NXDOMAIN"}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w.Forget()
			ask := func(_ context.Context, server, _, recordType string) explain.Answer {
				answer := c.answer
				answer.Server, answer.Type = server, recordType
				return answer
			}
			zones := dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true, Private: true}
			f, err := explain.Gather(t.Context(), w.Client.Fresh(), zones, c.host, "", ask)
			if err != nil {
				t.Fatal(err)
			}
			f.Now = now
			n := f.Explain()
			golden(t, "testdata/"+name+".txt", n.String())
			if name == "shared" || name == "routed" {
				golden(t, "testdata/"+name+".svg", n.Picture().Inline(nil))
			}
			if reads := len(w.Requests()); reads > c.reads {
				t.Errorf("%d requests, want %d", reads, c.reads)
			}
			if len(w.Writes()) > 0 {
				t.Errorf("writes %v", w.Writes())
			}
		})
	}
	_, err := explain.Gather(t.Context(), w.Client.Fresh(), dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true}, "notexample.com", "", nil)
	if !errors.Is(err, explain.ErrNoZone) {
		t.Errorf("%v, want %v", err, explain.ErrNoZone)
	}
}
