package probe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// instances is the fixture with a uniform scale set of two small machines.
const (
	instances    = "instances"
	scaleSetType = "Microsoft.Compute/virtualMachineScaleSets"
	instanceType = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
)

func scaleSetProbes() []Probe {
	const area = "scalesets"
	needs := []string{network, instances}
	return []Probe{
		{
			Name: "capacity-patch", Area: area, Minutes: 2, Needs: []string{network}, Rights: all(scaleSetType), Run: capacityPatch,
			Tries: "PATCH the capacity of an empty scale set with its ETag, and with an old one; want success, and 412",
		},
		{
			Name: "instance-disks", Area: area, Minutes: 3, Cents: 1, Needs: needs,
			Rights: append(all(diskType), instanceType+"/attachDetachDataDisks/action", instanceType+"/read"), Run: instanceDisks,
			Tries: "attach a disk to an instance with attachDetachDataDisks; want the answer that a virtual machine gives",
		},
		{
			Name: "deallocated-counted", Area: area, Minutes: 3, Cents: 1, Needs: needs, Run: deallocatedCounted,
			Rights: []string{instanceType + "/deallocate/action", instanceType + "/start/action"},
			Tries:  "deallocate an instance; want that the capacity counts it",
		},
		{
			Name: "instance-deleted", Area: area, Minutes: 3, Cents: 1, Needs: needs, Run: instanceDeleted,
			Rights: []string{instanceType + "/read", instanceType + "/write", instanceType + "/delete"},
			Tries:  "PUT a deleted instance, with an ETag and without; want InvalidParameter or InstanceIdsListInstanceIdNotActiveVM",
		},
	}
}

func scaleSetID(b *bench.Bench) azure.ID { return shared(b, scaleSetType, "set") }

// scaleSet is a uniform scale set.
func scaleSet(b *bench.Bench, capacity int) object {
	s := at(b, object{
		"orchestrationMode": "Uniform", "overprovision": false, "singlePlacementGroup": false,
		"upgradePolicy": object{"mode": "Manual"},
		"virtualMachineProfile": object{
			"storageProfile": object{"imageReference": image(), "osDisk": object{
				"createOption": "FromImage", "managedDisk": object{"storageAccountType": "Standard_LRS"},
			}},
			"osProfile": osProfile(object{"computerNamePrefix": "kazverify"}),
			"networkProfile": object{"networkInterfaceConfigurations": list{child("nic", object{
				"primary": true, "ipConfigurations": list{child("ip", object{"subnet": ref(subnet(b))})},
			})}},
		},
	})
	s["sku"] = object{"name": smallSize, "tier": "Standard", "capacity": capacity}
	return s
}

func makeInstances(ctx context.Context, b *bench.Bench) {
	const count = 2
	b.Make(ctx, scaleSetID(b), scaleSet(b, count))
}

// instance returns one of the instances of the fixture: the first or the last.
func instance(ctx context.Context, b *bench.Bench, last bool) azure.ID {
	all := b.List(ctx, scaleSetID(b), instanceType)
	if len(all) == 0 {
		b.Fail(fmt.Errorf("the scale set of the fixture has no instances"))
		return scaleSetID(b).Child("virtualMachines", "0")
	}
	if last {
		return all[len(all)-1].ID()
	}
	return all[0].ID()
}

func capacityPatch(ctx context.Context, b *bench.Bench) {
	id := b.ID(scaleSetType, "set")
	b.Make(ctx, id, scaleSet(b, 0))
	etag := b.Get(ctx, id).Etag()
	b.Agree(etag != "", "the GET of a scale set has an ETag: %t", etag != "")
	capacity := object{"sku": object{"capacity": 0}}
	a := b.Try(ctx, azure.Patch, id, object{"sku": object{"capacity": 0}, "tags": object{"step": "two"}}, bench.IfMatch(etag))
	b.Agree(!a.Failed, "PATCH with its ETag: %s", a)
	a = b.Try(ctx, azure.Patch, id, capacity, bench.IfMatch(etag))
	b.Agree(a.Refused(http.StatusPreconditionFailed), "PATCH with the ETag before that: %s", a)
}

func instanceDisks(ctx context.Context, b *bench.Bench) {
	id := disks(ctx, b, "a")[0]
	vm := instance(ctx, b, false)
	a := b.Act(ctx, vm, attachDetach, object{"dataDisksToAttach": list{attached(id, 0)}})
	b.Agree(a.Status == http.StatusOK && bench.Count(a.First, "dataDisks") == 1,
		"attachment to an instance: %s; dataDisks: %d of 1; Retry-After: %q",
		a, bench.Count(a.First, "dataDisks"), a.Header.Get("Retry-After"))
	b.Run(ctx, vm, attachDetach, object{"dataDisksToDetach": list{object{"diskId": string(id)}}})
	n := bench.Count(b.Get(ctx, vm), "properties.storageProfile.dataDisks")
	b.Agree(n == 0, "after the detachment the instance has %d of 0 disks", n)
}

func deallocatedCounted(ctx context.Context, b *bench.Bench) {
	before := bench.Text(b.Get(ctx, scaleSetID(b)), "sku.capacity")
	vm := instance(ctx, b, false)
	b.Run(ctx, vm, "deallocate", nil)
	after := bench.Text(b.Get(ctx, scaleSetID(b)), "sku.capacity")
	b.Agree(before == after, "the capacity is %s before an instance is deallocated, and %s then", before, after)
	b.Run(ctx, vm, "start", nil)
}

func instanceDeleted(ctx context.Context, b *bench.Bench) {
	id := instance(ctx, b, true)
	doc := b.Get(ctx, id)
	b.Remove(ctx, id)
	for _, options := range [][]bench.Option{nil, {bench.IfMatch(doc.Etag())}} {
		a := b.Try(ctx, azure.Put, id, doc, options...)
		gone := a.Refused(http.StatusBadRequest, "InvalidParameter") && strings.Contains(a.Message,
			"is not an active Virtual Machine Scale Set VM") ||
			a.Refused(http.StatusBadRequest, "InstanceIdsListInstanceIdNotActiveVM")
		b.Agree(gone, "PUT of a deleted instance, with an ETag: %t: %s", options != nil, a)
	}
}
