package volumes_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/plan/share"
	"kaz/internal/shadow"
	"kaz/internal/shadow/volumes"
	"kaz/internal/testkit"
	"kaz/internal/testkit/kubeclient"
)

// foreignCluster is a cluster of the drivers that kaz's replace: two machines, disks with the tags of the other driver, and shares.
type foreignCluster struct {
	*testkit.Azure
	t       *testing.T
	objects []runtime.Object
	machine map[string]azure.ID
}

func newForeignCluster(t *testing.T) *foreignCluster {
	w := &foreignCluster{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t, machine: map[string]azure.ID{}}
	for _, name := range []string{"a", "b"} {
		w.machine[name] = w.AddMachine(testkit.VirtualMachine{Name: name})
		w.objects = append(w.objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "azure://" + string(w.machine[name])},
		})
	}
	return w
}

func diskID(name string) azure.ID { return testkit.Group.Resource(compute.Disks, name) }

// disk makes a disk as the other driver does, and attaches it to the machines of nodes.
func (w *foreignCluster) disk(name string, at ...string) {
	w.Put(diskID(name), map[string]any{
		"location": testkit.Location, "sku": map[string]any{"name": "StandardSSD_LRS"},
		"tags": map[string]any{
			"k8s-azure-created-by": "kubernetes-azure-dd", "kubernetes.io-created-for-pv-name": name,
			"kubernetes.io-created-for-pvc-name": "data-" + name, "kubernetes.io-created-for-pvc-namespace": "shop",
		},
		"properties": map[string]any{"diskSizeGB": 10, "creationData": map[string]any{"createOption": "Empty"}},
	})
	for _, node := range at {
		body := fmt.Sprintf(`{"dataDisksToAttach": [{"diskId": %q, "lun": 0, "caching": "ReadOnly"}]}`, diskID(name))
		if _, err := azure.Do(w.t.Context(), w.Client, azure.Request{
			Verb: azure.Post, ID: w.machine[node], Action: "attachDetachDataDisks", Body: azure.Document(body),
		}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// volume adds a PersistentVolume with its claim.
func (w *foreignCluster) volume(name string, source corev1.PersistentVolumeSource) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	size := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size(), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeSource: source,
		ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data-" + name}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-" + name}}
	c.Spec.VolumeName, c.Spec.Resources.Requests = name, size()
	c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, size()
	w.objects = append(w.objects, v, c)
	return v, c
}

func ofDisk(name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: disk.DefaultName, VolumeHandle: string(diskID(name)), FSType: "ext4",
		VolumeAttributes: map[string]string{"requestedsizegib": "10", "skuName": "StandardSSD_LRS"},
	}}
}

func inTree(name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{
		DiskName: name, DataDiskURI: string(diskID(name)), Kind: new(corev1.AzureManagedDisk), FSType: new("ext4"),
		CachingMode: new(corev1.AzureDataDiskCachingReadOnly), ReadOnly: new(false),
	}}
}

// attachment adds the VolumeAttachment of a volume at a node.
func (w *foreignCluster) attachment(volume, node string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: disk.AttachmentName(string(diskID(volume)), disk.DefaultName, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: disk.DefaultName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"LUN": "0"}},
	}
	w.objects = append(w.objects, a)
	return a
}

// class adds a StorageClass.
func (w *foreignCluster) class(name, provisioner string, parameters ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, Parameters: map[string]string{}}
	for i := 0; i+1 < len(parameters); i += 2 {
		c.Parameters[parameters[i]] = parameters[i+1]
	}
	w.objects = append(w.objects, c)
	return c
}

func shareHome() share.Cluster {
	return share.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location}
}

// share makes a share in the account as the other driver does.
func (w *foreignCluster) share(name string, quota int) {
	account := testkit.Group.Resource(storage.Accounts, "files")
	w.Put(account, map[string]any{
		"location": testkit.Location, "kind": "StorageV2", "sku": map[string]any{"name": "Standard_LRS"}, "properties": map[string]any{},
	})
	w.Put(storage.ShareOf(account, name), map[string]any{"properties": map[string]any{"shareQuota": quota}})
}

func ofShare(handle string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "file.csi.azure.com", VolumeHandle: handle}}
}

