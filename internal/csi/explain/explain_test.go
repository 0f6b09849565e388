package explain_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/explain"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const diskID = testkit.Group + "/providers/" + compute.Disks + "/pvc-1"

// at is a moment of a golden file.
func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2030, 1, 1, 12, minute, 0, 0, time.UTC))
}

func claim(volume, class string, requested, capacity string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
	c.Spec.VolumeName, c.Spec.StorageClassName = volume, &class
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requested)}
	c.Status.Phase = corev1.ClaimPending
	if capacity != "" {
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	return c
}

func bound() *corev1.PersistentVolumeClaim { return claim("pvc-1", "managed-csi", "10Gi", "10Gi") }

func class(provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "managed-csi"}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func volume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com", VolumeHandle: string(diskID)}
	return v
}

func shareVolume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "file.csi.azure.com", VolumeHandle: "#account#pvc-1##shop"}
	return v
}

func home() share.Cluster {
	return share.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup}
}

// accountID is the storage account of shareVolume.
const accountID = testkit.Group + "/providers/" + storage.Accounts + "/account"

// account creates a storage account.
func (w *cluster) account() { w.accountWith(nil) }

func (w *cluster) accountWith(properties map[string]any) {
	w.t.Helper()
	w.Put(accountID, map[string]any{"location": testkit.Location, "kind": "StorageV2", "sku": map[string]any{"name": "Standard_LRS"},
		"properties": properties})
}

// share creates a storage account with the share of shareVolume.
func (w *cluster) share() {
	w.t.Helper()
	w.account()
	w.Put(storage.ShareOf(accountID, "pvc-1"), map[string]any{"properties": map[string]any{"shareQuota": 10}})
}

// closedShare creates a share that no node reaches, in an account without keys.
func (w *cluster) closedShare() {
	w.t.Helper()
	w.share()
	w.accountWith(map[string]any{"publicNetworkAccess": "Disabled", "allowSharedKeyAccess": false})
}

func inTree() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	v.Spec.AzureDisk = &corev1.AzureDiskVolumeSource{DiskName: "pvc-1", DataDiskURI: string(diskID)}
	return v
}

func pod(node string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	p.Spec.NodeName, p.Status.Phase = node, phase
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	return p
}

func attachment(node string, change func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	name := "pvc-1"
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + node}}
	a.Spec.NodeName, a.Spec.Attacher, a.Spec.Source.PersistentVolumeName = node, "disk.csi.azure.com", &name
	if change != nil {
		change(a)
	}
	return a
}

func attached(a *storagev1.VolumeAttachment) { a.Status.Attached = true }

func leaving(a *storagev1.VolumeAttachment) {
	deleted := at(0)
	a.Status.Attached, a.DeletionTimestamp, a.Finalizers = true, &deleted, []string{"external-attacher/disk-csi-azure-com"}
}

func warning(kind, name, reason, message string, minute int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + reason + at(minute).Format("04")}, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, Reason: reason, Message: message,
		LastTimestamp: at(minute),
	}
}

// cluster is a cluster of two nodes in zones 1 and 2, and its Azure.
type cluster struct {
	*testkit.Azure
	t *testing.T
}

func newCluster(t *testing.T, zones ...string) *cluster {
	t.Helper()
	w := &cluster{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
	for _, name := range []string{"a", "b"} {
		w.AddMachine(testkit.VirtualMachine{Name: name})
	}
	w.Put(diskID, map[string]any{"location": testkit.Location, "sku": map[string]any{"name": "Premium_LRS"}, "zones": zones,
		"properties": map[string]any{"diskSizeGB": 10, "creationData": map[string]any{"createOption": "Empty"}}})
	return w
}

func (w *cluster) machine(name string) azure.ID {
	return testkit.Group.Resource(compute.VirtualMachines, name)
}

func (w *cluster) node(name, zone string) *corev1.Node {
	id, err := nodes.ProviderID(w.machine(name))
	if err != nil {
		w.t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: testkit.Location + "-" + zone}}}
	n.Spec.ProviderID = id
	return n
}

// attach attaches the disk to a machine at LUN 3.
func (w *cluster) attach(machine string) {
	w.t.Helper()
	w.attachTo(w.machine(machine))
}

