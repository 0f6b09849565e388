package wiring

import (
	"testing"

	"kaz/internal/azure"
)

// TestHold checks that the interface of a deleted machine stays while it is held, unless another one has its address.
func TestHold(t *testing.T) {
	const group azure.ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network"
	nic := func(address string) map[string]any {
		return map[string]any{"properties": map[string]any{"ipConfigurations": []any{map[string]any{
			"name": "ip", "properties": map[string]any{
				"privateIPAddress": address, "subnet": map[string]any{"id": string(group + "/virtualNetworks/v/subnets/n")},
			},
		}}}}
	}
	a, b := group+"/networkInterfaces/a", group+"/networkInterfaces/b"
	for name, c := range map[string]struct {
		held  bool
		later map[azure.ID]map[string]any
		stays bool
	}{
		"held":                              {true, nil, true},
		"not held":                          {false, nil, false},
		"another interface":                 {true, map[azure.ID]map[string]any{b: nic("10.0.0.5")}, true},
		"another interface has the address": {true, map[azure.ID]map[string]any{b: nic("10.0.0.4")}, false},
	} {
		docs := NewDocuments()
		docs.Hold(map[string]bool{a.Key(): c.held})
		for _, list := range []map[azure.ID]map[string]any{{a: nic("10.0.0.4")}, c.later} {
			problems := docs.Read(func(yield func(azure.ID, map[string]any) bool) {
				for id, doc := range list {
					if !yield(id, doc) {
						return
					}
				}
			})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
		}
		if _, is := docs.interfaces[a.Key()]; is != c.stays {
			t.Errorf("%s: stays %v, want %v", name, is, c.stays)
		}
		docs.Hold(nil)
		docs.Read(func(func(azure.ID, map[string]any) bool) {})
		if len(docs.interfaces) > 0 {
			t.Errorf("%s: left %v", name, docs.interfaces)
		}
	}
}
