package app

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
)

// memoryOf returns the memory of a process in megabytes: at most resident, and the part of it now that is not of files. Pages of
// the program's file are shared by its processes, and the kernel takes them back when memory is short.
func memoryOf(t *testing.T, p *os.Process) (most, own float64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmHWM:":
			most = kb / 1000
		case "RssAnon:":
			own = kb / 1000
		}
	}
	return most, own
}

// raceDetector reports whether the tests run with the race detector, which takes several times the time and memory.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// The limits of memory in megabytes. nodeMost only holds for the program itself (`-program PATH`). The test binary also
// contains a local Azure, and more pages of its file are resident.
const (
	controllerMost = 120
	nodeMost       = 40
	nodeOwn        = 15
)

// TestMemory checks the memory of the controller with 5,000 volumes, all attached and listed, and of the node plugin (row 201).
// `-program PATH` measures the program itself instead of the test binary.
func TestMemory(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector takes several times the memory")
	}
	const volumes = 5000
	w := newDriverSite(t)
	for i := range volumes {
		name := fmt.Sprintf("pvc-%08d-0000-4000-8000-000000000000", i)
		handle := string(w.group.Resource(compute.Disks, name))
		w.objects["persistentvolumes"] = append(w.objects["persistentvolumes"], corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "00000000-0000-4000-8000-000000000000", Finalizers: []string{
				"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"},
				Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": disk.DefaultName}},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "managed-csi", ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: disk.DefaultName, VolumeHandle: handle, VolumeAttributes: map[string]string{
						"requestedsizegib": "10", "skuName": "StandardSSD_LRS", "csi.storage.k8s.io/pv/name": name,
						"csi.storage.k8s.io/pvc/name": name, "storage.kubernetes.io/csiProvisionerIdentity": "1-2-disk.csi.azure.com"},
				}},
			},
		})
		node := fmt.Sprintf("node-%d", i/20)
		w.objects["volumeattachments"] = append(w.objects["volumeattachments"], storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: disk.AttachmentName(handle, disk.DefaultName, node)},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: disk.DefaultName, NodeName: node,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"LUN": strconv.Itoa(i % 20)}},
		})
	}
	connection, process, _ := w.startProcess("--mode=controller")
	awaitReady(t, csispec.NewIdentityClient(connection))
	w.liveOfAVolume(csispec.NewControllerClient(connection))
	most, own := memoryOf(t, process)
	t.Logf("controller with %d volumes: at most %.0f MB, its own %.0f MB", volumes, most, own)
	if most > controllerMost {
		t.Errorf("the controller took %.0f MB, want at most %d", most, controllerMost)
	}
	connection, process, _ = w.startProcess("--mode=node", "--nodeid="+nodeName, "--volume-attach-limit=7", "--support-zone=false")
	awaitReady(t, csispec.NewIdentityClient(connection))
	if _, err := csispec.NewNodeClient(connection).NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{}); err != nil {
		t.Error(err)
	}
	most, own = memoryOf(t, process)
	t.Logf("node plugin: at most %.0f MB, its own %.0f MB", most, own)
	if *program != "" && most > nodeMost || own > nodeOwn {
		t.Errorf("the node plugin took %.0f MB, %.0f MB of its own; want at most %d and %d", most, own, nodeMost, nodeOwn)
	}
}

// TestKilledController checks that nothing is lost if a controller is killed while Azure attaches its disks. Meanwhile
// another process works at the same machine. It finds the disks of the killed controller, and no LUN is given twice.
func TestKilledController(t *testing.T) {
	const disks = 2
	w := newWorldWith(t, "0.05")
	killed, process, _ := w.startProcess("--mode=controller")
	other, _ := w.start("--mode=controller")
	for _, c := range []csispec.IdentityClient{csispec.NewIdentityClient(killed), csispec.NewIdentityClient(other)} {
		awaitReady(t, c)
	}
	client, err := w.azure.Client()
	if err != nil {
		t.Fatal(err)
	}
	machine := azure.ID(string(w.group) + "/providers/" + compute.ScaleSets + "/nodes0/virtualMachines/0")
	first, second := csispec.NewControllerClient(killed), csispec.NewControllerClient(other)
	var ids []string
	for i := range 2 * disks {
		ids = append(ids, w.create(second, fmt.Sprintf("pvc-%d", i)))
	}
	var wg sync.WaitGroup
	for _, id := range ids[:disks] {
		wg.Go(func() { _, _ = w.publish(first, id) }) // ended by the kill
	}
	for len(w.disksOf(client, machine)) == 0 { // Azure has accepted the request
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("Azure has no request")
		}
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	var mu sync.Mutex
	luns := map[string]string{}
	for _, id := range ids {
		wg.Go(func() {
			lun, err := w.publish(second, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || luns[lun] != "" {
				t.Errorf("%s: LUN %q, which is also of %q, %v", azure.ID(id).Name(), lun, luns[lun], err)
			}
			luns[lun] = id
		})
	}
	wg.Wait()
	for _, d := range w.disksOf(client, machine) {
		if id := luns[strconv.Itoa(d.LUN)]; !azure.ID(id).Equal(d.ManagedDisk.ID) {
			t.Errorf("LUN %d has %s, the driver said %s", d.LUN, d.ManagedDisk.ID.Name(), azure.ID(id).Name())
		}
	}
	for _, id := range ids {
		wg.Go(func() {
			if _, err := second.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{
				VolumeId: id, NodeId: nodeName}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := w.disksOf(client, machine); len(left) > 0 {
		t.Errorf("the machine still has %v", left)
	}
}

func (w *driverSite) disksOf(from azure.Reader, machine azure.ID) []compute.DataDisk {
	w.t.Helper()
	doc, err := from.Get(w.t.Context(), machine)
	if err != nil {
		w.t.Fatal(err)
	}
	have, err := azure.Decode[compute.MachineDisks](doc)
	if err != nil {
		w.t.Fatal(err)
	}
	return have.Properties.StorageProfile.DataDisks
}

func writer() *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func (w *driverSite) create(c csispec.ControllerClient, name string) (id string) {
	w.t.Helper()
	made, err := c.CreateVolume(w.t.Context(), &csispec.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csispec.VolumeCapability{writer()}})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.GetVolume().GetVolumeId()
}

func (w *driverSite) publish(c csispec.ControllerClient, id string) (lun string, err error) {
	answer, err := c.ControllerPublishVolume(w.t.Context(), &csispec.ControllerPublishVolumeRequest{VolumeId: id, NodeId: nodeName,
		VolumeCapability: writer(), VolumeContext: map[string]string{"requestedsizegib": "1"}})
	return answer.GetPublishContext()["LUN"], err
}
