package records_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// A world of a few hosts, in which ExternalDNS owns some records and others own the rest.
var (
	zone   = records.Zone{ID: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com", Name: "example.com"}
	corner = records.Zone{
		ID: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/in.example.com", Name: "in.example.com", Private: true,
	}
)

// azureWorld is Azure as a map of documents, with etags. It refuses what Azure refuses.
type azureWorld struct {
	docs map[records.Key]records.Set
	etag int
}

func (a *azureWorld) snapshot() records.Snapshot {
	return records.Snapshot{Zones: []records.Zone{zone, corner}, Sets: maps.Clone(a.docs)}
}

// put stores a document as Azure does.
func (a *azureWorld) put(z records.Zone, key records.Key, body azure.Document) error {
	var d map[string]any
	if err := json.Unmarshal(body, &d); err != nil {
		return err
	}
	a.etag++
	d["id"], d["name"], d["etag"] = string(z.ID)+"/"+key.Type+"/"+key.Name, key.Name, fmt.Sprint(a.etag)
	d["type"] = "Microsoft.Network/dnszones/" + key.Type
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	s, err := records.Read(z, text)
	if err != nil {
		return err
	}
	for other := range a.docs {
		if other.Zone == key.Zone && other.Name == key.Name && other.Type != key.Type && (other.Type == "CNAME" || key.Type == "CNAME") {
			return fmt.Errorf("%v cannot stand beside %v", key, other)
		}
	}
	a.docs[key] = s
	return nil
}

// write carries out a step.
func (a *azureWorld) write(s records.Step) error {
	have, ok := a.docs[s.Key]
	if s.Create == ok || ok && have.Etag != s.IfMatch {
		return fmt.Errorf("%v: precondition", s)
	}
	if s.Verb == azure.Delete {
		delete(a.docs, s.Key)
		return nil
	}
	return a.put(s.Zone, s.Key, s.Body)
}

var hosts = []string{"a.example.com", "b.example.com", "*.c.example.com", "example.com", "a.in.example.com", "x.y.example.com"}

// drawEndpoint draws a record that Azure can have.
func drawEndpoint(t *rapid.T, name string) records.Endpoint {
	e := records.Endpoint{Name: name, TTL: int64(rapid.SampledFrom([]int{0, 60, 300}).Draw(t, "ttl"))}
	e.Type = rapid.SampledFrom([]string{"A", "AAAA", "CNAME", "TXT", "MX", "SRV", "PTR"}).Draw(t, "type")
	if e.Type == "CNAME" && (name == "example.com") {
		e.Type = "A"
	}
	n := rapid.IntRange(1, 3).Draw(t, "targets")
	for i := range n {
		e.Targets = append(e.Targets, map[string]string{
			"A": fmt.Sprintf("1.1.1.%d", i), "AAAA": fmt.Sprintf("2001:db8::%d", i+1), "CNAME": "lb.example.net", "TXT": fmt.Sprintf("text %d", i),
			"MX": fmt.Sprintf("%d mail.example.net", i), "SRV": fmt.Sprintf("1 2 %d sip.example.net", i), "PTR": fmt.Sprintf("h%d.example.net", i),
		}[e.Type])
		if e.Type == "CNAME" {
			break
		}
	}
	if rapid.Bool().Draw(t, "metadata") {
		e.ProviderSpecific = []records.Property{{Name: "azure/tags", Value: "b=2,a=1"}}
	}
	adjusted, _ := records.Adjust([]records.Zone{zone, corner}, []records.Endpoint{e}, "")
	if len(adjusted) != 1 {
		t.Fatalf("%v is not admitted", e)
	}
	return adjusted[0]
}

// drawSets draws the records of all hosts: of each host a CNAME alone, or records of other types.
func drawSets(t *rapid.T) map[string]records.Endpoint {
	all := map[string]records.Endpoint{}
	for _, name := range hosts {
		for range rapid.IntRange(0, 2).Draw(t, "records") {
			e := drawEndpoint(t, name)
			lone := slices.ContainsFunc(slices.Collect(maps.Values(all)), func(o records.Endpoint) bool {
				return o.Name == name && (o.Type == "CNAME" || e.Type == "CNAME")
			})
			if !lone {
				all[name+" "+e.Type] = e
			}
		}
	}
	return all
}

// fill has Azure have the records, each with the TXT record that owns it if ExternalDNS made it.
func fill(t *rapid.T, a *azureWorld, sets map[string]records.Endpoint, ours bool) {
	var c records.Changes
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		c.Create = append(c.Create, sets[key])
		if ours {
			c.Create = append(c.Create, registry(sets[key]))
		}
	}
	p := records.Decide(a.snapshot(), c, records.Options{DefaultTTL: 300})
	for _, h := range p.Hosts {
		for _, s := range h.Steps {
			if err := a.write(s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func registry(e records.Endpoint) records.Endpoint {
	return records.Endpoint{
		Name: "_edns-" + strings.ToLower(e.Type) + "." + strings.ReplaceAll(e.Name, "*", "any"), Type: "TXT",
		Targets: []string{`"heritage=external-dns,external-dns/owner=me,external-dns/resource=x"`}, Labels: map[string]string{"ownedRecord": e.Name},
	}
}

// toward returns the changes from the records that ExternalDNS has to those that it wants.
func toward(have, sets map[string]records.Endpoint) (c records.Changes) {
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, stays := sets[key]; !stays {
			c.Delete = append(c.Delete, have[key], registry(have[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if old, ok := have[key]; ok {
			c.UpdateOld, c.UpdateNew = append(c.UpdateOld, old, registry(old)), append(c.UpdateNew, sets[key], registry(sets[key]))
		} else {
			c.Create = append(c.Create, sets[key], registry(sets[key]))
		}
	}
	return c
}

// names returns the hosts that resolve.
func (a *azureWorld) names() map[string]bool {
	all := map[string]bool{}
	for _, s := range a.docs {
		if e, ok := s.Endpoint(); ok {
			all[e.Name] = true
		}
	}
	return all
}

// TestDecideReachesWhatIsWanted checks that a plan is accepted by Azure and reaches what is wanted, that a second plan is empty, and that a
// name that was there and stays never disappears for longer than the writes that replace a CNAME.
func TestDecideReachesWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &azureWorld{docs: map[records.Key]records.Set{}}
		have, sets := drawSets(t), drawSets(t)
		fill(t, a, have, true)
		changes := toward(have, sets)
		p := records.Decide(a.snapshot(), changes, records.Options{DefaultTTL: 300})
		if len(p.Problems) > 0 {
			t.Fatalf("%v", p.Problems)
		}
		before := a.names()
		for _, h := range p.Hosts {
			room := false
			for _, s := range h.Steps {
				if err := a.write(s); err != nil {
					t.Fatal(err)
				}
				room = s.Restore != nil
				for _, e := range sets {
					if before[e.Name] && !a.names()[e.Name] && !room {
						t.Fatalf("%s is gone after %v", e.Name, s)
					}
				}
			}
			if room {
				t.Fatalf("%v: what made room is not followed by what needs it", h.Steps)
			}
		}
		for key, e := range sets {
			found := slices.ContainsFunc(a.snapshot().Endpoints(""), func(o records.Endpoint) bool {
				return o.Name == e.Name && o.Type == e.Type && slices.Equal(slices.Sorted(slices.Values(o.Targets)), slices.Sorted(slices.Values(e.Targets))) &&
					slices.Equal(o.ProviderSpecific, e.ProviderSpecific) && (e.TTL == 0 && o.TTL == 300 || o.TTL == e.TTL)
			})
			if !found {
				t.Fatalf("%s: %v is not in %v", key, e, a.snapshot().Endpoints(""))
			}
		}
		if len(a.docs) != 2*len(sets) {
			t.Fatalf("%d record sets for %d records", len(a.docs), len(sets))
		}
		if again := records.Decide(a.snapshot(), changes, records.Options{DefaultTTL: 300}); len(again.Hosts) > 0 {
			t.Fatalf("a second plan: %v", again.Hosts)
		}
	})
}

// TestDecideTouchesNothingForeign checks that record sets which ExternalDNS did not see stay byte for byte, whatever it wants.
func TestDecideTouchesNothingForeign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &azureWorld{docs: map[records.Key]records.Set{}}
		fill(t, a, drawSets(t), false)
		foreign := maps.Clone(a.docs)
		believed, sets := drawSets(t), drawSets(t) // what ExternalDNS believes need not be true
		for key, e := range believed {
			e.Targets = []string{map[string]string{
				"A": "9.9.9.9", "AAAA": "2001:db8::9", "CNAME": "other.example.net", "TXT": "other", "MX": "9 other.example.net",
				"SRV": "9 9 9 other.example.net", "PTR": "other.example.net",
			}[e.Type]}
			believed[key] = e
		}
		p := records.Decide(a.snapshot(), toward(believed, sets), records.Options{DefaultTTL: 300})
		for _, h := range p.Hosts {
			for _, s := range h.Steps {
				if err := a.write(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		for key, s := range foreign {
			if string(a.docs[key].Doc) != string(s.Doc) {
				t.Fatalf("%v: %s became %s", key, s.Doc, a.docs[key].Doc)
			}
		}
	})
}

// TestAdjustIsIdempotent checks that adjusted endpoints adjust to themselves, whatever ExternalDNS sends.
func TestAdjustIsIdempotent(t *testing.T) {
	zones := []records.Zone{zone, corner}
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"1.1.1.1", "2001:DB8:0::1", "lb.example.net.", "10 mail.example.net.", `0 issue "ca"`}))
	rapid.Check(t, func(t *rapid.T) {
		e := records.Endpoint{
			Name:    rapid.OneOf(rapid.SampledFrom(hosts), rapid.String()).Draw(t, "name"),
			Type:    rapid.SampledFrom([]string{"A", "AAAA", "CNAME", "TXT", "MX", "SRV", "PTR", "NS", "CAA", "NAPTR"}).Draw(t, "type"),
			Targets: rapid.SliceOfN(text, 0, 25).Draw(t, "targets"), TTL: rapid.Int64().Draw(t, "ttl"),
			ProviderSpecific: []records.Property{
				{Name: rapid.SampledFrom([]string{"azure/tags", "aws/weight", "webhook/azure-alias"}).Draw(t, "property"), Value: rapid.String().Draw(t, "value")},
			},
		}
		once, _ := records.Adjust(zones, []records.Endpoint{e}, "")
		twice, problems := records.Adjust(zones, once, "")
		if fmt.Sprint(once) != fmt.Sprint(twice) || len(problems) > 0 {
			t.Fatalf("%+v, then %+v, %v", once, twice, problems)
		}
	})
}
