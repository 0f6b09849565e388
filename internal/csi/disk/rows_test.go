package disk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestObjectsOfTheOtherDriver checks that the driver serves the persistent volumes, VolumeAttachments and snapshots of the
// driver that it replaces. Volumes of this driver look the same to the other driver.
func TestObjectsOfTheOtherDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		v := w.direct("pvc-1")
		lower := strings.ToLower(v) // it sends ids of disks in lower case
		if _, err := w.Client.Post(t.Context(), w.nodes.of["a"], "attachDetachDataDisks",
			azure.Document(`{"dataDisksToAttach":[{"diskId":"`+lower+`","lun":1,"caching":"ReadOnly"}]}`)); err != nil {
			t.Fatal(err)
		}
		k := w.kubernetes(pv("pvc-1", v))
		there := attachment(v, "pvc-1", "a")
		there.Status.AttachmentMetadata["LUN"] = "1"
		k.add(there)
		published := func(volume, node string, context map[string]string) map[string]string {
			t.Helper()
			answer, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
				VolumeId: volume, NodeId: node, VolumeCapability: writer(), VolumeContext: context,
			})
			if err != nil {
				t.Error(err)
			}
			return answer.GetPublishContext()
		}
		theirs := map[string]string{"requestedsizegib": "10", "skuName": "StandardSSD_LRS", "csi.storage.k8s.io/pv/name": "pvc-1",
			"csi.storage.k8s.io/pvc/name": "data", "storage.kubernetes.io/csiProvisionerIdentity": "1-2-disk.csi.azure.com"}
		w.Forget()
		for _, handle := range []string{v, lower} {
			if got := published(handle, "a", theirs)["LUN"]; got != "1" || len(w.Writes()) > 0 {
				t.Errorf("an attached disk: LUN %q, writes %v", got, w.Writes())
			}
		}
		// A volume of the in-tree driver, as Kubernetes translates it.
		inTree := map[string]string{"kind": "Managed", "cachingMode": "ReadWrite", "fsType": ""}
		if got := published(w.direct("in-tree"), "b", inTree); got["LUN"] != "0" || got["skuname"] != "StandardSSD_LRS" {
			t.Errorf("an in-tree volume: %v", got)
		}
		if err := w.unpublish(w.Controller, v, "a"); err != nil || len(w.attached("a")) > 0 {
			t.Errorf("detach: %v, a has %v", err, w.attached("a"))
		}
		snapshot := testkit.Group.Resource(compute.Snapshots, "snapshot-1")
		w.Put(snapshot, map[string]any{"location": testkit.Location, "tags": map[string]string{
			"k8s-azure-created-by": "kubernetes-azure-dd", "source_volume_id": v,
		}, "properties": map[string]any{
			"incremental": true, "creationData": map[string]any{"createOption": "Copy", "sourceResourceId": v},
		}})
		again, err := w.CreateSnapshot(t.Context(), snapshotOf(v, "snapshot-1"))
		if err != nil || again.GetSnapshot().GetSnapshotId() != string(snapshot) {
			t.Errorf("its snapshot: %v, %v", again, err)
		}
		for _, handle := range []string{string(snapshot), "snapshot-1"} {
			r := request("restored-" + fmt.Sprint(len(handle)))
			r.VolumeContentSource = fromSnapshot(handle)
			if _, err := w.CreateVolume(t.Context(), r); err != nil {
				t.Errorf("restore %s: %v", handle, err)
			}
		}
		made, err := w.CreateVolume(t.Context(), request("pvc-2", "skuName", "StandardSSD_LRS", "kind", "managed"))
		if got := made.GetVolume(); err != nil || got.GetVolumeContext()["requestedsizegib"] != "10" ||
			got.GetVolumeContext()["kind"] != "Managed" || got.GetVolumeContext()["skuName"] != "StandardSSD_LRS" {
			t.Errorf("a volume of this driver: %v, %v", made, err)
		}
	})
}