// differences plays a round of both drivers and returns what they would write or refuse, by object; "" is one that agrees.
func (w *foreignCluster) differences() (map[string]string, error) {
	w.t.Helper()
	clients := fake.NewClientset(w.objects...)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer synctest.Wait()
	defer cancel()
	config := volumes.Config{Kubernetes: clients, Azure: w.Client.Fresh(), Log: slog.New(slog.DiscardHandler)}
	cluster := plandisk.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location}
	found := map[string]string{}
	w.Forget()
	for _, source := range []shadow.Source{
		volumes.Disks(ctx, config, kubeclient.Of(clients), cluster), volumes.Shares(config, kubeclient.Of(clients), shareHome()),
	} {
		verdicts, err := source.Decide(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.Kind, err)
		}
		for _, v := range verdicts {
			writes := v.Writes
			if v.Refused != "" {
				writes = append(slices.Clone(writes), "refused: "+v.Refused)
			}
			found[v.Object] = strings.ReplaceAll(strings.Join(writes, "\n"), string(testkit.Group)+"/providers/", "")
		}
	}
	if writes := w.Writes(); len(writes) > 0 {
		w.t.Errorf("written: %q", writes)
	}
	for _, a := range clients.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) || a.GetResource().Resource == "secrets" {
			w.t.Errorf("%s %s in Kubernetes", a.GetVerb(), a.GetResource().Resource)
		}
	}
	return found, nil
}

const pvc1 = "shop/data-pvc-1, pvc-1"

