package contract

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerregistry/armcontainerregistry"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"

	"kaz/internal/localazure/core"
)

// What can be done to a machine ends well, and the machine is as before or as the
// action says.
func TestActionsOnAMachine(t *testing.T) {
	for _, c := range []struct {
		name, power string
		do          func(a *local, c *armcompute.VirtualMachinesClient) error
	}{
		{"redeploy", "running", func(a *local, c *armcompute.VirtualMachinesClient) error {
			return gone(c.BeginRedeploy(a.Context(), group, "one", nil))
		}},
		{"reapply", "running", func(a *local, c *armcompute.VirtualMachinesClient) error {
			return gone(c.BeginReapply(a.Context(), group, "one", nil))
		}},
		{"reimage", "running", func(a *local, c *armcompute.VirtualMachinesClient) error {
			return gone(c.BeginReimage(a.Context(), group, "one", nil))
		}},
		{"generalize", "stopped", func(a *local, c *armcompute.VirtualMachinesClient) error {
			a.must(gone(c.BeginPowerOff(a.Context(), group, "one", nil)))
			_, err := c.Generalize(a.Context(), group, "one", nil)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				givenMachine(a)
				vms := a.compute.NewVirtualMachinesClient()
				a.must(c.do(a, vms))
				view, err := vms.InstanceView(a.Context(), group, "one", nil)
				a.must(err)
				if got := power(view.Statuses); got != c.power {
					a.Errorf("the machine is %s, want %s", got, c.power)
				}
			})
		})
	}
}

func TestActionsOnInstances(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(a *local, c *armcompute.VirtualMachineScaleSetVMsClient, id string) error
	}{
		{"restart", func(a *local, c *armcompute.VirtualMachineScaleSetVMsClient, id string) error {
			return gone(c.BeginRestart(a.Context(), group, "vmss", id, nil))
		}},
		{"redeploy", func(a *local, c *armcompute.VirtualMachineScaleSetVMsClient, id string) error {
			return gone(c.BeginRedeploy(a.Context(), group, "vmss", id, nil))
		}},
		{"reimage", func(a *local, c *armcompute.VirtualMachineScaleSetVMsClient, id string) error {
			return gone(c.BeginReimage(a.Context(), group, "vmss", id, nil))
		}},
		{"reimage of all disks", func(a *local, c *armcompute.VirtualMachineScaleSetVMsClient, id string) error {
			return gone(c.BeginReimageAll(a.Context(), group, "vmss", id, nil))
		}},
		{"restart of all", func(a *local, _ *armcompute.VirtualMachineScaleSetVMsClient, _ string) error {
			return gone(a.compute.NewVirtualMachineScaleSetsClient().BeginRestart(a.Context(), group, "vmss", nil))
		}},
		{"reimage of some", func(a *local, _ *armcompute.VirtualMachineScaleSetVMsClient, id string) error {
			return gone(a.compute.NewVirtualMachineScaleSetsClient().BeginReimage(a.Context(), group, "vmss",
				&armcompute.VirtualMachineScaleSetsClientBeginReimageOptions{
					VMScaleSetReimageInput: &armcompute.VirtualMachineScaleSetReimageParameters{InstanceIDs: []*string{&id}}}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.group()
				givenScaleSet(a, 2)
				id := instanceIDs(a)[0]
				a.must(c.do(a, a.compute.NewVirtualMachineScaleSetVMsClient(), id))
				for _, i := range instances(a, "instanceView") {
					if got := power(i.Properties.InstanceView.Statuses); got != "running" {
						a.Errorf("instance %s is %s, want running", *i.InstanceID, got)
					}
				}
			})
		})
	}
}