func (w *cluster) attachTo(machine azure.ID) {
	w.t.Helper()
	_, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Post, ID: machine, Action: "attachDetachDataDisks",
		Body: azure.Document(`{"dataDisksToAttach":[{"diskId":"` + string(diskID) + `","lun":3}]}`)})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestVolume compares the explanations of volumes in each state with the files in testdata.
func TestVolume(t *testing.T) {
	const csi = "disk.csi.azure.com"
	const late, immediate = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for name, c := range map[string]struct {
		azure   func(*cluster)
		objects []runtime.Object
	}{
		"used": {func(w *cluster) { w.attach("a") }, []runtime.Object{bound(), volume(), pod("a", corev1.PodRunning), attachment("a", attached)}},
		"in tree": {func(w *cluster) { w.attach("a") },
			[]runtime.Object{bound(), inTree(), pod("a", corev1.PodRunning), attachment("a", attached)}},
		"not mounted": {func(w *cluster) { w.attach("a") }, []runtime.Object{bound(), volume(), pod("a", corev1.PodPending),
			attachment("a", attached), warning("Pod", "db-0", "FailedMount", "MountVolume.MountDevice failed: wrong fs type", 1)}},
		"not started": {func(w *cluster) { w.attach("a") },
			[]runtime.Object{bound(), volume(), pod("a", corev1.PodPending), attachment("a", attached)}},
		"not used":           {nil, []runtime.Object{bound(), volume()}},
		"without a pod":      {nil, []runtime.Object{claim("", "managed-csi", "10Gi", ""), class(csi, late)}},
		"without a class":    {nil, []runtime.Object{claim("", "", "10Gi", "")}},
		"of a missing class": {nil, []runtime.Object{claim("", "managed-csi", "10Gi", "")}},
		"of another driver": {nil,
			[]runtime.Object{claim("", "managed-csi", "10Gi", ""), class("nfs.csi.k8s.io", late)}},
		"share":                 {(*cluster).share, []runtime.Object{bound(), shareVolume(), pod("a", corev1.PodRunning)}},
		"share of another pod":  {(*cluster).share, []runtime.Object{bound(), shareVolume(), pod("", corev1.PodPending)}},
		"share to grow":         {(*cluster).share, []runtime.Object{claim("pvc-1", "files", "20Gi", "10Gi"), shareVolume()}},
		"share lost":            {(*cluster).account, []runtime.Object{bound(), shareVolume()}},
		"share without account": {nil, []runtime.Object{bound(), shareVolume()}},
		"share out of reach": {(*cluster).closedShare, []runtime.Object{bound(), shareVolume(), pod("a", corev1.PodPending),
			warning("Pod", "db-0", "FailedMount", "mount error(115): Operation now in progress", 1)}},
		"share to create":     {nil, []runtime.Object{claim("", "managed-csi", "10Gi", ""), class("file.csi.azure.com", immediate)}},
		"share without a pod": {nil, []runtime.Object{claim("", "managed-csi", "10Gi", ""), class("file.csi.azure.com", late)}},
		"not scheduled": {nil, []runtime.Object{claim("", "managed-csi", "10Gi", ""), class(csi, late), pod("", corev1.PodPending),
			warning("Pod", "db-0", "FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.", 1)}},
		"not created": {nil, []runtime.Object{claim("", "managed-csi", "10Gi", ""), class(csi, immediate),
			warning("PersistentVolumeClaim", "data", "ProvisioningFailed", "an older message", 1),
			warning("PersistentVolumeClaim", "data", "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = quota", 2),
			warning("PersistentVolumeClaim", "other", "ProvisioningFailed", "of another claim", 3)}},
		"volume lost": {nil, []runtime.Object{claim("pvc-1", "managed-csi", "10Gi", ""), class(csi, late)}},
		"disk lost": {func(w *cluster) {
			if _, err := azure.Do(w.t.Context(), w.Client, azure.Request{Verb: azure.Delete, ID: diskID}); err != nil {
				w.t.Fatal(err)
			}
		}, []runtime.Object{bound(), volume()}},
		"attaching": {nil, []runtime.Object{bound(), volume(), pod("a", corev1.PodPending), attachment("a", func(a *storagev1.VolumeAttachment) {
			a.Status.AttachError = &storagev1.VolumeError{Message: "rpc error: code = Aborted desc = Azure is busy"}
		})}},
		"moving": {func(w *cluster) { w.attach("a") },
			[]runtime.Object{bound(), volume(), pod("b", corev1.PodPending), attachment("a", leaving), attachment("b", nil)}},
		"kept by a stranger": {func(w *cluster) { w.attach("b") },
			[]runtime.Object{bound(), volume(), pod("a", corev1.PodPending), attachment("a", nil)}},
		"in the wrong zone": {nil, []runtime.Object{bound(), volume(), pod("b", corev1.PodPending), attachment("b", nil)}},
		"disk to grow": {func(w *cluster) { w.attach("a") }, []runtime.Object{claim("pvc-1", "managed-csi", "20Gi", "10Gi"), volume(),
			pod("a", corev1.PodRunning), attachment("a", attached)}},
		"file system to grow": {nil, []runtime.Object{claim("pvc-1", "managed-csi", "10Gi", "5Gi"), volume()}},
	} {
		t.Run(name, func(t *testing.T) {
			var zones []string
			if name == "in the wrong zone" {
				zones = []string{"1"}
			}
			w := newCluster(t, zones...)
			if c.azure != nil {
				c.azure(w)
			}
			client := fake.NewClientset(append(c.objects, w.node("a", "1"), w.node("b", "2"))...)
			facts, err := explain.Gather(t.Context(), client, w.Client.Fresh(), home(), "shop", "data")
			if err != nil {
				t.Fatal(err)
			}
			v, err := facts.Explain()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "-")+".txt", v.String())
			if slices.Contains([]string{"moving", "share", "not created"}, name) {
				golden(t, strings.ReplaceAll(name, " ", "-")+".svg", v.Picture().Inline(nil))
			}
			if name == "moving" {
				golden(t, "../../../../docs/pictures/volume.svg", v.Picture().SVG())
				checkFormats(t, v)
			}
		})
	}
}