// TestStates compares what kaz's drivers would write in the states that other drivers leave: nothing at rest.
func TestStates(t *testing.T) {
	const attached = "Microsoft.Compute/disks/pvc-1"
	for _, test := range []struct {
		name  string
		state func(*foreignCluster)
		want  map[string]string
	}{
		{"attached where Kubernetes believes", func(w *foreignCluster) {
			w.disk("pvc-1", "a")
			w.volume("pvc-1", ofDisk("pvc-1"))
			w.attachment("pvc-1", "a")
			w.class("managed-csi", disk.DefaultName, "skuName", "StandardSSD_LRS")
		}, map[string]string{pvc1: "", "StorageClass managed-csi": ""}},
		{"a volume of the in-tree driver", func(w *foreignCluster) {
			w.disk("pvc-1", "a")
			w.volume("pvc-1", inTree("pvc-1"))
			w.attachment("pvc-1", "a")
			w.class("default", "kubernetes.io/azure-disk", "storageaccounttype", "StandardSSD_LRS", "kind", "managed")
		}, map[string]string{pvc1: "", "StorageClass default": ""}},
		{"a volume without a pod", func(w *foreignCluster) {
			w.disk("pvc-1")
			w.volume("pvc-1", ofDisk("pvc-1"))
		}, map[string]string{pvc1: ""}},
		{"the disk is gone", func(w *foreignCluster) { w.volume("pvc-1", ofDisk("pvc-1")) },
			map[string]string{pvc1: "refused: volume " + attached + ": GET " + attached + ": not found"}},
		{"attached nowhere", func(w *foreignCluster) {
			w.disk("pvc-1")
			w.volume("pvc-1", ofDisk("pvc-1"))
			w.attachment("pvc-1", "a")
		}, map[string]string{pvc1: "attach " + attached + " to Microsoft.Compute/virtualMachines/a"}},
		{"left on another machine", func(w *foreignCluster) {
			w.disk("pvc-1", "b")
			w.volume("pvc-1", ofDisk("pvc-1"))
			w.attachment("pvc-1", "a")
		}, map[string]string{pvc1: "detach " + attached + " from Microsoft.Compute/virtualMachines/b\n" +
			"attach " + attached + " to Microsoft.Compute/virtualMachines/a"}},
		{"a move under way", func(w *foreignCluster) {
			w.disk("pvc-1", "a")
			w.volume("pvc-1", ofDisk("pvc-1"))
			w.attachment("pvc-1", "a").DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
			w.attachment("pvc-1", "b").Status.Attached = false
		}, map[string]string{pvc1: "attach " + attached + " to Microsoft.Compute/virtualMachines/b\n" +
			"detach " + attached + " from Microsoft.Compute/virtualMachines/a"}},
		{"a detachment under way", func(w *foreignCluster) {
			w.disk("pvc-1", "a")
			w.volume("pvc-1", ofDisk("pvc-1"))
			w.attachment("pvc-1", "a").DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
		}, map[string]string{pvc1: "detach " + attached + " from Microsoft.Compute/virtualMachines/a"}},
		{"a claim that grows", func(w *foreignCluster) {
			w.disk("pvc-1")
			_, c := w.volume("pvc-1", ofDisk("pvc-1"))
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("20Gi")
		}, map[string]string{pvc1: "change " + attached}},
		{"a volume whose claim is deleted", func(w *foreignCluster) {
			w.disk("pvc-1")
			v, _ := w.volume("pvc-1", ofDisk("pvc-1"))
			v.Status.Phase = corev1.VolumeReleased
		}, map[string]string{pvc1: "delete " + attached}},
		{"a claim that waits for a volume, and one that waits for a pod", func(w *foreignCluster) {
			w.class("now", disk.DefaultName)
			w.class("later", disk.DefaultName).VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
			for _, class := range []string{"now", "later"} {
				c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: class}}
				c.Spec.StorageClassName = &class
				w.objects = append(w.objects, c)
			}
		}, map[string]string{"StorageClass now": "", "StorageClass later": "", "shop/now": "create a disk of class now"}},
		{"a parameter that kaz refuses", func(w *foreignCluster) { w.class("odd", disk.DefaultName, "cachingMode", "Sometimes") },
			map[string]string{"StorageClass odd": "refused: parameter cachingMode: "}},
		{"a share of the other driver", func(w *foreignCluster) {
			w.share("pvc-2", 10)
			w.volume("pvc-2", ofShare(testkit.ResourceGroup+"#files#pvc-2###default"))
			w.class("azurefile-csi", "file.csi.azure.com", "skuName", "Standard_LRS")
		}, map[string]string{"shop/data-pvc-2, pvc-2": "", "StorageClass azurefile-csi": ""}},
		{"a share that is gone", func(w *foreignCluster) {
			w.share("other", 10)
			w.volume("pvc-2", ofShare(testkit.ResourceGroup+"#files#pvc-2###default"))
		}, map[string]string{"shop/data-pvc-2, pvc-2": "refused: volume " + testkit.ResourceGroup + "#files#pvc-2###default"}},
		{"a share whose claim grows", func(w *foreignCluster) {
			w.share("pvc-2", 10)
			_, c := w.volume("pvc-2", ofShare(testkit.ResourceGroup+"#files#pvc-2###default"))
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("20Gi")
		}, map[string]string{"shop/data-pvc-2, pvc-2": "change Microsoft.Storage/storageAccounts/files/fileServices/default/shares/pvc-2"}},
		{"a file system in a share", func(w *foreignCluster) {
			w.share("vhds", 10)
			w.volume("pvc-2", ofShare(testkit.ResourceGroup+"#files#vhds#pvc-2.vhd#"))
		}, map[string]string{"shop/data-pvc-2, pvc-2": "refused: the driver does not serve the volume: file systems in a VHD file"}},
		{"a share that a Secret names", func(w *foreignCluster) { w.volume("pvc-2", ofShare("by-hand")) },
			map[string]string{"shop/data-pvc-2, pvc-2": ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newForeignCluster(t)
				test.state(w)
				began := time.Now()
				got, err := w.differences()
				if took := time.Since(began); err != nil || took > 10*time.Second {
					t.Fatalf("after %v: %v", took, err)
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(test.want)), slices.Sorted(maps.Keys(got))); diff != "" {
					t.Error(diff)
				}
				for object, want := range test.want {
					if !strings.HasPrefix(got[object], want) || want == "" && got[object] != "" {
						t.Errorf("%s: %q, want %q", object, got[object], want)
					}
				}
			})
		})
	}
}

// TestUnread checks that a read that fails is an error, not a difference.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newForeignCluster(t)
		w.disk("pvc-1", "a")
		w.volume("pvc-1", ofDisk("pvc-1"))
		w.attachment("pvc-1", "a")
		if _, err := w.Faults.Add(core.Fault{
			Method: "GET", Type: compute.VirtualMachines, Fault: core.FaultError, Status: 403, Code: "AuthorizationFailed",
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.differences(); err == nil || !strings.Contains(err.Error(), "AuthorizationFailed") {
			t.Errorf("%v", err)
		}
	})
}
