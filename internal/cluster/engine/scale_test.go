package engine

import (
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/core"
)

// TestDoubtfulCapacity checks that no capacity is written while Azure reports fewer machines of a pool than it lists: the write
// would delete machines.
func TestDoubtfulCapacity(t *testing.T) {
	for name, capacity := range map[string]any{"0": 0, "absent": nil} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, core.Options{})
			p := example(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
			l.deploy(p)
			set := azure.ID(l.named("", "dev-general")[0])
			patch := azure.Request{Verb: azure.Patch, ID: set, Body: []byte(`{"sku":{"capacity":5}}`)}
			if _, err := azure.Do(t.Context(), l.client, patch); err != nil { // another program grows the pool
				t.Fatal(err)
			}
			wrong := core.Fault{Method: "GET", Type: record.ScaleSetType, Fault: core.FaultAnswer, Path: "sku.capacity", Value: capacity}
			if err := l.azure.SetFaults([]core.Fault{wrong}); err != nil {
				t.Fatal(err)
			}
			_, err := l.Deploy(t.Context(), p, l.save)
			if err == nil || !strings.Contains(err.Error(), "capacity") {
				t.Errorf("a deployment: %v, want an error that names the capacity", err)
			}
			if err := l.azure.SetFaults(nil); err != nil {
				t.Fatal(err)
			}
			machines, err := l.Instances(t.Context(), set)
			if err != nil || len(machines) != 5 {
				t.Errorf("%d machines, want 5; %v", len(machines), err)
			}
			if _, err := l.Deploy(t.Context(), p, l.save); err != nil {
				t.Errorf("a deployment when Azure reports the capacity again: %v", err)
			}
		})
	}
}
