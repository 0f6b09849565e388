package disk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// kinds gives a driver cluster a machine of each kind, and a second one of the same kind, by the name of the kind.
func (w *driverCluster) kinds() map[string][2]string {
	w.t.Helper()
	w.PutScaleSet(testkit.Nodes, testkit.ScaleSet+"-", testkit.Uniform, 2)
	flexible := w.AddScaleSet("flex", testkit.Flexible, 2)
	set := w.AddAvailabilitySet("set")
	for _, name := range []string{"member0", "member1"} {
		w.nodes.of[name] = w.AddMachine(testkit.VirtualMachine{Name: name, AvailabilitySet: set})
	}
	for i, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		w.nodes.of[fmt.Sprintf("uniform%d", i)] = vm.ID
	}
	i := 0
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
		if of := vm.Properties.VirtualMachineScaleSet; of != nil && of.ID.Equal(flexible) {
			w.nodes.of[fmt.Sprintf("flexible%d", i)] = vm.ID
			i++
		}
	}
	w.Forget()
	return map[string][2]string{
		"instance of a Uniform scale set": {"uniform0", "uniform1"}, "instance of a Flexible scale set": {"flexible0", "flexible1"},
		"machine of an availability set": {"member0", "member1"}, "machine alone": {"a", "b"},
	}
}

// TestKindsOfMachines checks rows 79, 82 and 118 for machines of every kind: attach, list, move, detach, and a machine that
// is deleted.
func TestKindsOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 8})
		kinds := w.kinds()
		w.kubernetes()
		for kind, nodes := range kinds {
			v := w.volume(strings.ReplaceAll(kind, " ", "-"))
			from, to := nodes[0], nodes[1]
			for range 2 { // the second time it is there
				if lun, err := w.publish(w.Controller, v, from); err != nil || lun != "0" {
					t.Errorf("%s: LUN %q, %v", kind, lun, err)
				}
			}
			answer, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range answer.GetEntries() {
				if at := entry.GetStatus().GetPublishedNodeIds(); entry.GetVolume().GetVolumeId() == v && !slices.Equal(at, []string{from}) {
					t.Errorf("%s: published at %v, want %s", kind, at, from)
				}
			}
			if _, err := w.publish(w.Controller, v, to); err != nil { // no VolumeAttachment wants it at from
				t.Errorf("%s: move: %v", kind, err)
			}
			for range 2 {
				if err := w.unpublish(w.Controller, v, to); err != nil {
					t.Errorf("%s: detach: %v", kind, err)
				}
			}
			if _, err := w.publish(w.Controller, v, from); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if err := w.Client.Delete(t.Context(), w.nodes.of[from]); err != nil {
				t.Fatal(err)
			}
			if err := w.unpublish(w.Controller, v, from); err != nil {
				t.Errorf("%s: detach from a machine that is gone: %v", kind, err)
			}
			if _, err := w.publish(w.Controller, v, to); err != nil || len(w.attached(to)) != 1 {
				t.Errorf("%s: %v, %s has %v", kind, err, to, w.attached(to))
			}
		}
	})
}

// interleavings is the number of random schedules of TestBesideTheCloudControllerManager.
const interleavings = 200