// TestMoreDisks checks rows 16, 52, 54 and 60: documents and answers that depend on more than one parameter.
func TestMoreDisks(t *testing.T) {
	const second = "00000000-0000-0000-0000-0000000000a2"
	w := newDriverCluster(t, core.Options{Subscriptions: []core.Subscription{{ID: second, Tenant: core.DefaultTenant}}})
	w.Put("/subscriptions/"+second+"/resourceGroups/other", map[string]any{"location": testkit.Location})
	made := func(row string, r *csispec.CreateVolumeRequest) (*csispec.Volume, azure.Resource[compute.Disk]) {
		t.Helper()
		answer, err := w.CreateVolume(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		return answer.GetVolume(), w.disk(answer.GetVolume().GetVolumeId())
	}
	v, d := made("16", request("v16", "skuName", "PremiumV2_LRS"))
	if got := v.GetVolumeContext()["cachingmode"]; got != "None" || d.SKU.Name != "PremiumV2_LRS" {
		t.Errorf("16: cachingmode %q, %s", got, summary(d))
	}
	far := request("v52", "location", "westus2")
	zones("westus2-1")(far)
	if v, d = made("52", far); d.Location != "westus2" || !slices.Equal(d.Zones, []string{"1"}) ||
		v.GetAccessibleTopology()[0].GetSegments()["topology.disk.csi.azure.com/zone"] != "westus2-1" {
		t.Errorf("52: %s %v, %v", d.Location, d.Zones, v.GetAccessibleTopology())
	}
	if _, d = made("54", request("v54", "subscriptionID", second, "resourceGroup", "other")); d.ID.Subscription() != second {
		t.Errorf("54: %s", d.ID)
	}
	if v, d = made("60", request("v60", "writeAcceleratorEnabled", "true")); d.Tags["writeacceleratorenabled"] != "true" {
		t.Errorf("60: tags %v", d.Tags)
	}
	to := &interposed{Azure: fresh{w.Client.Fresh(), w.Client}}
	c := w.over(to)
	defer c.Close()
	for i, context := range []map[string]string{v.GetVolumeContext(), {}} {
		node := []string{"a", "b"}[i]
		if _, err := c.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: v.GetVolumeId(), NodeId: node, VolumeCapability: writer(), VolumeContext: context,
		}); err != nil || !strings.Contains(string(to.sent[len(to.sent)-1].Body), `"writeAcceleratorEnabled":true`) {
			t.Errorf("60: attached with %s, %v", to.sent[len(to.sent)-1].Body, err)
		}
		if err := w.unpublish(c, v.GetVolumeId(), node); err != nil {
			t.Error(err)
		}
	}
}

// TestHostCaching checks row 104: a large disk has no host cache, whether its context describes it or it is read.
func TestHostCaching(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	big := request("big", "cachingMode", "ReadOnly")
	size(4096*gib, 0)(big)
	answer, err := w.CreateVolume(t.Context(), big)
	if err != nil {
		t.Fatal(err)
	}
	to := &interposed{Azure: fresh{w.Client.Fresh(), w.Client}}
	c := w.over(to)
	defer c.Close()
	for i, volume := range []*csispec.Volume{answer.GetVolume(), {VolumeId: answer.GetVolume().GetVolumeId()}} {
		if _, err := c.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: volume.GetVolumeId(), NodeId: "a", VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(),
		}); err != nil {
			t.Errorf("104: %v", err)
		}
		if got := string(to.sent[len(to.sent)-1].Body); !strings.Contains(got, `"caching":"None"`) {
			t.Errorf("104, %d: attached with %s", i, got)
		}
		if err := w.unpublish(c, volume.GetVolumeId(), "a"); err != nil {
			t.Error(err)
		}
	}
}

// TestSharedDisk checks rows 73 and 103: a disk for two machines, and a third one.
func TestSharedDisk(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	r := request("v", "maxShares", "2", "skuName", "Premium_LRS")
	r.VolumeCapabilities = []*csispec.VolumeCapability{many(true)}
	size(256*gib, 0)(r)
	answer, err := w.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	v := answer.GetVolume()
	for node, want := range map[string]codes.Code{"a": codes.OK, "b": codes.OK} {
		_, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: v.GetVolumeId(), NodeId: node, VolumeCapability: many(true), VolumeContext: v.GetVolumeContext(),
		})
		wantCode(t, "103 "+node, err, want)
	}
	_, err = w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: v.GetVolumeId(), NodeId: "c", VolumeCapability: many(true), VolumeContext: v.GetVolumeContext(),
	})
	wantCode(t, "103 c", err, codes.FailedPrecondition)
	list, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{})
	if err != nil || len(list.GetEntries()) != 1 {
		t.Fatal(list, err)
	}
	nodes := list.GetEntries()[0].GetStatus().GetPublishedNodeIds()
	if slices.Sort(nodes); !slices.Equal(nodes, []string{"a", "b"}) {
		t.Errorf("73: published at %v", nodes)
	}
}