// Disks can be attached and detached without a write of the whole machine.
func TestDisksAreAttachedByAction(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		givenScaleSet(a, 1)
		instance := *instances(a, "")[0]
		_, err := disks().put(a, "data", disks().want(""))
		a.must(err)
		zonal := disks().want("")
		zonal.Zones = instance.Zones
		_, err = disks().put(a, "zonal", zonal)
		a.must(err)

		vms, members := a.compute.NewVirtualMachinesClient(), a.compute.NewVirtualMachineScaleSetVMsClient()
		attach := func(name string) armcompute.AttachDetachDataDisksRequest {
			return armcompute.AttachDetachDataDisksRequest{DataDisksToAttach: []*armcompute.DataDisksToAttach{{DiskID: new(string(computeID(
				"disks", name))), Lun: new(int32(1))}}}
		}
		detach := func(name string) armcompute.AttachDetachDataDisksRequest {
			return armcompute.AttachDetachDataDisksRequest{DataDisksToDetach: []*armcompute.DataDisksToDetach{{DiskID: new(string(computeID(
				"disks", name)))}}}
		}
		// The SDK returns nothing: Azure gives no Location where the result would be. The machine shows it.
		_, err = ended(vms.BeginAttachDetachDataDisks(a.Context(), group, "one", attach("data"), nil))
		a.must(err)
		ofMachine, err := vms.Get(a.Context(), group, "one", nil)
		a.must(err)
		has(a, "unit of the machine's disk", ofMachine.Properties.StorageProfile.DataDisks[0].Lun, 1)
		_, err = ended(members.BeginAttachDetachDataDisks(a.Context(), group, "vmss", *instance.InstanceID, attach("zonal"), nil))
		a.must(err)
		ofInstance, err := members.Get(a.Context(), group, "vmss", *instance.InstanceID, nil)
		a.must(err)
		has(a, "unit of the instance's disk", ofInstance.Properties.StorageProfile.DataDisks[0].Lun, 1)
		for name, want := range map[string]armcompute.DiskState{"data": armcompute.DiskStateAttached,
			"zonal": armcompute.DiskStateAttached} {
			disk, err := disks().get(a, name)
			a.must(err)
			has(a, "state of "+name, disk.Properties.DiskState, want)
		}
		_, err = ended(vms.BeginAttachDetachDataDisks(a.Context(), group, "one", detach("data"), nil))
		a.must(err)
		_, err = ended(members.BeginAttachDetachDataDisks(a.Context(), group, "vmss", *instance.InstanceID, detach("zonal"), nil))
		a.must(err)
		for _, name := range []string{"data", "zonal"} {
			a.must(disks().remove(a, name))
		}
	})
}

// Lists of what there is and how much of it is used.
func TestCatalogues(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		sizes, err := every(a.compute.NewVirtualMachineSizesClient().NewListPager(region, nil),
			func(p armcompute.VirtualMachineSizesClientListResponse) []*armcompute.VirtualMachineSize {
				return p.Value
			})
		a.must(err)
		computes, err := every(a.compute.NewUsageClient().NewListPager(region, nil),
			func(p armcompute.UsageClientListResponse) []*armcompute.Usage { return p.Value })
		a.must(err)
		networks, err := every(a.network.NewUsagesClient().NewListPager(region, nil),
			func(p armnetwork.UsagesClientListResponse) []*armnetwork.Usage { return p.Value })
		a.must(err)
		storages, err := every(clients(a, armstorage.NewClientFactory).NewUsagesClient().NewListByLocationPager(region, nil),
			func(p armstorage.UsagesClientListByLocationResponse) []*armstorage.Usage { return p.Value })
		a.must(err)
		if len(sizes) == 0 || len(computes) == 0 || len(networks) == 0 || len(storages) == 0 {
			a.Errorf("%d sizes; usages of compute %d, network %d, storage %d", len(sizes), len(computes), len(networks), len(storages))
		}
		free, err := a.network.NewManagementClient().CheckDNSNameAvailability(a.Context(), region, "label-o", nil)
		a.must(err)
		has(a, "label is free", free.Available, true)
		_, err = publicAddresses().put(a, "ip-one", publicAddresses().want("one"))
		a.must(err)
		free, err = a.network.NewManagementClient().CheckDNSNameAvailability(a.Context(), region, "label-o", nil)
		a.must(err)
		has(a, "label is free when it is taken", free.Available, false)
	})
}

