package contract

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

const size = "Standard_D2s_v3"

func computeID(kind, name string) azure.ID { return id("Microsoft.Compute/"+kind, name) }

func TestComputeLives(t *testing.T) {
	lives(t, []lifecase{
		{"disk", disks().run},
		{"snapshot", snapshots().run},
		{"availability set", availabilitySets().run},
		{"virtual machine", machines().run},
		{"scale set", scaleSets().run},
	})
}

func disks() life[armcompute.Disk] {
	return life[armcompute.Disk]{
		want: func(string) armcompute.Disk {
			return armcompute.Disk{Location: new(region), SKU: &armcompute.DiskSKU{Name: new(armcompute.DiskStorageAccountTypesPremiumLRS)},
				Properties: &armcompute.DiskProperties{DiskSizeGB: new(int32(32)),
					CreationData: &armcompute.CreationData{CreateOption: new(armcompute.DiskCreateOptionEmpty)}}}
		},
		put: func(a *local, name string, r armcompute.Disk) (armcompute.Disk, error) {
			got, err := ended(a.compute.NewDisksClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.Disk, err
		},
		get: func(a *local, name string) (armcompute.Disk, error) {
			got, err := a.compute.NewDisksClient().Get(a.Context(), group, name, nil)
			return got.Disk, err
		},
		list: func(a *local) ([]*armcompute.Disk, error) {
			return every(a.compute.NewDisksClient().NewListByResourceGroupPager(group, nil),
				func(p armcompute.DisksClientListByResourceGroupResponse) []*armcompute.Disk { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.compute.NewDisksClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armcompute.Disk) *string { return r.ID },
		change: func(r *armcompute.Disk) { r.Properties.DiskSizeGB = new(int32(64)) },
		changed: func(r *armcompute.Disk) bool {
			return *r.Properties.DiskSizeGB == 64 && *r.Properties.DiskState == armcompute.DiskStateUnattached
		},
	}
}

func snapshots() life[armcompute.Snapshot] {
	return life[armcompute.Snapshot]{
		given: func(a *local) {
			_, err := disks().put(a, "disk", disks().want(""))
			a.must(err)
		},
		want: func(string) armcompute.Snapshot {
			return armcompute.Snapshot{Location: new(region), Properties: &armcompute.SnapshotProperties{Incremental: new(true),
				CreationData: &armcompute.CreationData{CreateOption: new(armcompute.DiskCreateOptionCopy),
					SourceResourceID: new(string(computeID("disks", "disk")))}}}
		},
		put: func(a *local, name string, r armcompute.Snapshot) (armcompute.Snapshot, error) {
			got, err := ended(a.compute.NewSnapshotsClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.Snapshot, err
		},
		get: func(a *local, name string) (armcompute.Snapshot, error) {
			got, err := a.compute.NewSnapshotsClient().Get(a.Context(), group, name, nil)
			return got.Snapshot, err
		},
		list: func(a *local) ([]*armcompute.Snapshot, error) {
			return every(a.compute.NewSnapshotsClient().NewListByResourceGroupPager(group, nil),
				func(p armcompute.SnapshotsClientListByResourceGroupResponse) []*armcompute.Snapshot { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.compute.NewSnapshotsClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armcompute.Snapshot) *string { return r.ID },
		change: func(r *armcompute.Snapshot) { r.Tags = tags("judge") },
		changed: func(r *armcompute.Snapshot) bool {
			return tagged(r.Tags, "judge") && *r.Properties.DiskSizeGB == 32
		},
	}
}

func availabilitySets() life[armcompute.AvailabilitySet] {
	return life[armcompute.AvailabilitySet]{
		want: func(string) armcompute.AvailabilitySet {
			return armcompute.AvailabilitySet{Location: new(region), SKU: &armcompute.SKU{Name: new("Aligned")},
				Properties: &armcompute.AvailabilitySetProperties{PlatformFaultDomainCount: new(int32(2)),
					PlatformUpdateDomainCount: new(int32(5))}}
		},
		put: func(a *local, name string, r armcompute.AvailabilitySet) (armcompute.AvailabilitySet, error) {
			got, err := a.compute.NewAvailabilitySetsClient().CreateOrUpdate(a.Context(), group, name, r, nil)
			return got.AvailabilitySet, err
		},
		get: func(a *local, name string) (armcompute.AvailabilitySet, error) {
			got, err := a.compute.NewAvailabilitySetsClient().Get(a.Context(), group, name, nil)
			return got.AvailabilitySet, err
		},
		list: func(a *local) ([]*armcompute.AvailabilitySet, error) {
			return every(a.compute.NewAvailabilitySetsClient().NewListPager(group, nil),
				func(p armcompute.AvailabilitySetsClientListResponse) []*armcompute.AvailabilitySet { return p.Value })
		},
		remove: func(a *local, name string) error {
			_, err := a.compute.NewAvailabilitySetsClient().Delete(a.Context(), group, name, nil)
			return err
		},
		id:      func(r *armcompute.AvailabilitySet) *string { return r.ID },
		change:  func(r *armcompute.AvailabilitySet) { r.Tags = tags("judge") },
		changed: func(r *armcompute.AvailabilitySet) bool { return tagged(r.Tags, "judge") },
	}
}

func ubuntu() *armcompute.ImageReference {
	return &armcompute.ImageReference{Publisher: new("Canonical"), Offer: new("0001-com-ubuntu-server-jammy"), SKU: new("22_04-lts-gen2"),
		Version: new("latest")}
}

func machine(name string) armcompute.VirtualMachine {
	return armcompute.VirtualMachine{Location: new(region), Properties: &armcompute.VirtualMachineProperties{
		HardwareProfile: &armcompute.HardwareProfile{VMSize: new(armcompute.VirtualMachineSizeTypes(size))},
		StorageProfile: &armcompute.StorageProfile{ImageReference: ubuntu(), OSDisk: &armcompute.OSDisk{
			CreateOption: new(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: new(armcompute.DiskDeleteOptionTypesDelete)}},
		OSProfile: &armcompute.OSProfile{ComputerName: new(name), AdminUsername: new("kaz"), AdminPassword: new("not-a-real-password-1")},
		NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{
			{ID: new(string(networkID("networkInterfaces", "nic-"+name))),
				Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: new(true)}}}},
	}}
}

func machines() life[armcompute.VirtualMachine] {
	return life[armcompute.VirtualMachine]{
		given: func(a *local) {
			networkInterfaces().given(a)
			for _, name := range []string{"nic-one", "nic-Two"} {
				_, err := networkInterfaces().put(a, name, networkInterface("nodes"))
				a.must(err)
			}
		},
		want: machine,
		put: func(a *local, name string, r armcompute.VirtualMachine) (armcompute.VirtualMachine, error) {
			got, err := ended(a.compute.NewVirtualMachinesClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.VirtualMachine, err
		},
		get: func(a *local, name string) (armcompute.VirtualMachine, error) {
			got, err := a.compute.NewVirtualMachinesClient().Get(a.Context(), group, name, nil)
			return got.VirtualMachine, err
		},
		list: func(a *local) ([]*armcompute.VirtualMachine, error) {
			return every(a.compute.NewVirtualMachinesClient().NewListPager(group, nil),
				func(p armcompute.VirtualMachinesClientListResponse) []*armcompute.VirtualMachine { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.compute.NewVirtualMachinesClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armcompute.VirtualMachine) *string { return r.ID },
		change: func(r *armcompute.VirtualMachine) { r.Tags = tags("judge") },
		changed: func(r *armcompute.VirtualMachine) bool {
			return tagged(r.Tags, "judge") && *r.Properties.StorageProfile.ImageReference.SKU == "22_04-lts-gen2"
		},
	}
}

// givenMachine is one machine that runs.
func givenMachine(a *local) {
	a.group()
	machines().given(a)
	_, err := machines().put(a, "one", machine("one"))
	a.must(err)
}

func dataDisk(lun int32, name string) *armcompute.DataDisk {
	return &armcompute.DataDisk{Lun: new(lun), Name: new(name), CreateOption: new(armcompute.DiskCreateOptionTypesAttach),
		Caching:     new(armcompute.CachingTypesReadOnly),
		ManagedDisk: &armcompute.ManagedDiskParameters{ID: new(string(computeID("disks", name)))}}
}

func TestDisksAreAttachedAndDetached(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		_, err := disks().put(a, "data", disks().want(""))
		a.must(err)
		vm, err := machines().get(a, "one")
		a.must(err)
		vm.Properties.StorageProfile.DataDisks = []*armcompute.DataDisk{dataDisk(0, "data")}
		_, err = machines().put(a, "one", vm)
		a.must(err)

		disk, err := disks().get(a, "data")
		a.must(err)
		has(a, "owner of the disk", disk.ManagedBy, string(computeID("virtualMachines", "one")))
		has(a, "state of the disk", disk.Properties.DiskState, armcompute.DiskStateAttached)
		a.refused(disks().remove(a, "data"), http.StatusConflict, "OperationNotAllowed")
		_, err = machines().put(a, "Two", machine("Two"))
		a.must(err)
		second, err := machines().get(a, "Two")
		a.must(err)
		second.Properties.StorageProfile.DataDisks = []*armcompute.DataDisk{dataDisk(0, "data")}
		_, err = machines().put(a, "Two", second)
		a.refused(err, http.StatusConflict, "ConflictingUserInput")

		vm, err = machines().get(a, "one")
		a.must(err)
		vm.Properties.StorageProfile.DataDisks = []*armcompute.DataDisk{}
		_, err = machines().put(a, "one", vm)
		a.must(err)
		disk, err = disks().get(a, "data")
		a.must(err)
		if disk.ManagedBy != nil || *disk.Properties.DiskState != armcompute.DiskStateUnattached {
			a.Errorf("after it was detached the disk is %s of %v", *disk.Properties.DiskState, disk.ManagedBy)
		}
		a.must(disks().remove(a, "data"))
	})
}

// power is the power state in a machine's statuses.
func power(statuses []*armcompute.InstanceViewStatus) string {
	for _, s := range statuses {
		if state, ok := strings.CutPrefix(*s.Code, "PowerState/"); ok {
			return state
		}
	}
	return ""
}

func TestMachinesArePoweredOnAndOff(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		c := a.compute.NewVirtualMachinesClient()
		is := func(want string) {
			a.Helper()
			view, err := c.InstanceView(a.Context(), group, "one", nil)
			a.must(err)
			if got := power(view.Statuses); got != want {
				a.Errorf("the machine is %s, want %s", got, want)
			}
			whole, err := c.Get(a.Context(), group, "one",
				&armcompute.VirtualMachinesClientGetOptions{Expand: new(armcompute.InstanceViewTypesInstanceView)})
			a.must(err)
			if got := power(whole.Properties.InstanceView.Statuses); got != want {
				a.Errorf("the machine with its instance view is %s, want %s", got, want)
			}
		}
		is("running")
		a.must(gone(c.BeginPowerOff(a.Context(), group, "one", nil)))
		is("stopped")
		a.must(gone(c.BeginDeallocate(a.Context(), group, "one", nil)))
		is("deallocated")
		a.must(gone(c.BeginStart(a.Context(), group, "one", nil)))
		is("running")
		a.must(gone(c.BeginRestart(a.Context(), group, "one", nil)))
		is("running")
	})
}

// A machine takes its OS disk along as it was told to, and not its interface.
func TestWhatGoesWithAMachine(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		nic, err := networkInterfaces().get(a, "nic-one")
		a.must(err)
		has(a, "machine of the interface", nic.Properties.VirtualMachine.ID, string(computeID("virtualMachines", "one")))
		has(a, "interface is primary", nic.Properties.Primary, true)
		a.refused(networkInterfaces().remove(a, "nic-one"), http.StatusBadRequest, "NicInUse")
		before, err := disks().list(a)
		a.must(err)
		if len(before) != 1 {
			a.Fatalf("%d disks of one machine", len(before))
		}
		a.must(machines().remove(a, "one"))
		after, err := disks().list(a)
		a.must(err)
		if len(after) != 0 {
			a.Errorf("%d disks are left of a machine whose disk was to go with it", len(after))
		}
		nic, err = networkInterfaces().get(a, "nic-one")
		a.must(err)
		if nic.Properties.VirtualMachine != nil {
			a.Errorf("the interface is still of %s", *nic.Properties.VirtualMachine.ID)
		}
		a.must(networkInterfaces().remove(a, "nic-one"))
	})
}

func TestAMachineThatIsPatched(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		got, err := ended(a.compute.NewVirtualMachinesClient().BeginUpdate(a.Context(), group, "one",
			armcompute.VirtualMachineUpdate{Tags: tags("patch")}, nil))
		a.must(err)
		if !tagged(got.Tags, "patch") {
			a.Errorf("tags after the patch: %v", got.Tags)
		}
		has(a, "size after the patch", got.Properties.HardwareProfile.VMSize, armcompute.VirtualMachineSizeTypes(size))
	})
}

