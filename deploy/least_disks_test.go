package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
)

// diskStories are uses of Azure by the controller of the azuredisk-csi-driver.
func diskStories() []story {
	const disks, snapshots, machines = computeActions + "disks/", computeActions + "snapshots/", computeActions + "virtualMachines/"
	return []story{
		{name: "volumes", tell: (*cluster).volumes, needs: []string{disks + "read", disks + "write", disks + "delete"}},
		{name: "attachments", tell: (*cluster).attachments, needs: []string{
			machines + "read", machines + "attachDetachDataDisks/action", instanceOf + "read", instanceOf + "attachDetachDataDisks/action",
			disks + "write",
		}},
		{name: "limits of machines", tell: (*cluster).attachments, without: []string{computeActions + "skus/read"}},
		{name: "snapshots", tell: (*cluster).snapshots, needs: []string{
			snapshots + "read", snapshots + "write", snapshots + "delete", disks + "beginGetAccess/action",
		}},
		{name: "clones", tell: (*cluster).clone, needs: []string{disks + "beginGetAccess/action"}},
		{name: "restored disks", tell: (*cluster).restore, needs: []string{snapshots + "beginGetAccess/action"}},
		{name: "keys of customers", tell: (*cluster).encrypt, needs: []string{computeActions + "diskEncryptionSets/read"}},
		{name: "private access", tell: (*cluster).private, needs: []string{computeActions + "diskAccesses/read"}},
	}
}

// TestLeastPrivilegeOfDisks checks that every story of the disk driver succeeds with exactly its roles, and that each
// action is necessary.
func TestLeastPrivilegeOfDisks(t *testing.T) {
	const role = "azuredisk-csi-driver"
	state := layDisks(t)
	taken := checkStories(t, diskStories(), func(t *testing.T, without string) *cluster { return openCluster(t, state, role, without) })
	for _, a := range roleActions(role) {
		if !taken[a] {
			t.Errorf("role %s: action %s is not needed by any story", role, a)
		}
	}
}

// Resources in the cluster's group for the stories of disks.
const (
	madeDisk     = testkit.Group + "/providers/" + compute.Disks + "/made"
	madeSnapshot = testkit.Group + "/providers/" + compute.Snapshots + "/made"
	keySet       = testkit.Group + "/providers/Microsoft.Compute/diskEncryptionSets/keys"
	diskAccess   = testkit.Group + "/providers/Microsoft.Compute/diskAccesses/access"
)

// layDisks creates a cluster with machines, a disk and a snapshot and returns its state file.
func layDisks(t *testing.T) string {
	t.Helper()
	a := testkit.NewAzure(t, core.Options{}, 1)
	a.AddMachine(testkit.VirtualMachine{Name: "single"})
	a.Put(madeDisk, object{"location": testkit.Location, "sku": object{"name": "Premium_LRS"}, "properties": object{
		"diskSizeGB": 10, "creationData": object{"createOption": "Empty"},
	}})
	a.Put(madeSnapshot, object{"location": testkit.Location, "properties": object{
		"incremental": true, "creationData": object{"createOption": "Copy", "sourceResourceId": madeDisk},
	}})
	a.Put(keySet, object{"location": testkit.Location, "identity": object{"type": "SystemAssigned"}, "properties": object{
		"activeKey": object{"keyUrl": "https://vault.vault.azure.net/keys/key/1"}, "encryptionType": "EncryptionAtRestWithCustomerKey",
	}})
	a.Put(diskAccess, object{"location": testkit.Location})
	return save(t, a)
}

// machinesOfNodes finds the machines of the cluster's nodes.
type machinesOfNodes struct{ *cluster }

func (m machinesOfNodes) Machine(_ context.Context, node string) (azure.ID, error) {
	switch node {
	case "single":
		return testkit.Group.Resource(compute.VirtualMachines, "single"), nil
	case "nodes0-000000":
		return testkit.Nodes.Child("virtualMachines", "0"), nil
	}
	return "", fmt.Errorf("there is no node %s", node)
}

