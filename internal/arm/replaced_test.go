package arm_test

import (
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
)

// A cloud that ignores If-None-Match replaces what exists. The client notices this for documents that many write, and
// its caller reads again.
func TestAReplacedDocumentIsNoticed(t *testing.T) {
	for _, fullType := range []string{network.LoadBalancers, network.SecurityGroups, network.RouteTables} {
		l := newLocal(t, core.Options{})
		id := group.Resource(fullType, "shared")
		create := func() error {
			_, err := l.Put(t.Context(), azure.Write{ID: id, Body: []byte(`{"location":"eastus"}`), Create: true})
			return err
		}
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if err := create(); azure.KindOf(err) != azure.Changed {
			t.Errorf("%s: a header that Azure heeds: %v", fullType, err)
		}
		if err := l.azure.SetFaults([]core.Fault{{Method: "PUT", Fault: core.FaultUnconditional}}); err != nil {
			t.Fatal(err)
		}
		if err := create(); azure.KindOf(err) != azure.Changed {
			t.Errorf("%s: a header that Azure ignores: %v", fullType, err)
		}
	}
}
