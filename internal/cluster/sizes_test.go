package cluster

import (
	"strings"
	"testing"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
)

// TestSizesOfMachines checks what a template says about machines of a size: accelerated networking, the placement of an ephemeral OS disk
// and the type of the disk controller.
func TestSizesOfMachines(t *testing.T) {
	const (
		network, placement = `"enableAcceleratedNetworking": true`, `"placement": "`
		controller         = `"diskControllerType": "NVMe"`
	)
	for _, test := range []struct {
		size   string
		gib    int // of an ephemeral OS disk, 0 for none
		want   []string
		absent []string
	}{
		{"Standard_D2ds_v5", 50, []string{network, placement + `CacheDisk"`}, []string{controller}},
		{"Standard_D2ds_v5", 64, []string{network, placement + `ResourceDisk"`}, []string{controller}},
		{"Standard_D2ds_v6", 64, []string{network, placement + `NvmeDisk"`, controller}, nil},
		{"Standard_D4s_v5", 0, []string{network}, []string{placement, controller}},
		{"Standard_D4s_v7", 0, []string{controller, network}, []string{placement}},
		{"Standard_B2s", 0, nil, []string{network, placement, controller}},
		{"Standard_D4ds_v99", 64, []string{`"option": "Local"`}, []string{network, placement}},
	} {
		for _, backend := range []string{"VMSSUniform", "StandaloneVM"} {
			d := example(t, "dev.yaml")
			d.Cluster.Spec.ControlPlane.VMSize = "Standard_B2ms" // without any of it
			d.Pools = d.Pools[:1]
			pool := &d.Pools[0].Spec
			pool.VMSize, pool.Backend, pool.Replicas = test.size, backend, 1
			if test.gib > 0 {
				pool.OSDisk = definition.OSDisk{Ephemeral: true, SizeGiB: test.gib, Type: "Premium_LRS"}
			}
			text := string(emit.JSON(plan(t, d).Template(emit.Options{}).Main))
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s of %s: no %s", backend, test.size, want)
				}
			}
			for _, absent := range test.absent {
				if strings.Contains(text, absent) {
					t.Errorf("%s of %s: %s", backend, test.size, absent)
				}
			}
		}
	}
}
