package disk_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// claim is a request for the volume of a claim, as external-provisioner sends it.
func claim(volume, namespace, name string, parameters ...string) *csispec.CreateVolumeRequest {
	return request(volume, append(parameters, "csi.storage.k8s.io/pv/name", volume, "csi.storage.k8s.io/pvc/name", name,
		"csi.storage.k8s.io/pvc/namespace", namespace)...)
}

// TestDiskOfAnotherOwner checks that a name of a StorageClass gives no volume the disk of another owner, and that the disk stays
// as it is.
func TestDiskOfAnotherOwner(t *testing.T) {
	const name = "${pvc.metadata.name}"
	put := func(w *driverCluster, tags map[string]any) {
		w.putDisk(testkit.Group.Resource(compute.Disks, "data"), tags)
	}
	for what, c := range map[string]struct {
		given func(w *driverCluster)
		code  codes.Code
		want  string
	}{
		"the same volume again": {func(w *driverCluster) { w.made(claim("pvc-2", "blue", "data", "diskName", name)) }, codes.OK, ""},
		"a claim of another namespace": {func(w *driverCluster) { w.made(claim("pvc-1", "red", "data", "diskName", name)) }, codes.AlreadyExists,
			"create disk data: a disk of this name exists: it belongs to persistent volume pvc-1 of claim red/data, " +
				"not to persistent volume pvc-2 of claim blue/data"},
		"an earlier claim of the same name": {func(w *driverCluster) { w.made(claim("pvc-1", "blue", "data", "diskName", name)) },
			codes.AlreadyExists, "belongs to persistent volume pvc-1 of claim blue/data"},
		"a provisioner that names no claims": {func(w *driverCluster) { w.made(request("pvc-1", "diskName", "data")) }, codes.AlreadyExists,
			"belongs to persistent volume pvc-1, not to"},
		"a disk made by hand": {func(w *driverCluster) { put(w, nil) }, codes.AlreadyExists, "belongs to an owner that its tags do not name"},
		"the usual driver, the same volume": {func(w *driverCluster) {
			put(w, map[string]any{"k8s-azure-created-by": "kubernetes-azure-dd", "kubernetes.io-created-for-pv-name": "pvc-2",
				"kubernetes.io-created-for-pvc-name": "data", "kubernetes.io-created-for-pvc-namespace": "blue"})
		}, codes.OK, ""},
		"tags of another letter case": {func(w *driverCluster) { put(w, map[string]any{"Kubernetes.io-created-for-PV-name": "pvc-1"}) },
			codes.AlreadyExists, "belongs to persistent volume pvc-1"},
	} {
		w := newDriverCluster(t, core.Options{})
		c.given(w)
		id := testkit.Group.Resource(compute.Disks, "data")
		before := w.Snapshot()[string(id)]
		r := claim("pvc-2", "blue", "data", "diskName", name)
		if c.code != codes.OK { // a PUT would change the disk
			size(20*gib, 0)(r)
			r.Parameters["skuName"] = "Premium_LRS"
		}
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, what, err, c.code)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
		if after := w.Snapshot()[string(id)]; after != before {
			t.Errorf("%s: the disk was\n%s\nand is now\n%s", what, before, after)
		}
	}
}

// TestDiskWithoutTags checks that a disk with the name of the volume itself is the volume's, also if its tags are gone.
func TestDiskWithoutTags(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	made := w.volume("pvc-1")
	w.tag(made, "")
	if again := w.volume("pvc-1"); again != made {
		t.Errorf("%s became %s", made, again)
	}
}

// TestTwoCreationsOfOneName checks that one of two volumes gets the disk when both ask for its name at the same time, in one
// process and in two.
func TestTwoCreationsOfOneName(t *testing.T) {
	for _, processes := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) { twoCreations(t, processes) })
	}
}

func twoCreations(t *testing.T, processes int) {
	w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
	second := w.Controller
	if processes == 2 {
		second = w.controller()
		defer second.Close()
	}
	var errs [2]error
	var wait sync.WaitGroup
	for i, c := range []*disk.Controller{w.Controller, second} {
		wait.Go(func() {
			r := claim([]string{"pvc-1", "pvc-2"}[i], []string{"red", "blue"}[i], "data", "diskName", "data")
			_, errs[i] = c.CreateVolume(t.Context(), r)
		})
	}
	wait.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("%d processes: %v", processes, errs)
	}
}

