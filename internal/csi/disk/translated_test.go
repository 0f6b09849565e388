package disk_test

import (
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestVolumesOfTheInTreeDriver checks that disks attach and detach as Kubernetes translates the volumes of the in-tree driver.
func TestVolumesOfTheInTreeDriver(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	translator := translation.New()
	source := corev1.AzureDiskVolumeSource{
		DiskName: "pvc-1", DataDiskURI: w.volume("pvc-1"), Kind: new(corev1.AzureManagedDisk), FSType: new("xfs"),
		CachingMode: new(corev1.AzureDataDiskCachingReadOnly), ReadOnly: new(false),
	}
	persistent, err := translator.TranslateInTreePVToCSI(klog.Background(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{AzureDisk: &source}},
	})
	if err != nil {
		t.Fatal(err)
	}
	inline, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(),
		&corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{AzureDisk: &source}}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	const node = "a"
	for what, v := range map[string]*corev1.PersistentVolume{"persistent": persistent, "inline": inline} {
		csi := v.Spec.CSI
		if _, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: csi.VolumeHandle, NodeId: node, VolumeCapability: writer(), VolumeContext: csi.VolumeAttributes,
		}); err != nil {
			t.Errorf("%s, %s: %v", what, csi.VolumeHandle, err)
			continue
		}
		disks := testkit.Must[compute.MachineDisks](w.Azure, w.nodes.of[node]).Properties.StorageProfile.DataDisks
		if len(disks) != 1 || disks[0].Caching != "ReadOnly" || !disks[0].ManagedDisk.ID.Equal(azure.ID(source.DataDiskURI)) {
			t.Errorf("%s: %+v", what, disks)
		}
		if err := w.unpublish(w.Controller, csi.VolumeHandle, node); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
