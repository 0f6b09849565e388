package compute_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// osDiskCase is a machine with an OS disk that fits to its size or not.
type osDiskCase struct {
	name, size string
	image      string // SKU of ubuntu-24_04-lts
	disk       behaviour.Object
	controller string
	want       string // placement or controller, or a part of the error
}

func osDiskCases() []osDiskCase {
	local := func(gib int, placement string) behaviour.Object {
		settings := behaviour.Object{"option": "Local"}
		if placement != "" {
			settings["placement"] = placement
		}
		return behaviour.Object{"createOption": "FromImage", "caching": "ReadOnly", "diskSizeGB": gib, "diffDiskSettings": settings}
	}
	const cannotBoot = "cannot boot with OS image or disk. Please check that disk controller types supported by the OS image"
	const noCache = "The Diff Disk Placement of type 'CacheDisk' is not supported"
	return []osDiskCase{
		{name: "default is the cache", size: "Standard_D2ds_v5", disk: local(50, ""), want: "CacheDisk"},
		{name: "too large for the cache", size: "Standard_D2ds_v5", disk: local(64, ""), want: "OS disk of Ephemeral VM with size greater " +
			"than 50 GB is not allowed for VM size Standard_D2ds_v5 when the DiffDiskPlacement is CacheDisk."},
		{name: "temporary disk", size: "Standard_D2ds_v5", disk: local(64, "ResourceDisk"), want: "ResourceDisk"},
		{name: "too large for the temporary disk", size: "Standard_D2s_v3", disk: local(30, "ResourceDisk"), want: "greater than 16 GB"},
		{name: "no local disk", size: "Standard_D2s_v5", disk: local(30, ""), want: noCache},
		{name: "NVMe", size: "Standard_D2ds_v6", disk: local(100, ""), want: "NvmeDisk"},
		{name: "no cache", size: "Standard_D2ds_v6", disk: local(100, "CacheDisk"), want: noCache},
		{name: "NVMe size", size: "Standard_D2s_v6", want: "NVMe"},
		{name: "image without NVMe", size: "Standard_D2s_v6", image: "server-gen1", want: cannotBoot},
		{name: "SCSI at an NVMe size", size: "Standard_D2s_v6", controller: "SCSI", want: "cannot boot with DiskControllerType 'SCSI'"},
		{name: "NVMe at a SCSI size", size: "Standard_D2s_v5", controller: "NVMe", want: "cannot boot with DiskControllerType 'NVMe'"},
	}
}

func (c osDiskCase) fill(model behaviour.Object) {
	if c.disk != nil {
		behaviour.Set(model, "storageProfile.osDisk", behaviour.Clone(c.disk))
	}
	if c.controller != "" {
		behaviour.Set(model, "storageProfile.diskControllerType", c.controller)
	}
	if c.image != "" {
		behaviour.Set(model, "storageProfile.imageReference.sku", c.image)
	}
}

// changedSet returns the body of a scale set after change.
func changedSet(change func(doc behaviour.Object)) string {
	var doc behaviour.Object
	if err := json.Unmarshal([]byte(model{capacity: 1}.json()), &doc); err != nil {
		panic(err)
	}
	change(doc)
	return text(doc)
}

// TestOSDiskFitsToSize checks the room of ephemeral OS disks, and the disk controllers of images, for machines and for scale sets.
func TestOSDiskFitsToSize(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	for _, tt := range osDiskCases() {
		t.Run(tt.name, func(t *testing.T) {
			w := subscription{TB: t, Azure: w.With(t)}
			body := machineBody(nic, func(d behaviour.Object) {
				behaviour.Set(d, "properties.hardwareProfile.vmSize", tt.size)
				tt.fill(behaviour.Sub(d, "properties"))
			})
			got := w.do("PUT", machine, body)
			if answer := text(got.Body); !strings.Contains(answer, tt.want) {
				t.Errorf("machine: %d %s\nwant %s", got.Status, answer, tt.want)
			}
			if got.Status < 300 {
				w.must("DELETE", machine, "")
			}
			got = w.do("PUT", set, changedSet(func(d behaviour.Object) {
				behaviour.Set(d, "sku.name", tt.size)
				behaviour.Set(d, "properties.virtualMachineProfile.storageProfile.imageReference", behaviour.Object{
					"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"})
				tt.fill(behaviour.Sub(d, "properties.virtualMachineProfile"))
			}))
			if answer := text(got.Body); !strings.Contains(answer, tt.want) {
				t.Errorf("scale set: %d %s\nwant %s", got.Status, answer, tt.want)
			}
			if got.Status < 300 {
				w.must("DELETE", set, "")
			}
		})
	}
}

// TestAcceleratedNetworkingOfSizes checks that accelerated networking is refused for a size without it.
func TestAcceleratedNetworkingOfSizes(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	w.must("PUT", nic, `{"location":"eastus","properties":{"enableAcceleratedNetworking":true,"ipConfigurations":[{"name":"ip",
		"properties":{"subnet":{"id":"`+subnet+`"}}}]}}`)
	size := func(path, name string) func(behaviour.Object) {
		return func(d behaviour.Object) { behaviour.Set(d, path, name) }
	}
	w.refused("PUT", machine, machineBody(nic, size("properties.hardwareProfile.vmSize", "Standard_B2s")), 400,
		"VMSizeIsNotPermittedToEnableAcceleratedNetworking")
	w.must("PUT", machine, machineBody(nic, size("properties.hardwareProfile.vmSize", "Standard_D2s_v3")))
	w.refused("PUT", set, changedSet(func(d behaviour.Object) {
		behaviour.Set(d, "sku.name", "Standard_B2s")
		for _, config := range behaviour.Objects(d, "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations") {
			behaviour.Set(config, "properties.enableAcceleratedNetworking", true)
		}
	}), 400, "VMSizeIsNotPermittedToEnableAcceleratedNetworkingForVmss")
}