// TestValidateCapabilities checks rows 68 and 69: a mode that a volume cannot have is not confirmed, and the answer says why.
func TestValidateCapabilities(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	validate := func(volume string, capabilities ...*csispec.VolumeCapability) (*csispec.ValidateVolumeCapabilitiesResponse, error) {
		return w.ValidateVolumeCapabilities(t.Context(), &csispec.ValidateVolumeCapabilitiesRequest{
			VolumeId: volume, VolumeCapabilities: capabilities,
		})
	}
	_, err := validate(string(testkit.Group)+"/providers/Microsoft.Compute/disks/none", writer())
	wantCode(t, "68", err, codes.NotFound)
	v := w.volume("v")
	if answer, err := validate(v, writer()); err != nil || len(answer.GetConfirmed().GetVolumeCapabilities()) != 1 || answer.GetMessage() != "" {
		t.Errorf("a mode that the volume can have: %v, %v", answer, err)
	}
	unknown := writer()
	unknown.AccessMode.Mode = csispec.VolumeCapability_AccessMode_UNKNOWN
	for message, wrong := range map[string]*csispec.VolumeCapability{
		"use volumeMode Block": many(false), "maxShares of 2 or more": many(true), "UNKNOWN": unknown,
	} {
		for _, capabilities := range [][]*csispec.VolumeCapability{{wrong}, {writer(), wrong}} {
			answer, err := validate(v, capabilities...)
			if err != nil || answer.GetConfirmed() != nil || !strings.Contains(answer.GetMessage(), message) {
				t.Errorf("69: %v, %v, want a message with %q", answer, err, message)
			}
		}
	}
}

// TestListVolumes checks rows 71, 72 and 74.
func TestListVolumes(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	var volumes []string
	for i := range 5 {
		volumes = append(volumes, w.volume(fmt.Sprintf("v%d", i)))
	}
	if _, err := w.publish(w.Controller, volumes[0], "a"); err != nil {
		t.Fatal(err)
	}
	delete(w.nodes.of, "a") // row 74: a machine that is no node
	var pages []int
	token := ""
	for range 10 {
		answer, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range answer.GetEntries() {
			if at := entry.GetStatus().GetPublishedNodeIds(); len(at) > 0 {
				t.Errorf("74: %v", entry)
			}
		}
		pages = append(pages, len(answer.GetEntries()))
		if token = answer.GetNextToken(); token == "" {
			break
		}
	}
	if !slices.Equal(pages, []int{2, 2, 1}) {
		t.Errorf("72: pages %v", pages)
	}
	for _, token := range []string{"6", "-1", "x"} {
		_, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{StartingToken: token})
		wantCode(t, "71 "+token, err, codes.Aborted)
	}
}

