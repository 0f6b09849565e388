package disk_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/csi/disk"
	"kaz/internal/testkit/kubeclient"
)

// kube is the Kubernetes API of a driver cluster, with the driver's watches of it.
type kube struct {
	*fake.Clientset
	w     *driverCluster
	nodes *disk.KubernetesNodes
	uses  *disk.Attachments
}

// kubernetes gives a driver cluster a Kubernetes API with a Node for each machine, and a controller that uses it. It works in a
// synctest bubble.
func (w *driverCluster) kubernetes(objects ...runtime.Object) *kube {
	w.t.Helper()
	w.t.Cleanup(synctest.Wait)
	k := w.watched(objects...)
	synctest.Wait()
	w.Close()
	w.Controller = k.controller(fresh{w.Client.Fresh(), w.Client})
	w.t.Cleanup(w.Close)
	return k
}

// watched gives a driver cluster a Kubernetes API with a Node for each machine, and the driver's watches of it.
func (w *driverCluster) watched(objects ...runtime.Object) *kube {
	w.t.Helper()
	for name, machine := range w.nodes.of {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "azure://" + string(machine)},
		})
	}
	k := &kube{Clientset: fake.NewClientset(objects...), w: w}
	ctx, stop := context.WithCancel(w.t.Context())
	w.t.Cleanup(stop)
	client := kubeclient.Of(k.Clientset)
	var err error
	if k.nodes, err = disk.NewKubernetesNodes(ctx, client); err != nil {
		w.t.Fatal(err)
	}
	if k.uses, err = disk.NewAttachments(ctx, client, disk.DefaultName); err != nil {
		w.t.Fatal(err)
	}
	return k
}

// controller returns a controller with the driver's watches and another way to Azure.
func (k *kube) controller(to disk.Azure) *disk.Controller {
	return disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: to, Nodes: k.nodes, Uses: k.uses, Cluster: cluster(),
		Limit: func(context.Context, string) int { return slots }, OnlineResize: true, ListVolumes: true, Log: slog.New(slog.DiscardHandler),
	})
}

// pv is the persistent volume of a disk, as the driver that this one replaces writes it.
func pv(name, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: disk.DefaultName, VolumeHandle: handle,
			VolumeAttributes: map[string]string{"requestedsizegib": "10", "skuName": "StandardSSD_LRS"},
		}},
	}}
}

// attachment is the VolumeAttachment of a persistent volume at a node, with the name that Kubernetes gives it.
func attachment(handle, pv, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: disk.AttachmentName(handle, disk.DefaultName, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: disk.DefaultName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"LUN": "0"}},
	}
}

// add creates or replaces objects, and waits until the watches show them.
func (k *kube) add(objects ...runtime.Object) {
	k.w.t.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.PersistentVolume:
			_, err = k.CoreV1().PersistentVolumes().Create(k.w.t.Context(), o, metav1.CreateOptions{})
		case *storagev1.VolumeAttachment:
			_, err = k.StorageV1().VolumeAttachments().Create(k.w.t.Context(), o, metav1.CreateOptions{})
		case *corev1.Node:
			_, err = k.CoreV1().Nodes().Update(k.w.t.Context(), o, metav1.UpdateOptions{})
		default:
			k.w.t.Fatalf("no client for %T", o)
		}
		if err != nil {
			k.w.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// taint declares a node out of service.
func (k *kube) taint(node string) {
	k.w.t.Helper()
	n, err := k.CoreV1().Nodes().Get(k.w.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		k.w.t.Fatal(err)
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	k.add(n)
}

// TestUses checks how VolumeAttachments, persistent volumes and Nodes say which node uses a disk.
func TestUses(t *testing.T) {
	const group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/"
	inTree := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{
			DiskName: "old", DataDiskURI: group + "old",
		}},
	}}
	inline := attachment(group+"inline", "", "a")
	inline.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &inTree.DeepCopy().Spec}
	inline.Spec.Source.InlineVolumeSpec.AzureDisk.DataDiskURI = group + "inline"
	leaving := attachment(group+"leaving", "leaving", "a")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"external-attacher/disk-csi-azure-com"}
	foreign := attachment(group+"foreign", "foreign", "a")
	foreign.Spec.Attacher = "file.csi.azure.com"
	foreign.Name = "csi-foreign"
	withoutPV := attachment(group+"gone", "gone", "a")
	withoutPV.Name = "csi-gone"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{
		"kubernetes.io/csi/disk.csi.azure.com^" + group + "mounted", "kubernetes.io/csi/file.csi.azure.com^" + group + "file",
	}}}
	out := node.DeepCopy()
	out.Name = "out"
	out.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		client := fake.NewClientset(pv("mine", group+"Mine"), attachment(group+"Mine", "mine", "a"), inTree, attachment(group+"old", "old", "a"),
			inline, pv("leaving", group+"leaving"), leaving, pv("foreign", group+"foreign"), foreign, withoutPV, node, out)
		uses, err := disk.NewAttachments(ctx, kubeclient.Of(client), disk.DefaultName)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := uses.Use(ctx, group+"mine", "a"); azure.KindOf(err) != azure.Unavailable {
			t.Errorf("before the lists are read: %v", err)
		}
		synctest.Wait()
		for _, c := range []struct {
			disk azure.ID
			node string
			want disk.Use
		}{
			{group + "mine", "a", disk.Use{Attached: true}},
			{group + "mine", "A", disk.Use{Attached: true}},
			{group + "mine", "b", disk.Use{}},
			{group + "old", "a", disk.Use{Attached: true}},
			{group + "inline", "a", disk.Use{Attached: true}},
			{group + "leaving", "a", disk.Use{Attached: true, Leaving: true}},
			{group + "foreign", "a", disk.Use{}},
			{group + "gone", "a", disk.Use{}},
			{group + "mounted", "a", disk.Use{Mounted: true}},
			{group + "mounted", "out", disk.Use{}},
			{group + "file", "a", disk.Use{}},
		} {
			if got, err := uses.Use(ctx, c.disk, c.node); err != nil || got != c.want {
				t.Errorf("use of %s at %s: %+v, %v, want %+v", c.disk.Name(), c.node, got, err, c.want)
			}
		}
		for name, want := range map[string]bool{"a": false, "out": true, "none": false} {
			if got, err := uses.OutOfService(ctx, name); err != nil || got != want {
				t.Errorf("%s is out of service: %v, %v", name, got, err)
			}
		}
		stop()
		synctest.Wait()
	})
}
