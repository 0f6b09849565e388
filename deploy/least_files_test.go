package deploy_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

// fileStories are uses of Azure by the azurefile-csi-driver.
func fileStories() []story {
	const (
		account  = "Microsoft.Storage/storageAccounts/"
		service  = account + "fileServices/"
		shares   = service + "shares/"
		subnets  = networkActions + "virtualNetworks/subnets/"
		zone     = networkActions + "privateDnsZones/"
		endpoint = networkActions + "privateEndpoints/"
	)
	return []story{
		{name: "shares", tell: (*cluster).shares, needs: []string{account + "read", shares + "read", shares + "write", shares + "delete"}},
		{name: "snapshots of shares", tell: (*cluster).shareSnapshots, needs: []string{shares + "read", shares + "write", shares + "delete"}},
		{name: "a new account", tell: (*cluster).newAccount, needs: []string{account + "write", service + "read", service + "write"}},
		{name: "a full account", tell: (*cluster).fullAccount, needs: []string{account + "write"}},
		{name: "Secrets with keys", tell: (*cluster).secretWithKey, needs: []string{account + "listKeys/action"}},
		{name: "copies of shares", tell: (*cluster).copyShare, needs: []string{account + "listKeys/action"}},
		{name: "keys of nodes", tell: (*cluster).nodeKey, needs: []string{account + "listKeys/action"}},
		{name: "service endpoints", tell: (*cluster).serviceEndpoint, needs: []string{
			subnets + "read", subnets + "write", subnets + "joinViaServiceEndpoint/action", networkActions + "natGateways/join/action",
			networkActions + "networkSecurityGroups/join/action", networkActions + "routeTables/join/action",
		}},
		{name: "a subnet with a service endpoint", tell: (*cluster).openSubnet, needs: []string{subnets + "joinViaServiceEndpoint/action"}},
		{name: "private endpoints", tell: (*cluster).privateEndpoint, needs: []string{
			account + "PrivateEndpointConnectionsApproval/action", endpoint + "read", endpoint + "write",
			endpoint + "privateDnsZoneGroups/read", endpoint + "privateDnsZoneGroups/write", subnets + "join/action",
			networkActions + "virtualNetworks/join/action", zone + "read", zone + "write", zone + "join/action",
			zone + "virtualNetworkLinks/read", zone + "virtualNetworkLinks/write",
		}},
	}
}

// TestLeastPrivilegeOfFiles checks that every story of the files driver succeeds with exactly its role, and that each action is
// necessary.
func TestLeastPrivilegeOfFiles(t *testing.T) {
	const role = "azurefile-csi-driver"
	state := layFiles(t)
	taken := checkStories(t, fileStories(), func(t *testing.T, without string) *cluster { return openCluster(t, state, role, without) })
	for _, a := range roleActions(role) {
		if !taken[a] {
			t.Errorf("role %s: action %s is not needed by any story", role, a)
		}
	}
}

// Resources in the cluster's group for the stories of files.
const (
	madeAccount = testkit.Group + "/providers/" + storage.Accounts + "/made"
	vnetOfFiles = testkit.Group + "/providers/" + network.VirtualNetworks + "/files"
	// closed is a subnet without a service endpoint, open one that has it.
	closed, open = "closed", "open"
)

// layFiles creates a cluster with a storage account, two subnets and what subnets are connected with, and returns its state file.
func layFiles(t *testing.T) string {
	t.Helper()
	a := testkit.NewAzure(t, core.Options{}, 0)
	a.Put(madeAccount, object{"location": testkit.Location, "kind": "StorageV2", "sku": object{"name": "Standard_LRS"},
		"properties": object{"allowBlobPublicAccess": false}})
	table := testkit.Group.Resource(network.RouteTables, "table")
	a.Put(table, object{"location": testkit.Location})
	gateway := testkit.Group.Resource("Microsoft.Network/natGateways", "gateway")
	a.Put(gateway, object{"location": testkit.Location, "sku": object{"name": "Standard"}})
	a.Put(vnetOfFiles, object{"location": testkit.Location, "properties": object{
		"addressSpace": object{"addressPrefixes": []string{"10.250.0.0/16"}},
		"subnets": []object{
			{"name": closed, "properties": object{
				"addressPrefix": "10.250.0.0/24", "networkSecurityGroup": object{"id": testkit.SecurityGroup},
				"routeTable": object{"id": table}, "natGateway": object{"id": gateway},
			}},
			{"name": open, "properties": object{
				"addressPrefix": "10.250.1.0/24", "serviceEndpoints": []object{{"service": "Microsoft.Storage"}},
			}},
		},
	}})
	return save(t, a)
}

// noSecrets takes Secrets.
type noSecrets struct{}

func (noSecrets) Check(context.Context, string, string, string) error { return nil }

func (noSecrets) Put(context.Context, string, string, file.Credentials) error { return nil }