// TestChangeVolume checks rows 122 to 124, 127 and 129 to 131: a disk that grows or gets another performance.
func TestChangeVolume(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	offline := disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: fresh{w.Client.Fresh(), w.Client}, Nodes: &w.nodes, Cluster: cluster(),
	})
	defer offline.Close()
	expand := func(c *disk.Controller, volume string, required int64) (int64, error) {
		answer, err := c.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
			VolumeId: volume, CapacityRange: &csispec.CapacityRange{RequiredBytes: required},
		})
		if err == nil && !answer.GetNodeExpansionRequired() {
			t.Error("the node need not expand")
		}
		return answer.GetCapacityBytes(), err
	}
	modify := func(volume string, parameters ...string) error {
		_, err := w.ControllerModifyVolume(t.Context(), &csispec.ControllerModifyVolumeRequest{
			VolumeId: volume, MutableParameters: map[string]string{parameters[0]: parameters[1]},
		})
		return err
	}
	_, err := expand(w.Controller, string(testkit.Group)+"/providers/Microsoft.Compute/disks/none", 20*gib)
	wantCode(t, "122", err, codes.NotFound)
	v := w.volume("v", "skuName", "Premium_LRS")
	w.Forget()
	for _, required := range []int64{gib, 10 * gib} {
		if got, err := expand(w.Controller, v, required); err != nil || got != 10*gib || len(w.Writes()) > 0 {
			t.Errorf("123: %d bytes, %v, writes %v", got, err, w.Writes())
		}
	}
	if _, err := w.publish(w.Controller, v, "a"); err != nil {
		t.Fatal(err)
	}
	_, err = expand(offline, v, 20*gib)
	wantCode(t, "124", err, codes.FailedPrecondition)
	if got, err := expand(w.Controller, v, 20*gib); err != nil || got != 20*gib {
		t.Errorf("expand: %d, %v", got, err)
	}
	big := w.volume("big", "skuName", "Premium_LRS", "cachingMode", "ReadOnly")
	if _, err := expand(w.Controller, big, 3<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := w.publish(w.Controller, big, "a"); err != nil {
		t.Fatal(err)
	}
	_, err = expand(w.Controller, big, 5<<40)
	wantCode(t, "125", err, codes.FailedPrecondition)
	if err == nil || !strings.Contains(err.Error(), "delete the pods") {
		t.Errorf("125: %v, want advice", err)
	}
	if err := w.unpublish(w.Controller, big, "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := expand(w.Controller, big, 5<<40); err != nil || got != 5<<40 {
		t.Errorf("125: %d bytes when detached, %v", got, err)
	}
	w.Forget()
	for _, key := range []string{"tags", "maxShares", "location"} {
		wantCode(t, "127 "+key, modify(v, key, "1"), codes.InvalidArgument)
	}
	wantCode(t, "131", modify(v, "DiskIOPSReadWrite", "4000"), codes.InvalidArgument)
	if err := modify(v, "skuName", "PremiumV2_LRS"); err != nil || w.disk(v).SKU.Name != "PremiumV2_LRS" {
		t.Errorf("129: %v, %s", err, w.disk(v).SKU.Name)
	}
	for range 2 {
		if err := modify(v, "DiskIOPSReadWrite", "4000"); err != nil {
			t.Errorf("130: %v", err)
		}
	}
	if n := w.WritesBy("PATCH"); n != 2 || *w.disk(v).Properties.DiskIOPSReadWrite != 4000 {
		t.Errorf("130: %d changes, %d IOPS", n, *w.disk(v).Properties.DiskIOPSReadWrite)
	}
}

// TestAtTheSameTime checks rows 41, 55, 65 and 67: requests that meet another one, a limit or a lock.
func TestAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 3})
		twice := func(row string, request func() error) {
			t.Helper()
			errs := together([]int{0, 1}, func(int) error { return request() })
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Errorf("%s: %v", row, errs)
			}
			for _, err := range errs {
				if err != nil {
					wantCode(t, row, err, codes.Aborted)
				}
			}
		}
		twice("41", func() error { _, err := w.CreateVolume(t.Context(), request("v")); return err })
		remove := func(ctx context.Context, name string) error {
			_, err := w.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{
				VolumeId: string(testkit.Group) + "/providers/Microsoft.Compute/disks/" + name,
			})
			return err
		}
		twice("65", func() error { return remove(t.Context(), "v") })
		w.volume("locked")
		for row, fault := range map[string]core.Fault{
			"55": {Method: "PUT", Type: compute.Disks, Status: 429, RetryAfter: 3600},
			"67": {Method: "DELETE", Type: compute.Disks, Status: 409, Code: "ScopeLocked"},
		} {
			fault.Fault = core.FaultError
			if err := w.SetFaults([]core.Fault{fault}); err != nil {
				t.Fatal(err)
			}
			if row == "67" {
				wantCode(t, row, remove(t.Context(), "locked"), codes.PermissionDenied)
				continue
			}
			_, err := w.CreateVolume(t.Context(), request("throttled"))
			wantCode(t, row, err, codes.Unavailable)
		}
	})
}

// TestCaching checks row 105: which cache a disk is attached with.
func TestCaching(t *testing.T) {
	tests := map[string]struct {
		convert bool
		context map[string]string
		want    string
	}{
		"105 an in-tree volume":           {true, map[string]string{"kind": "Managed", "cachingMode": "ReadWrite"}, "ReadOnly"},
		"105 an in-tree volume, as it is": {false, map[string]string{"kind": "Managed", "cachingMode": "ReadWrite"}, "ReadWrite"},
		"105 another volume":              {true, map[string]string{"cachingMode": "ReadWrite"}, "ReadWrite"},
		"105 described, in another case":  {true, map[string]string{"KIND": "managed", "CachingMode": "ReadWrite", "requestedsizegib": "10"}, "ReadOnly"},
		"no cache":                        {true, map[string]string{"kind": "Managed", "cachingMode": "None"}, "None"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{})
			w.convert = test.convert
			controller := w.controller()
			defer controller.Close()
			v := w.direct("pvc-1")
			_, err := controller.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
				VolumeId: v, NodeId: "a", VolumeCapability: writer(), VolumeContext: test.context,
			})
			if err != nil {
				t.Fatal(err)
			}
			machine := testkit.Must[compute.MachineDisks](w.Azure, w.nodes.of["a"])
			if got := machine.Properties.StorageProfile.DataDisks; len(got) != 1 || got[0].Caching != test.want {
				t.Errorf("data disks %+v, want the cache %s", got, test.want)
			}
		})
	}
}