func TestAccessToADisk(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := disks().put(a, "disk", disks().want(""))
		a.must(err)
		got, err := ended(a.compute.NewDisksClient().BeginGrantAccess(a.Context(), group, "disk",
			armcompute.GrantAccessData{Access: new(armcompute.AccessLevelRead), DurationInSeconds: new(int32(3600))}, nil))
		a.must(err)
		if got.AccessSAS == nil || *got.AccessSAS == "" {
			a.Error("no URL to read the disk from")
		}
		a.must(gone(a.compute.NewDisksClient().BeginRevokeAccess(a.Context(), group, "disk", nil)))
	})
}

// The catalogue names sizes with what a scheduler needs to know of them.
func TestSKUsOfARegion(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		all, err := every(a.compute.NewResourceSKUsClient().NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: new(
			"location eq '" + region + "'")}),
			func(p armcompute.ResourceSKUsClientListResponse) []*armcompute.ResourceSKU { return p.Value })
		a.must(err)
		for _, sku := range all {
			if *sku.Name != size {
				continue
			}
			capabilities := map[string]string{}
			for _, c := range sku.Capabilities {
				capabilities[*c.Name] = *c.Value
			}
			if capabilities["vCPUs"] != "2" || capabilities["MemoryGB"] != "8" || capabilities["PremiumIO"] != "True" {
				a.Errorf("capabilities of %s: %v", size, capabilities)
			}
			if n := len(sku.LocationInfo[0].Zones); n != 3 {
				a.Errorf("%s is in %d zones of %s, want 3", size, n, region)
			}
			return
		}
		a.Errorf("%s is not among the %d SKUs of %s", size, len(all), region)
	})
}

