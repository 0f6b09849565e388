package probe

import (
	"context"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

func diskProbes() []Probe {
	const area = "disks"
	copying := append(all(diskType, snapshotType), diskType+"/beginGetAccess/action", diskType+"/endGetAccess/action")
	return []Probe{
		{
			Name: "disk-preconditions", Area: area, Minutes: 1, Cents: 1, Rights: copying, Run: diskPreconditions,
			Tries: "PUT a disk and a snapshot that exist with If-None-Match: * and with a wrong If-Match; want that both change them",
		},
		{
			Name: "disk-written-back", Area: area, Minutes: 1, Cents: 1, Rights: all(diskType), Run: diskWrittenBack,
			Tries: "PUT a disk with the body of its GET; want success",
		},
		{
			Name: "disk-attach", Area: area, Minutes: 3, Cents: 1, Needs: []string{network, machine},
			Rights: append(all(diskType), machineType+"/attachDetachDataDisks/action"), Run: diskAttach,
			Tries: "attach two disks, then detach one while another is attached, with attachDetachDataDisks",
		},
		{
			Name: "disk-attached-twice", Area: area, Minutes: 2, Cents: 1, Needs: []string{network, machine},
			Rights: append(all(diskType), machineType+"/attachDetachDataDisks/action"), Run: diskAttachedTwice,
			Tries: "attach a disk at the LUN at which the machine has it; want success",
		},
		{
			Name: "disk-shared-access", Area: area, Minutes: 2, Cents: 1, Needs: []string{network, machine},
			Rights: append(copying, machineType+"/attachDetachDataDisks/action"), Run: diskSharedAccess,
			Tries: "attach a disk with an outstanding shared access; want OperationNotAllowed",
		},
		{
			Name: "lun-without-name", Area: area, Minutes: 2, Cents: 1, Needs: []string{network, machine},
			Rights: all(diskType, machineType), Run: lunWithoutName,
			Tries: "PATCH a machine twice with a data disk that has a LUN and neither name nor id; want that the first disk stays",
		},
	}
}

const snapshotType = "Microsoft.Compute/snapshots"

// disk is an empty disk of 4 GiB with a tag.
func disk(b *bench.Bench, tag string) object {
	d := sku("Standard_LRS", at(b, object{"diskSizeGB": 4, "creationData": object{"createOption": "Empty"}}))
	d["tags"] = object{"step": tag}
	return d
}

func diskPreconditions(ctx context.Context, b *bench.Bench) {
	source := b.ID(diskType, "disk")
	b.Make(ctx, source, disk(b, "one"))
	bodies := map[azure.ID]func(tag string) object{
		source: func(tag string) object { return disk(b, tag) },
		b.ID(snapshotType, "snapshot"): func(tag string) object {
			s := at(b, object{"incremental": true, "creationData": object{"createOption": "Copy", "sourceResourceId": string(source)}})
			s["tags"] = object{"step": tag}
			return s
		},
	}
	for _, id := range []azure.ID{source, b.ID(snapshotType, "snapshot")} {
		b.Make(ctx, id, bodies[id]("one"))
		a := b.Try(ctx, azure.Put, id, bodies[id]("two"), bench.IfNew())
		changed := bench.Text(b.Get(ctx, id), "tags.step") == "two"
		b.Agree(!a.Failed && changed, "PUT of %s that exists with If-None-Match: *: %s; changed: %t", kind(id), a, changed)
		a = b.Try(ctx, azure.Put, id, bodies[id]("three"), bench.IfMatch(`"wrong"`))
		changed = bench.Text(b.Get(ctx, id), "tags.step") == "three"
		b.Agree(!a.Failed && changed, `PUT of %s with If-Match: "wrong": %s; changed: %t`, kind(id), a, changed)
	}
}

// writtenBack writes what a GET has.
func writtenBack(ctx context.Context, b *bench.Bench, id azure.ID) {
	a := b.Try(ctx, azure.Put, id, b.Get(ctx, id))
	b.Agree(!a.Failed, "PUT of %s with the body of its GET: %s", kind(id), a)
}

func diskWrittenBack(ctx context.Context, b *bench.Bench) {
	id := b.ID(diskType, "disk")
	b.Make(ctx, id, disk(b, "one"))
	writtenBack(ctx, b, id)
}

// disks makes empty disks.
func disks(ctx context.Context, b *bench.Bench, names ...string) []azure.ID {
	var all []azure.ID
	for _, name := range names {
		all = append(all, b.ID(diskType, name))
		b.Make(ctx, b.ID(diskType, name), disk(b, "one"))
	}
	return all
}

func attached(id azure.ID, lun int) object { return object{"diskId": string(id), "lun": lun} }

// detach detaches disks at the end of a probe, so that the next one finds the machine without disks.
func detach(ctx context.Context, b *bench.Bench, ids ...azure.ID) {
	var leaving list
	for _, id := range ids {
		leaving = append(leaving, object{"diskId": string(id)})
	}
	b.Run(ctx, machineID(b), attachDetach, object{"dataDisksToDetach": leaving})
}

const attachDetach = "attachDetachDataDisks"

func diskAttach(ctx context.Context, b *bench.Bench) {
	ids := disks(ctx, b, "a", "b", "c")
	vm := machineID(b)
	a := b.Act(ctx, vm, attachDetach, object{"dataDisksToAttach": list{attached(ids[0], 0), attached(ids[1], 1)}})
	b.Agree(a.Status == http.StatusOK, "attachment of two disks: %s", a)
	n := bench.Count(a.First, "dataDisks")
	b.Agree(n == 2, "the first answer has %d of 2 disks in dataDisks", n)
	polled := a.Header.Get("Azure-Asyncoperation") != ""
	located := a.Header.Get("Location") != ""
	b.Agree(polled && !located, "it has Azure-AsyncOperation: %t; it has Location: %t; Retry-After: %q", polled, located,
		a.Header.Get("Retry-After"))
	a = b.Act(ctx, vm, attachDetach, object{
		"dataDisksToDetach": list{object{"diskId": string(ids[0])}}, "dataDisksToAttach": list{attached(ids[2], 2)},
	})
	b.Agree(!a.Failed, "detachment and attachment in one request: %s", a)
	marked := strings.Contains(string(a.First), `"toBeDetached":true`) || strings.Contains(string(a.First), `"toBeDetached": true`)
	b.Agree(marked, "the first answer marks the leaving disk: %t", marked)
	n = bench.Count(b.Get(ctx, vm), "properties.storageProfile.dataDisks")
	b.Agree(n == 2, "after it the machine has %d of 2 disks", n)
	detach(ctx, b, ids[1], ids[2])
}

func diskAttachedTwice(ctx context.Context, b *bench.Bench) {
	id := disks(ctx, b, "a")[0]
	b.Run(ctx, machineID(b), attachDetach, object{"dataDisksToAttach": list{attached(id, 0)}})
	a := b.Act(ctx, machineID(b), attachDetach, object{"dataDisksToAttach": list{attached(id, 0)}})
	b.Agree(!a.Failed, "attachment of a disk that is attached at the same LUN: %s", a)
	detach(ctx, b, id)
}

func diskSharedAccess(ctx context.Context, b *bench.Bench) {
	id := disks(ctx, b, "a")[0]
	b.Run(ctx, id, "beginGetAccess", object{"access": "Read", "durationInSeconds": 600})
	a := b.Act(ctx, machineID(b), attachDetach, object{"dataDisksToAttach": list{attached(id, 0)}})
	ok := a.Failed && a.Code == "OperationNotAllowed" && strings.Contains(a.Message, "active shared access signature outstanding")
	b.Agree(ok, "attachment of a disk with an outstanding shared access: %s", a)
	b.Run(ctx, id, "endGetAccess", nil)
}

func lunWithoutName(ctx context.Context, b *bench.Bench) {
	const at = "properties.storageProfile.dataDisks.0.managedDisk.id"
	vm := machineID(b)
	body := object{"properties": object{"storageProfile": object{
		"dataDisks": list{object{"lun": 3, "createOption": "Empty", "diskSizeGB": 4, "deleteOption": "Delete"}},
	}}}
	b.Change(ctx, vm, body)
	first := azure.ID(bench.Text(b.Get(ctx, vm), at))
	a := b.Try(ctx, azure.Patch, vm, body)
	second := azure.ID(bench.Text(b.Get(ctx, vm), at))
	same := first != "" && first.Equal(second)
	b.Agree(!a.Failed && same, "PATCH of a machine with an entry of a LUN alone, again: %s; the LUN has the same disk: %t", a, same)
	b.Change(ctx, vm, object{"properties": object{"storageProfile": object{"dataDisks": list{}}}})
}