// TestKeysOfCustomers checks rows 28 and 119: a disk with a disk encryption set, which its machine names too.
func TestKeysOfCustomers(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	set := testkit.Group.Resource("Microsoft.Compute/diskEncryptionSets", "keys")
	w.Put(set, map[string]any{"location": testkit.Location, "identity": map[string]any{"type": "SystemAssigned"}, "properties": map[string]any{
		"activeKey": map[string]any{"keyUrl": "https://v.vault.azure.net/keys/k/1"}, "encryptionType": "EncryptionAtRestWithCustomerKey",
	}})
	made, err := w.CreateVolume(t.Context(), request("pvc-1", "diskEncryptionSetID", string(set)))
	if err != nil {
		t.Fatal(err)
	}
	volume := made.GetVolume()
	have := testkit.Must[compute.Disk](w.Azure, azure.ID(volume.GetVolumeId()))
	if e := have.Properties.Encryption; e == nil || e.Type != "EncryptionAtRestWithCustomerKey" || !e.DiskEncryptionSetID.Equal(set) {
		t.Errorf("28: %+v", e)
	}
	_, err = w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: volume.GetVolumeId(), NodeId: "a", VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(),
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := w.Client.Fresh().Get(t.Context(), w.nodes.of["a"])
	if err != nil || !strings.Contains(string(doc), `"diskEncryptionSet":{"id":"`+string(set)+`"`) {
		t.Errorf("119: %v in %s", err, doc)
	}
}

// TestFailedMachines checks rows 89 and 90: a machine is updated after its last operation failed, whether it lists the disk or not.
func TestFailedMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1})
		listed, other := w.volume("listed"), w.volume("other")
		fail := func() {
			t.Helper()
			if err := w.SetFaults([]core.Fault{{Fault: core.FaultOperation, Method: "POST", Times: 1, Code: "InternalServerError"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.publish(w.Controller, listed, "a"); err == nil {
				t.Fatal("the operation did not fail")
			}
		}
		state := func() string {
			return testkit.Must[compute.MachineDisks](w.Azure, w.nodes.of["a"]).Properties.ProvisioningState
		}
		fail()
		if at := w.attached("a"); state() != "Failed" || at[0] != "listed" {
			t.Fatalf("the machine is %s and lists %v", state(), at)
		}
		w.Forget()
		if lun, err := w.publish(w.Controller, listed, "a"); err != nil || lun != "0" || state() != "Succeeded" || len(w.Writes()) != 1 {
			t.Errorf("89: LUN %q, %v, the machine is %s, writes %v", lun, err, state(), w.Writes())
		}
		if err := w.unpublish(w.Controller, listed, "a"); err != nil {
			t.Fatal(err)
		}
		fail()
		if lun, err := w.publish(w.Controller, other, "a"); err != nil || lun != "1" || state() != "Succeeded" {
			t.Errorf("90: LUN %q, %v, the machine is %s", lun, err, state())
		}
	})
}

// TestNoNeedOfTheDisk checks rows 93 and 95. A disk with a volume context that says enough is attached although Azure does
// not answer for the disk (93). A machine that lists a disk which is gone takes another disk (95).
func TestNoNeedOfTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1})
		v, gone := w.volume("v"), w.volume("gone")
		if _, err := w.publish(w.Controller, gone, "a"); err != nil {
			t.Fatal(err)
		}
		if err := w.Do(func(to behaviour.World) error { to.Delete(azure.ID(gone)); return nil }); err != nil {
			t.Fatal(err)
		}
		c := w.over(mute{fresh{w.Client.Fresh(), w.Client}})
		defer c.Close()
		began := time.Now()
		if lun, err := w.publish(c, v, "a"); err != nil || lun != "1" || time.Since(began) > 25*time.Second {
			t.Errorf("93, 95: LUN %q after %s, %v", lun, time.Since(began), err)
		}
	})
}

// mute is an Azure that does not answer reads of disks.
type mute struct{ disk.Azure }

func (m mute) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	if strings.EqualFold(id.Type(), compute.Disks) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Azure.Get(ctx, id)
}