// noFiles is a file service in which each copy succeeds.
type noFiles struct{ file.FileService }

func (noFiles) Copy(context.Context, file.CopySource, string) error { return nil }

// files is the controller of a files driver, as the program composes it.
func (c *cluster) files() *file.Controller {
	return file.NewController(file.Config{
		Name: file.DefaultName, Azure: c.fresh(), Secrets: noSecrets{}, Log: slog.New(slog.DiscardHandler),
		Files: func(string, file.Credentials) (file.FileService, error) { return noFiles{}, nil },
		Cluster: share.Cluster{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
			VNetGroup: testkit.ResourceGroup, VNet: vnetOfFiles.Name(), Subnet: open, Suffix: "core.windows.net",
		},
	})
}

// share creates a volume without a Secret and returns its id.
func (c *cluster) share(d *file.Controller, name string, parameters map[string]string, from *csispec.VolumeContentSource) (string, error) {
	class := map[string]string{"storeAccountKey": "false"}
	maps.Copy(class, parameters)
	answer, err := d.CreateVolume(c.t.Context(), &csispec.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csispec.VolumeCapability{writer()}, Parameters: class,
		CapacityRange: &csispec.CapacityRange{RequiredBytes: 10 * gib}, VolumeContentSource: from,
	})
	return answer.GetVolume().GetVolumeId(), err
}

// created creates a volume with parameters.
func (c *cluster) created(parameters map[string]string) error {
	_, err := c.share(c.files(), "pvc-1", parameters, nil)
	return err
}

// shares creates, grows, changes, lists and deletes volumes.
func (c *cluster) shares() error {
	d := c.files()
	id, err := c.share(d, "pvc-1", nil, nil)
	if err != nil {
		return err
	}
	_, expanded := d.ControllerExpandVolume(c.t.Context(), &csispec.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 20 * gib},
	})
	_, listed := d.ListVolumes(c.t.Context(), &csispec.ListVolumesRequest{})
	_, deleted := d.DeleteVolume(c.t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
	return errors.Join(expanded, listed, deleted)
}

// shareSnapshots creates, lists and deletes a snapshot.
func (c *cluster) shareSnapshots() error {
	d := c.files()
	id, err := c.share(d, "pvc-1", map[string]string{"storageAccount": madeAccount.Name()}, nil)
	if err != nil {
		return err
	}
	made, err := d.CreateSnapshot(c.t.Context(), &csispec.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: id})
	if err != nil {
		return err
	}
	snapshot := made.GetSnapshot().GetSnapshotId()
	_, found := d.GetSnapshot(c.t.Context(), &csispec.GetSnapshotRequest{SnapshotId: snapshot})
	_, listed := d.ListSnapshots(c.t.Context(), &csispec.ListSnapshotsRequest{SourceVolumeId: id})
	_, deleted := d.DeleteSnapshot(c.t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: snapshot})
	return errors.Join(found, listed, deleted)
}

// newAccount creates two volumes in an account with settings: the account is made for the first one.
func (c *cluster) newAccount() error {
	class := map[string]string{"skuName": "Premium_LRS", "disableDeleteRetentionPolicy": "true"}
	_, first := c.share(c.files(), "pvc-1", class, nil)
	_, second := c.share(c.files(), "pvc-2", class, nil)
	return errors.Join(first, second)
}

// fullAccount creates a volume while the account that fits is full.
func (c *cluster) fullAccount() error {
	if err := c.azur.SetFaults([]core.Fault{{Method: "PUT", Type: storage.Shares, Times: 1, Fault: core.FaultError, Status: 409,
		Code: "TotalSharesProvisionedCapacityExceedsAccountLimit"}}); err != nil {
		return err
	}
	return c.created(nil)
}

func (c *cluster) secretWithKey() error {
	return c.created(map[string]string{"storeAccountKey": "true"})
}

func (c *cluster) copyShare() error {
	d := c.files()
	id, err := c.share(d, "pvc-1", nil, nil)
	if err != nil {
		return err
	}
	_, err = c.share(d, "pvc-2", nil, &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: id},
	}})
	return err
}

// nodeKey reads a key as a node does that mounts a volume without a Secret.
func (c *cluster) nodeKey() error {
	_, err := file.NewKeys(c.fresh()).Of(c.t.Context(), madeAccount, false)
	return err
}

func (c *cluster) serviceEndpoint() error {
	return c.created(map[string]string{"networkEndpointType": "serviceEndpoint", "subnetName": closed})
}

func (c *cluster) openSubnet() error { return c.created(map[string]string{"protocol": "nfs"}) }

func (c *cluster) privateEndpoint() error {
	return c.created(map[string]string{"networkEndpointType": "privateEndpoint"})
}

// fresh is Azure without what was read before.
func (c *cluster) fresh() interface {
	azure.Reader
	azure.Writer
} {
	return struct {
		azure.Reader
		azure.Writer
	}{c.client.Fresh(), c.client}
}
