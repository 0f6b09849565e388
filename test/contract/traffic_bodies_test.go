package contract

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/trafficmanager/armtrafficmanager"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// TestRoutedNamesFitTheModels checks what kaz writes of Traffic Manager for each policy: new profiles and endpoints, and a profile that is
// replaced. Endpoints are not in the table of models, because their path has the kind as a variable, so the SDK's type must take them
// without loss.
func TestRoutedNamesFitTheModels(t *testing.T) {
	zone := records.Zone{ID: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com", Name: "example.com"}
	at := func(policy, property, value, probe string) records.Endpoint {
		return records.Endpoint{
			Name: policy + ".example.com", Type: "A", Targets: []string{"20.0.0.1"}, SetIdentifier: "west",
			ProviderSpecific: []records.Property{
				{Name: "webhook/policy", Value: policy}, {Name: "webhook/probe", Value: probe}, {Name: property, Value: value},
			},
		}
	}
	for _, c := range []struct{ policy, property, value string }{
		{"weighted", "webhook/weight", "5"}, {"priority", "webhook/priority", "1"}, {"performance", "webhook/location", "West Europe"},
		{"geo", "webhook/geo", "GEO-EU, US"},
	} {
		s := records.Snapshot{Zones: []records.Zone{zone}, Sets: map[records.Key]records.Set{}}
		o := records.Options{DefaultTTL: 300, Cluster: "west"}
		first := at(c.policy, c.property, c.value, "HTTPS:443/healthz")
		made := records.Decide(s, records.Changes{Create: []records.Endpoint{first}}, o).Hosts[0].Steps[0]
		writes := made.Before
		if len(writes) != 2 {
			t.Fatalf("%s: %v", c.policy, writes)
		}
		s.Sets[made.Key] = stored(t, zone, made)
		second := records.Decide(s, records.Changes{
			UpdateOld: []records.Endpoint{first}, UpdateNew: []records.Endpoint{at(c.policy, c.property, c.value, "TCP:80")},
		}, o).Hosts[0].Steps[0]
		for _, w := range append(writes, second.Before...) {
			var body map[string]any
			if err := json.Unmarshal(w.Body, &body); err != nil {
				t.Fatal(err)
			}
			if w.ID.Is(records.ProfileType) {
				judgeBody(t, "PUT", records.ProfileType, "", body)
				keeps[armtrafficmanager.Profile](t, w)
			} else {
				keeps[armtrafficmanager.Endpoint](t, w)
			}
		}
	}
}

// stored is a record set as Azure has it after a step.
func stored(t *testing.T, zone records.Zone, s records.Step) records.Set {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(s.Body, &body); err != nil {
		t.Fatal(err)
	}
	body["id"], body["name"], body["type"], body["etag"] = string(s.ID), s.Key.Name, "Microsoft.Network/dnszones/"+s.Key.Type, "1"
	doc, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	set, err := records.Read(zone, azure.Document(doc))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// keeps checks that a type of the SDK takes a body and gives all of it back.
func keeps[T any](t *testing.T, w records.Write) {
	t.Helper()
	var model T
	if err := json.Unmarshal(w.Body, &model); err != nil {
		t.Errorf("%v: %v", w, err)
		return
	}
	again, err := json.Marshal(model)
	var sent, back any
	if err := json.Unmarshal(w.Body, &sent); err != nil {
		t.Fatal(err)
	}
	if wrong := json.Unmarshal(again, &back); err != nil || wrong != nil || !reflect.DeepEqual(sent, back) {
		t.Errorf("%v: sent %s, the model has %s", w, w.Body, again)
	}
}