func TestComputeRefusals(t *testing.T) {
	for _, c := range []struct {
		name, code string
		status     int
		try        func(a *local) error
	}{
		{"a disk that shrinks", "OperationNotAllowed", http.StatusConflict, func(a *local) error {
			d, err := disks().put(a, "d", disks().want(""))
			a.must(err)
			d.Properties.DiskSizeGB = new(int32(16))
			_, err = disks().put(a, "d", d)
			return err
		}},
		{"an instance that is none", "NotFound", http.StatusNotFound, func(a *local) error {
			givenScaleSet(a, 1)
			_, err := a.compute.NewVirtualMachineScaleSetVMsClient().Get(a.Context(), group, "vmss", "77", nil)
			return err
		}},
		{"an instance id that is no number", "InvalidParameter", http.StatusBadRequest, func(a *local) error {
			givenScaleSet(a, 1)
			_, err := a.compute.NewVirtualMachineScaleSetVMsClient().Get(a.Context(), group, "vmss", "x", nil)
			return err
		}},
		{"a machine with an interface that is not there", "InvalidResourceReference", http.StatusBadRequest, func(a *local) error {
			machines().given(a)
			_, err := machines().put(a, "other", machine("other"))
			return err
		}},
		{"more disks than the size takes", "OperationNotAllowed", http.StatusConflict, func(a *local) error {
			machines().given(a)
			vm := machine("one")
			for i := range int32(5) {
				d := dataDisk(i, "")
				d.Name, d.ManagedDisk, d.CreateOption, d.DiskSizeGB = nil, nil, new(armcompute.DiskCreateOptionTypesEmpty), new(int32(4))
				vm.Properties.StorageProfile.DataDisks = append(vm.Properties.StorageProfile.DataDisks, d)
			}
			_, err := machines().put(a, "one", vm)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.group()
				a.refused(c.try(a), c.status, c.code)
			})
		})
	}
}

// A public address that belongs to an interface is found through the machine.
func TestAddressOfAMachine(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		_, err := publicAddresses().put(a, "ip", publicAddress())
		a.must(err)
		nic, err := networkInterfaces().get(a, "nic-one")
		a.must(err)
		nic.Properties.IPConfigurations[0].Properties.PublicIPAddress = &armnetwork.PublicIPAddress{ID: new(string(networkID(
			"publicIPAddresses", "ip")))}
		nic, err = networkInterfaces().put(a, "nic-one", nic)
		a.must(err)
		has(a, "machine after the update of its interface", nic.Properties.VirtualMachine.ID, string(computeID("virtualMachines", "one")))
	})
}