func TestFreeAddressesOfANetwork(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		networkInterfaces().given(a)
		_, err := networkInterfaces().put(a, "nic", networkInterface("nodes"))
		a.must(err)
		c := a.network.NewVirtualNetworksClient()
		taken, err := c.CheckIPAddressAvailability(a.Context(), group, "vnet", "10.1.0.4", nil)
		a.must(err)
		has(a, "the address of the interface is free", taken.Available, false)
		free, err := c.CheckIPAddressAvailability(a.Context(), group, "vnet", "10.1.0.5", nil)
		a.must(err)
		has(a, "the next one is free", free.Available, true)
		all, err := every(a.network.NewInterfaceIPConfigurationsClient().NewListPager(group, "nic", nil),
			func(p armnetwork.InterfaceIPConfigurationsClientListResponse) []*armnetwork.InterfaceIPConfiguration {
				return p.Value
			})
		a.must(err)
		has(a, "private address", all[0].Properties.PrivateIPAddress, "10.1.0.4")
	})
}

func TestServicesOfAStorageAccount(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		account(a)
		f := clients(a, armstorage.NewClientFactory)
		_, err := f.NewFileServicesClient().GetServiceProperties(a.Context(), group, "account1", nil)
		a.must(err)
		_, err = f.NewFileServicesClient().SetServiceProperties(a.Context(), group, "account1", armstorage.FileServiceProperties{
			FileServiceProperties: &armstorage.FileServicePropertiesProperties{ShareDeleteRetentionPolicy: &armstorage.DeleteRetentionPolicy{Enabled: new(false)}}}, nil)
		a.must(err)
		files, err := f.NewFileServicesClient().GetServiceProperties(a.Context(), group, "account1", nil)
		a.must(err)
		has(a, "retention of shares", files.FileServiceProperties.FileServiceProperties.ShareDeleteRetentionPolicy.Enabled, false)
		_, err = f.NewBlobServicesClient().GetServiceProperties(a.Context(), group, "account1", nil)
		a.must(err)
		keys, err := f.NewAccountsClient().ListKeys(a.Context(), group, "account1", nil)
		a.must(err)
		renewed, err := f.NewAccountsClient().RegenerateKey(a.Context(), group, "account1",
			armstorage.AccountRegenerateKeyParameters{KeyName: new("key1")}, nil)
		a.must(err)
		if *renewed.Keys[0].Value == *keys.Keys[0].Value || *renewed.Keys[1].Value != *keys.Keys[1].Value {
			a.Error("not the first key and only that was renewed")
		}
	})
}

func TestUseOfARegistry(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		r := registries().want("")
		r.Properties = &armcontainerregistry.RegistryProperties{AdminUserEnabled: new(true)}
		_, err := registries().put(a, "registryone", r)
		a.must(err)
		c := clients(a, armcontainerregistry.NewClientFactory).NewRegistriesClient()
		logins, err := c.ListCredentials(a.Context(), group, "registryone", nil)
		a.must(err)
		has(a, "user", logins.Username, "registryone")
		renewed, err := c.RegenerateCredential(a.Context(), group, "registryone",
			armcontainerregistry.RegenerateCredentialParameters{Name: new(armcontainerregistry.PasswordNamePassword)}, nil)
		a.must(err)
		if *renewed.Passwords[0].Value == *logins.Passwords[0].Value {
			a.Error("the password is the same as before")
		}
		_, err = c.ListUsages(a.Context(), group, "registryone", nil)
		a.must(err)
		free, err := c.CheckNameAvailability(a.Context(),
			armcontainerregistry.RegistryNameCheckRequest{Name: new("registryone"), Type: new("Microsoft.ContainerRegistry/registries")},
			nil)
		a.must(err)
		has(a, "name is free", free.NameAvailable, false)
	})
}

// Pages of instances keep what the first request asked for.
func TestPagesOfInstances(t *testing.T) {
	const capacity = 500
	inBubble(t, core.Options{}, func(a *local) {
		a.group()
		givenScaleSet(a, capacity)
		seen := map[string]bool{}
		for _, i := range instances(a, "instanceView") {
			if i.Properties.InstanceView == nil {
				a.Fatalf("instance %s of a later page has no instance view", *i.InstanceID)
			}
			seen[*i.InstanceID] = true
		}
		if len(seen) != capacity {
			a.Errorf("%d instances, want %d", len(seen), capacity)
		}
	})
}