// TestBesideTheCloudControllerManager checks that the disk driver and the cloud-controller-manager lose none of each other's
// changes. They write the same machine at the same time. The cloud-controller-manager writes the network profile of
// instances and the tags of machines.
func TestBesideTheCloudControllerManager(t *testing.T) {
	runs := interleavings
	if testing.Short() {
		runs /= 10
	}
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newDriverCluster(t, core.Options{Latency: 1, Seed: seed})
			w.kinds()
			w.Put(testkit.LoadBalancer, map[string]any{"location": testkit.Location, "sku": map[string]any{"name": "Standard"},
				"properties": map[string]any{
					"backendAddressPools": []any{map[string]any{"name": "pool"}},
					"frontendIPConfigurations": []any{map[string]any{"name": "f", "properties": map[string]any{
						"subnet": map[string]any{"id": testkit.VNet + "/subnets/nodes"},
					}}},
				}})
			other := w.controller()
			defer other.Close()
			node := []string{"uniform0", "a"}[seed%2]
			leaving, staying, coming, more := w.volume("leaving"), w.volume("staying"), w.volume("coming"), w.volume("more")
			for _, v := range []string{leaving, staying} {
				if _, err := w.publish(w.Controller, v, node); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			think := func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(random.IntN(20000)) * time.Millisecond
			}
			steps := []func() error{
				func() error { return w.unpublish(w.Controller, leaving, node) },
				func() error { _, err := w.publish(w.Controller, coming, node); return err },
				func() error { _, err := w.publish(other, more, node); return err },
				func() error { return w.writeLikeTheCloudControllerManager(node, think()) },
				func() error { return w.writeLikeTheCloudControllerManager(node, think()) },
			}
			together(steps, func(step func() error) error {
				<-time.After(think())
				err := step()
				for range 20 {
					if err == nil {
						return nil
					}
					<-time.After(time.Second)
					err = step()
				}
				t.Errorf("seed %d: %v", seed, err)
				return err
			})
			got := slices.Sorted(maps.Values(w.attached(node)))
			if want := []string{"coming", "more", "staying"}; !slices.Equal(got, want) {
				t.Errorf("seed %d: %s has %v, want %v", seed, node, got, want)
			}
			if !w.hasWriteOfCloudControllerManager(node) {
				t.Errorf("seed %d: the change of the cloud-controller-manager is lost", seed)
			}
		})
	}
}

const pool = testkit.LoadBalancer + "/backendAddressPools/pool"

// writeLikeTheCloudControllerManager adds the pool to an instance with the PUT of the plan of load balancers. The PUT has
// the same sections and the same condition. A virtual machine gets a tag by PATCH.
func (w *driverCluster) writeLikeTheCloudControllerManager(node string, think time.Duration) error {
	id := w.nodes.of[node]
	if id.Is(compute.VirtualMachines) {
		_, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Patch, ID: id, Body: azure.Document(`{"tags":{"k":"v"}}`)})
		return err
	}
	doc, err := w.Client.Fresh().Get(w.t.Context(), id)
	if err != nil {
		return err
	}
	have, err := azure.Decode[compute.Instance](doc)
	if err != nil {
		return err
	}
	<-time.After(think) // the decision is made on what was read a while ago
	profile := have.Properties.NetworkProfileConfiguration
	profile.NetworkInterfaceConfigurations[0].Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools =
		[]azure.Reference{{ID: pool}}
	body, _, err := azure.Overlay(doc, azure.Resource[compute.Instance]{
		ID: id, Properties: compute.Instance{NetworkProfileConfiguration: profile},
	})
	if err != nil {
		return err
	}
	var whole, sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return err
	}
	if err := json.Unmarshal(whole["properties"], &sent); err != nil {
		return err
	}
	for key := range sent {
		if key != "hardwareProfile" && key != "networkProfileConfiguration" {
			delete(sent, key)
		}
	}
	properties, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	if body, err = json.Marshal(map[string]json.RawMessage{"location": whole["location"], "properties": properties}); err != nil {
		return err
	}
	_, err = azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Put, ID: id, Body: body, IfMatch: doc.Etag()})
	return err
}

func (w *driverCluster) hasWriteOfCloudControllerManager(node string) bool {
	vm := testkit.Must[compute.Instance](w.Azure, w.nodes.of[node])
	if p := vm.Properties.NetworkProfileConfiguration; p != nil {
		pools := p.NetworkInterfaceConfigurations[0].Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools
		return len(pools) == 1 && pools[0].ID.Equal(pool)
	}
	return vm.Tags["k"] == "v"
}