// TestVolumeOfAScaleSet checks a disk at an instance of a Uniform scale set, which the disk calls SET_0 where the address of the
// instance has 0.
func TestVolumeOfAScaleSet(t *testing.T) {
	w := newCluster(t)
	w.PutScaleSet(testkit.Nodes, testkit.ScaleSet+"-", testkit.Uniform, 1)
	instance := testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances)[0].ID
	w.attachTo(instance)
	node := w.node("a", "1")
	node.Spec.ProviderID = "azure://" + string(instance)
	client := fake.NewClientset(bound(), volume(), pod("a", corev1.PodRunning), attachment("a", attached), node)
	facts, err := explain.Gather(t.Context(), client, w.Client.Fresh(), home(), "shop", "data")
	if err != nil {
		t.Fatal(err)
	}
	v, err := facts.Explain()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "at-an-instance.txt", v.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update writes it):\n%s", file, diff)
	}
}

// checkFormats compares JSON and YAML with golden files.
func checkFormats(t *testing.T, v explain.Volume) {
	t.Helper()
	asJSON, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "moving.json", string(asJSON)+"\n")
	asYAML, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "moving.yaml", string(asYAML))
}

// TestGatherRefuses checks what cannot be explained.
func TestGatherRefuses(t *testing.T) {
	w := newCluster(t)
	other := volume()
	other.Spec.CSI.Driver, other.Spec.CSI.VolumeHandle = "nfs.csi.k8s.io", "server#share"
	nameless, short := shareVolume(), shareVolume()
	nameless.Spec.CSI.VolumeHandle, short.Spec.CSI.VolumeHandle = "rg##share", "rg#a"
	for want, objects := range map[string][]runtime.Object{
		`read persistentvolumeclaim shop/data: persistentvolumeclaims "data" not found`: nil,
		"persistentvolumeclaim shop/data: persistentvolume pvc-1 is neither a disk of disk.csi.azure.com nor a share of file.csi.azure.com": {
			bound(), other},
		`persistentvolume pvc-1: volume id "rg##share" names no storage account: it is in the Secret of the volume`: {bound(), nameless},
		`persistentvolume pvc-1: neither the volume id "rg#a" nor the attribute shareName names a share`:            {bound(), short},
	} {
		_, err := explain.Gather(t.Context(), fake.NewClientset(objects...), w.Client.Fresh(), home(), "shop", "data")
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