func (m machinesOfNodes) Node(context.Context, azure.ID) string { return "" }

// controller is the controller of a disk driver, as the program composes it.
func (c *cluster) controller() *disk.Controller {
	client := c.fresh()
	log := slog.New(slog.DiscardHandler)
	controller := disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: client, Nodes: machinesOfNodes{c}, OnlineResize: true, ListVolumes: true, Log: log,
		Cluster: plandisk.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location},
		Limit:   disk.NewSizes(client, testkit.Subscription, testkit.Location, log).DataDisks,
	})
	c.t.Cleanup(controller.Close)
	return controller
}

func writer() *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

const gib = 1 << 30

// volume creates a volume and returns its id.
func (c *cluster) volume(d *disk.Controller, from *csispec.VolumeContentSource, parameters map[string]string) (string, error) {
	answer, err := d.CreateVolume(c.t.Context(), &csispec.CreateVolumeRequest{
		Name: "pvc-1", VolumeCapabilities: []*csispec.VolumeCapability{writer()}, Parameters: parameters,
		CapacityRange: &csispec.CapacityRange{RequiredBytes: 10 * gib}, VolumeContentSource: from,
	})
	return answer.GetVolume().GetVolumeId(), err
}

// volumes creates, changes, lists and deletes a volume.
func (c *cluster) volumes() error {
	d := c.controller()
	id, err := c.volume(d, nil, map[string]string{"skuName": "StandardSSD_LRS"})
	if err != nil {
		return err
	}
	_, expanded := d.ControllerExpandVolume(c.t.Context(), &csispec.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 20 * gib},
	})
	_, modified := d.ControllerModifyVolume(c.t.Context(), &csispec.ControllerModifyVolumeRequest{
		VolumeId: id, MutableParameters: map[string]string{"skuName": "Premium_LRS"},
	})
	_, listed := d.ListVolumes(c.t.Context(), &csispec.ListVolumesRequest{})
	_, deleted := d.DeleteVolume(c.t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
	return errors.Join(expanded, modified, listed, deleted)
}

// attachments attaches a disk to machines of both kinds and detaches it.
func (c *cluster) attachments() error {
	d := c.controller()
	var errs []error
	for _, node := range []string{"single", "nodes0-000000"} {
		_, attached := d.ControllerPublishVolume(c.t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: string(madeDisk), NodeId: node, VolumeCapability: writer(),
		})
		_, detached := d.ControllerUnpublishVolume(c.t.Context(), &csispec.ControllerUnpublishVolumeRequest{
			VolumeId: string(madeDisk), NodeId: node,
		})
		errs = append(errs, attached, detached)
	}
	return errors.Join(errs...)
}

// snapshots creates, lists and deletes a snapshot.
func (c *cluster) snapshots() error {
	d := c.controller()
	made, err := d.CreateSnapshot(c.t.Context(), &csispec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: string(madeDisk)})
	if err != nil {
		return err
	}
	id := made.GetSnapshot().GetSnapshotId()
	_, found := d.GetSnapshot(c.t.Context(), &csispec.GetSnapshotRequest{SnapshotId: id})
	_, listed := d.ListSnapshots(c.t.Context(), &csispec.ListSnapshotsRequest{})
	_, deleted := d.DeleteSnapshot(c.t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: id})
	return errors.Join(found, listed, deleted)
}

func (c *cluster) clone() error {
	_, err := c.volume(c.controller(), &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: string(madeDisk)},
	}}, nil)
	return err
}

func (c *cluster) restore() error {
	_, err := c.volume(c.controller(), &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
		Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: string(madeSnapshot)},
	}}, nil)
	return err
}

func (c *cluster) encrypt() error {
	_, err := c.volume(c.controller(), nil, map[string]string{"diskEncryptionSetID": string(keySet)})
	return err
}

func (c *cluster) private() error {
	_, err := c.volume(c.controller(), nil, map[string]string{"networkAccessPolicy": "AllowPrivate", "diskAccessID": string(diskAccess)})
	return err
}