// TestDeleteDiskOfAnotherVolume checks that a disk is not deleted with a persistent volume while another one has it, or if it
// was created for another one.
func TestDeleteDiskOfAnotherVolume(t *testing.T) {
	const foreign = "pvc-foreign"
	for what, c := range map[string]deletion{
		"its volume":                            {"pvc-1", map[string]bool{"pvc-1": true}, ""},
		"no volume, as after a failed creation": {"pvc-1", nil, ""},
		"a static volume without tags":          {"", map[string]bool{"static": true}, ""},
		"a static volume of a disk with tags":   {foreign, map[string]bool{"static": true}, "belongs to persistent volume " + foreign},
		"another volume in use":                 {"pvc-1", map[string]bool{"pvc-1": true, "other": false}, "persistent volume other has it, too"},
		"another volume that is deleted, too":   {"pvc-1", map[string]bool{"pvc-1": true, "other": true}, ""},
		"the watch shows the volume as bound":   {"pvc-1", map[string]bool{"pvc-1": false}, ""},
		"a letter case that a person wrote":     {"pvc-1", map[string]bool{"PVC-1 upper": true}, ""},
		"two volumes, none of them is the owner": {foreign, map[string]bool{"a": true, "b": true},
			"belongs to persistent volume " + foreign},
	} {
		synctest.Test(t, func(t *testing.T) { c.run(t, what) })
	}
}

// deletion is a deletion of a volume with the volume that the tag of its disk names, and the persistent volumes that have the
// disk: whether they are released. want is a part of the refusal.
type deletion struct {
	tag     string
	volumes map[string]bool
	want    string
}

func (c deletion) run(t *testing.T, what string) {
	t.Helper()
	w := newDriverCluster(t, core.Options{})
	k := w.kubernetes()
	v := w.volume("pvc-1")
	w.tag(v, c.tag)
	for name, released := range c.volumes {
		handle := v
		if before, upper := strings.CutSuffix(name, " upper"); upper {
			name, handle = strings.ToLower(before), strings.ToUpper(v)
		}
		o := pv(name, handle)
		o.Spec.PersistentVolumeReclaimPolicy, o.Status.Phase = corev1.PersistentVolumeReclaimDelete, corev1.VolumeBound
		if released {
			o.Status.Phase = corev1.VolumeReleased
		}
		k.add(o)
	}
	_, err := w.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: v})
	_, there := testkit.Read[compute.Disk](w.Azure, azure.ID(v))
	switch {
	case c.want == "" && (err != nil || there):
		t.Errorf("%s: %v", what, err)
	case c.want != "":
		wantCode(t, what, err, codes.FailedPrecondition)
		if !strings.Contains(fmt.Sprint(err), c.want) || !there {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// tag sets the tag of a disk that names its persistent volume, and removes all others.
func (w *driverCluster) tag(v, volume string) {
	w.t.Helper()
	tags := map[string]any{}
	if volume != "" {
		tags["kubernetes.io-created-for-pv-name"] = volume
	}
	w.putDisk(azure.ID(v), tags)
}

// putDisk creates or replaces a disk as other programs do.
func (w *driverCluster) putDisk(id azure.ID, tags map[string]any) {
	w.t.Helper()
	w.Put(id, map[string]any{"location": testkit.Location, "tags": tags,
		"sku": map[string]any{"name": "StandardSSD_LRS"}, "properties": map[string]any{"diskSizeGB": 10,
			"creationData": map[string]any{"createOption": "Empty"}}})
}

// made creates a volume.
func (w *driverCluster) made(r *csispec.CreateVolumeRequest) {
	w.t.Helper()
	if _, err := w.CreateVolume(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// TestSnapshotOfAnotherOwner checks that a snapshot of the same disk for another VolumeSnapshot is refused, and that a
// snapshot that no driver made is not deleted.
func TestSnapshotOfAnotherOwner(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("v")
	of := func(namespace string, more ...string) *csispec.CreateSnapshotRequest {
		return snapshotOf(v, "s", append(more, "csi.storage.k8s.io/volumesnapshot/name", "daily",
			"csi.storage.k8s.io/volumesnapshot/namespace", namespace)...)
	}
	for range 2 {
		if _, err := w.CreateSnapshot(t.Context(), of("red")); err != nil {
			t.Fatal(err)
		}
	}
	before := w.Snapshot()
	_, err := w.CreateSnapshot(t.Context(), of("blue", "tags", "a=b"))
	wantCode(t, "another owner", err, codes.AlreadyExists)
	if !maps.Equal(before, w.Snapshot()) {
		t.Error("the snapshot was changed")
	}
	byHand := testkit.Group.Resource(compute.Snapshots, "local_none")
	w.Put(byHand, map[string]any{"location": testkit.Location, "properties": map[string]any{
		"creationData": map[string]any{"createOption": "Copy", "sourceResourceId": v}}})
	none := string(testkit.Group.Resource(compute.Snapshots, "none"))
	if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: none}); err != nil {
		t.Error(err)
	}
	if _, there := testkit.Read[compute.Snapshot](w.Azure, byHand); !there {
		t.Error("a snapshot that a person made was deleted")
	}
}
