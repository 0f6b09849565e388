package arm

import (
	"net/http"
	"testing"

	"kaz/internal/arm/types"
	"kaz/internal/azure"
)

// TestRecordSetsAreCountedByZone checks that a refusal of a record set stops the requests to the record sets of its zone alone.
func TestRecordSetsAreCountedByZone(t *testing.T) {
	endpoint, err := parseEndpoint("http://127.0.0.1")
	versions, wrong := newVersionTable(nil)
	if err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	b := builder{endpoint, versions, types.NewIndex()}
	zone := azure.GroupID("s", "g").Resource("Microsoft.Network/dnsZones", "example.com")
	for _, id := range []azure.ID{zone.Child("A", "www"), zone.Child("TXT", "@")} {
		c, err := b.resourceCall(http.MethodPut, id, "")
		if err != nil || c.subject.Parent != zone.Key() {
			t.Errorf("%s: counted in %q, %v", id, c.subject.Parent, err)
		}
	}
	c, err := b.listCall(azure.Query{Scope: zone, Type: "Microsoft.Network/dnsZones/recordsets"})
	if err != nil || c.subject.Parent != zone.Key() {
		t.Errorf("list: counted in %q, %v", c.subject.Parent, err)
	}
	c, err = b.resourceCall(http.MethodPut, zone, "")
	if err != nil || c.subject.Parent != "" {
		t.Errorf("zone: counted in %q, %v", c.subject.Parent, err)
	}
}
