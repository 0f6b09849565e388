package dns_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

// routed is an address at a name that Traffic Manager answers.
func routed(cluster, name, target, policy, property, value string) records.Endpoint {
	e := shared(cluster, name, target)
	e.ProviderSpecific = []records.Property{{Name: "webhook/policy", Value: policy}, {Name: "webhook/probe", Value: "HTTPS:443/healthz"}}
	if property != "" {
		e.ProviderSpecific = append(e.ProviderSpecific, records.Property{Name: property, Value: value})
	}
	return e
}

// endpoint is an endpoint of a Traffic Manager profile.
type endpoint struct {
	Name       string `json:"name"`
	Properties struct {
		Target   string   `json:"target"`
		Weight   int      `json:"weight"`
		Priority int      `json:"priority"`
		Location string   `json:"endpointLocation"`
		Geo      []string `json:"geoMapping"`
	} `json:"properties"`
}

// profiles shows the profiles with their endpoints.
func (w *zonedAzure) profiles() string {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	docs, err := w.Client.Fresh().List(ctx, azure.Query{Scope: public.Parent(), Type: records.ProfileType})
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, doc := range docs {
		p, err := azure.Decode[struct {
			Method    string     `json:"trafficRoutingMethod"`
			Endpoints []endpoint `json:"endpoints"`
		}](doc)
		if err != nil {
			w.t.Fatal(err)
		}
		line := p.Properties.Method
		slices.SortFunc(p.Properties.Endpoints, func(a, b endpoint) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range p.Properties.Endpoints {
			line += " " + e.Name + "=" + e.Properties.Target
			switch p.Properties.Method {
			case "Weighted":
				line += fmt.Sprintf("*%d", e.Properties.Weight)
			case "Priority":
				line += fmt.Sprintf("#%d", e.Properties.Priority)
			case "Performance":
				line += "@" + e.Properties.Location
			case "Geographic":
				line += "@" + strings.Join(e.Properties.Geo, "+")
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestTrafficManager has clusters that share names through Traffic Manager.
func TestTrafficManager(t *testing.T) {
	const weight, priority = "webhook/weight", "webhook/priority"
	scenario(t, "D35, D36 weights", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "weighted", weight, "90"))
		b := w.join("b", nil, routed("b", "app", "20.0.0.2", "weighted", weight, "10"))
		settle(t, a, b)
		want(t, "profiles", w.profiles(), "Weighted a=20.0.0.1*90 b=20.0.0.2*10")
		set, _ := w.have(public, "A", "app")
		want(t, "alias", strings.Contains(strings.ToLower(string(set.Properties.TargetResource.To())), "/trafficmanagerprofiles/kaz-app-a-"), true)
		w.Forget()
		b.want[0].ProviderSpecific[2].Value = "50"
		settle(t, a, b)
		want(t, "another weight", w.profiles(), "Weighted a=20.0.0.1*90 b=20.0.0.2*50")
		changes := slices.DeleteFunc(w.methods(), func(one string) bool { return strings.Contains(one, "_kaz-lease") })
		want(t, "writes", strings.Join(changes, ", "), "PUT b 200, PUT app 200")
		a.want = nil
		settle(t, a, b)
		want(t, "without the first", w.profiles(), "Weighted b=20.0.0.2*50")
		b.want = nil
		settle(t, a, b)
		want(t, "without both", w.profiles()+w.value(public, "TXT", "a-app"), "")
		_, there := w.have(public, "A", "app")
		want(t, "the record set", there, false)
		a.stop()
		b.stop()
	})
	scenario(t, "other policies, the apex, and merging after it", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		apex := routed("a", "", "20.0.0.1", "geo", "webhook/geo", "GEO-EU,GEO-AF")
		apex.Name = "example.com"
		a := w.join("a", nil, routed("a", "p", "20.0.0.1", "priority", priority, "1"),
			routed("a", "q", "20.0.0.1", "performance", "webhook/location", "West Europe"), apex)
		b := w.join("b", nil, routed("b", "p", "20.0.0.2", "priority", priority, "2"))
		a.loop()
		rounds(3, a, b) // the apex is left out: its TXT record needs a prefix that this client does not have
		want(t, "profiles", w.profiles(), "Performance a=20.0.0.1@West Europe\nPriority a=20.0.0.1#1 b=20.0.0.2#2")
		b.want = nil
		rounds(2, a, b)
		a.want = []records.Endpoint{shared("a", "p", "20.0.0.1")}
		rounds(3, a, b)
		want(t, "merged", w.value(public, "A", "p"), "20.0.0.1")
		want(t, "profiles after it", w.profiles(), "")
		a.stop()
		b.stop()
	})
	scenario(t, "D38 clusters that want different things", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "priority", priority, "1"))
		for i, other := range []records.Endpoint{
			routed("b", "app", "20.0.0.2", "priority", priority, "1"),
			routed("b", "app", "20.0.0.2", "weighted", weight, "1"),
			shared("b", "app", "20.0.0.2"),
			routed("b", "app", "20.0.0.2", "round", "", ""),
			routed("b", "app", "20.0.0.2", "weighted", weight, "0"),
			routed("b", "app", "20.0.0.2", "priority", "", ""),
		} {
			b := w.join("b", nil, other)
			rounds(2, a, b)
			w.Forget()
			rounds(2, a, b)
			want(t, fmt.Sprintf("profiles %d", i), w.profiles(), "Priority a=20.0.0.1#1")
			changes := slices.DeleteFunc(w.methods(), func(one string) bool { return strings.Contains(one, "_kaz-lease") })
			want(t, fmt.Sprintf("writes %d", i), strings.Join(changes, ", "), "")
			b.stop()
		}
		a.stop()
	})
	scenario(t, "D39 private addresses and zones", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		inner := routed("a", "app", "20.0.0.1", "weighted", weight, "1")
		inner.Name = "app.corp.internal"
		a := w.join("a", nil, routed("a", "app", "10.0.0.1", "weighted", weight, "1"), inner)
		settle(t, a)
		want(t, "answers", w.value(public, "A", "app")+" "+w.value(private, "A", "app"), "10.0.0.1 20.0.0.1")
		want(t, "profiles", w.profiles(), "")
		a.stop()
	})
	scenario(t, "an endpoint that was deleted by hand comes back", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "weighted", weight, "5"))
		settle(t, a)
		set, _ := w.have(public, "A", "app")
		id := set.Properties.TargetResource.To().Child("externalEndpoints", "a")
		if _, err := azure.Do(context.WithoutCancel(t.Context()), w.Client, azure.Request{Verb: azure.Delete, ID: id}); err != nil {
			t.Fatal(err)
		}
		want(t, "deleted", w.profiles(), "Weighted")
		pass(10 * time.Minute)
		want(t, "later", w.profiles(), "Weighted a=20.0.0.1*5")
		a.stop()
	})
	scenario(t, "a cluster alone changes policy and probe", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "weighted", weight, "5"))
		settle(t, a)
		a.want = []records.Endpoint{routed("a", "app", "20.0.0.1", "priority", priority, "3")}
		a.want[0].ProviderSpecific[1].Value = "TCP:80"
		settle(t, a)
		want(t, "profiles", w.profiles(), "Priority a=20.0.0.1#3")
		b := w.join("b", nil, routed("b", "app", "20.0.0.2", "priority", priority, "4"))
		b.want[0].ProviderSpecific[1].Value = "TCP:80"
		settle(t, a, b)
		want(t, "profiles of both", w.profiles(), "Priority a=20.0.0.1#3 b=20.0.0.2#4")
		a.stop()
		b.stop()
	})
	scenario(t, "a profile of others with the name", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "weighted", weight, "5"))
		settle(t, a)
		set, _ := w.have(public, "A", "app")
		id := set.Properties.TargetResource.To()
		a.want = nil
		settle(t, a)
		w.Put(id, object{"location": "global", "tags": object{"team": "web"}, "properties": object{
			"trafficRoutingMethod": "Priority", "dnsConfig": object{"relativeName": id.Name(), "ttl": 60},
			"monitorConfig": object{"protocol": "TCP", "port": 80},
		}})
		before := w.profiles()
		a.want = []records.Endpoint{routed("a", "app", "20.0.0.1", "weighted", weight, "5")}
		want(t, "status", a.loop(), http.StatusNoContent)
		pass(time.Hour)
		want(t, "profiles", w.profiles(), before)
		_, there := w.have(public, "A", "app")
		want(t, "the record set", there, false)
		a.stop()
	})
	scenario(t, "Azure refuses the profile", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.fault(core.Fault{Method: "PUT", Type: records.ProfileType, Fault: "error", Status: 409, Code: "Conflict", Message: "Domain name exists."})
		a := w.join("a", nil, routed("a", "app", "20.0.0.1", "weighted", weight, "5"))
		want(t, "status", a.loop(), http.StatusNoContent)
		_, there := w.have(public, "A", "app")
		want(t, "the record set", there, false)
		want(t, "its claim", w.value(public, "TXT", "a-app"), "")
		w.fault()
		pass(2 * time.Hour)
		settle(t, a)
		want(t, "later", w.profiles(), "Weighted a=20.0.0.1*5")
		a.stop()
	})
}
