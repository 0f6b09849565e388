package file_test

import (
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestObjectsOfTheOtherDriver checks volumes and snapshots in all formats of ids that the replaced driver and the in-tree
// driver have written. They are grown, snapshotted and deleted without change.
func TestObjectsOfTheOtherDriver(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	account := w.account("f0123456789abcdef012345", "Standard_LRS", "StorageV2", nil, map[string]any{"k8s-azure-created-by": "azure"})
	name := account.Name()
	for what, id := range map[string]string{
		"volume":                          "rg#" + name + "#pvc-1###default",
		"volume with a named share":       "rg#" + name + "#shared1##pvc-2#default",
		"volume with a subscription":      "rg#" + name + "#pvc-3###default#" + testkit.Subscription,
		"volume of the in-tree driver":    "#" + name + "#kubernetes-dynamic-pvc-4##default",
		"volume with a folder":            "rg#" + name + "#pvc-5/folder###default",
		"volume of an old version":        "rg#" + name + "#pvc-6#",
		"volume with a group in capitals": "RG#" + name + "#pvc-7###default",
	} {
		t.Run(what, func(t *testing.T) {
			shareName, _, _ := strings.Cut(strings.Split(id, "#")[2], "/")
			of := storage.ShareOf(account, shareName)
			w.Put(of, map[string]any{"properties": map[string]any{"shareQuota": 10}})
			grown, err := w.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
				VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 20 * gib},
			})
			if err != nil || grown.GetCapacityBytes() != 20*gib || w.share(id).QuotaGiB != 20 {
				t.Errorf("grow: %v, %v", grown, err)
			}
			taken := w.snapshotOfTheOtherDriver(of, "snapshot-"+shareName)
			found, err := w.again().CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "snapshot-" + shareName, SourceVolumeId: id})
			if err != nil || !strings.HasPrefix(found.GetSnapshot().GetSnapshotId(), id+"#"+taken) {
				t.Errorf("its snapshot: %v, %v, want one of %s", found, err, taken)
			}
			snapshot := id + "#" + taken + "#" + testkit.Subscription
			one, err := w.GetSnapshot(t.Context(), &csispec.GetSnapshotRequest{SnapshotId: snapshot})
			if err != nil || one.GetSnapshot().GetSnapshotId() != snapshot || one.GetSnapshot().GetSourceVolumeId() != id {
				t.Errorf("snapshot by its id: %v, %v", one, err)
			}
			if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: snapshot}); err != nil {
				t.Errorf("delete the snapshot: %v", err)
			}
			if err := w.remove(id); err != nil || w.exists(id) {
				t.Errorf("delete: %v, the share exists: %t", err, w.exists(id))
			}
		})
	}
	if len(w.accounts()) != 1 {
		t.Errorf("%d accounts, want the one that was there", len(w.accounts()))
	}
}

// snapshotOfTheOtherDriver takes a snapshot as the replaced driver does, with its name as initiator, and returns its time as in ids.
func (w *driverCluster) snapshotOfTheOtherDriver(of azure.ID, name string) string {
	w.t.Helper()
	doc, err := azure.Do(w.t.Context(), w.Client, azure.Request{
		Verb: azure.Put, ID: of, Parameters: map[string]string{"$expand": "snapshots"}, Additive: true,
		Body: azure.Document(`{"properties": {"metadata": {"initiator": "` + name + `"}}}`),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	made, err := azure.Decode[storage.Share](doc)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Properties.SnapshotTime
}
