package contract

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/localazure/core"
)

// scaleSet is a Uniform one with instances that are in a pool and have public
// addresses of their own.
func scaleSet(capacity int64, pools ...string) armcompute.VirtualMachineScaleSet {
	configuration := &armcompute.VirtualMachineScaleSetIPConfiguration{Name: new("ipconfig"),
		Properties: &armcompute.VirtualMachineScaleSetIPConfigurationProperties{
			Primary: new(true),
			Subnet:  &armcompute.APIEntityReference{ID: new(string(networkID("virtualNetworks", "vnet").Child("subnets", "nodes")))},
			PublicIPAddressConfiguration: &armcompute.VirtualMachineScaleSetPublicIPAddressConfiguration{Name: new("public"),
				SKU:        &armcompute.PublicIPAddressSKU{Name: new(armcompute.PublicIPAddressSKUNameStandard)},
				Properties: &armcompute.VirtualMachineScaleSetPublicIPAddressConfigurationProperties{IdleTimeoutInMinutes: new(int32(10))}},
		}}
	for _, pool := range pools {
		configuration.Properties.LoadBalancerBackendAddressPools = append(configuration.Properties.LoadBalancerBackendAddressPools,
			&armcompute.SubResource{ID: new(pool)})
	}
	return armcompute.VirtualMachineScaleSet{
		Location: new(region), SKU: &armcompute.SKU{Name: new(size), Capacity: new(capacity)},
		Zones: []*string{new("1"), new("2"), new("3")},
		Properties: &armcompute.VirtualMachineScaleSetProperties{
			Overprovision: new(false), SinglePlacementGroup: new(false),
			UpgradePolicy: &armcompute.UpgradePolicy{Mode: new(armcompute.UpgradeModeManual)},
			VirtualMachineProfile: &armcompute.VirtualMachineScaleSetVMProfile{
				OSProfile: &armcompute.VirtualMachineScaleSetOSProfile{ComputerNamePrefix: new("node"), AdminUsername: new("kaz"),
					AdminPassword: new("not-a-real-password-1")},
				StorageProfile: &armcompute.VirtualMachineScaleSetStorageProfile{ImageReference: ubuntu(),
					OSDisk: &armcompute.VirtualMachineScaleSetOSDisk{CreateOption: new(armcompute.DiskCreateOptionTypesFromImage)}},
				NetworkProfile: &armcompute.VirtualMachineScaleSetNetworkProfile{NetworkInterfaceConfigurations: []*armcompute.VirtualMachineScaleSetNetworkConfiguration{
					{Name: new("nic"),
						Properties: &armcompute.VirtualMachineScaleSetNetworkConfigurationProperties{Primary: new(true),
							EnableIPForwarding: new(true),
							IPConfigurations:   []*armcompute.VirtualMachineScaleSetIPConfiguration{configuration}}}}},
			}},
	}
}

func scaleSets() life[armcompute.VirtualMachineScaleSet] {
	return life[armcompute.VirtualMachineScaleSet]{
		given: func(a *local) { networkInterfaces().given(a) },
		want:  func(string) armcompute.VirtualMachineScaleSet { return scaleSet(2) },
		put: func(a *local, name string, r armcompute.VirtualMachineScaleSet) (armcompute.VirtualMachineScaleSet, error) {
			got, err := ended(a.compute.NewVirtualMachineScaleSetsClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.VirtualMachineScaleSet, err
		},
		get: func(a *local, name string) (armcompute.VirtualMachineScaleSet, error) {
			got, err := a.compute.NewVirtualMachineScaleSetsClient().Get(a.Context(), group, name, nil)
			return got.VirtualMachineScaleSet, err
		},
		list: func(a *local) ([]*armcompute.VirtualMachineScaleSet, error) {
			return every(a.compute.NewVirtualMachineScaleSetsClient().NewListPager(group, nil),
				func(p armcompute.VirtualMachineScaleSetsClientListResponse) []*armcompute.VirtualMachineScaleSet {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			return gone(a.compute.NewVirtualMachineScaleSetsClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:      func(r *armcompute.VirtualMachineScaleSet) *string { return r.ID },
		change:  func(r *armcompute.VirtualMachineScaleSet) { r.SKU.Capacity = new(int64(3)) },
		changed: func(r *armcompute.VirtualMachineScaleSet) bool { return *r.SKU.Capacity == 3 },
	}
}

// givenScaleSet is a scale set "vmss" in its network.
func givenScaleSet(a *local, capacity int64, pools ...string) {
	a.Helper()
	if _, err := virtualNetworks().get(a, "vnet"); err != nil {
		_, err = virtualNetworks().put(a, "vnet", virtualNetwork("nodes"))
		a.must(err)
	}
	_, err := scaleSets().put(a, "vmss", scaleSet(capacity, pools...))
	a.must(err)
}

func instances(a *local, expand string) []*armcompute.VirtualMachineScaleSetVM {
	a.Helper()
	o := &armcompute.VirtualMachineScaleSetVMsClientListOptions{}
	if expand != "" {
		o.Expand = &expand
	}
	all, err := every(a.compute.NewVirtualMachineScaleSetVMsClient().NewListPager(group, "vmss", o),
		func(p armcompute.VirtualMachineScaleSetVMsClientListResponse) []*armcompute.VirtualMachineScaleSetVM {
			return p.Value
		})
	a.must(err)
	return all
}

func instanceIDs(a *local) []string {
	a.Helper()
	var ids []string
	for _, i := range instances(a, "") {
		ids = append(ids, *i.InstanceID)
	}
	slices.Sort(ids)
	return ids
}

func TestInstancesOfAScaleSet(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		givenScaleSet(a, 3)
		all := instances(a, "instanceView")
		if len(all) != 3 {
			a.Fatalf("%d instances, want 3", len(all))
		}
		zones, names := map[string]int{}, map[string]bool{}
		for _, i := range all {
			zones[*i.Zones[0]]++
			names[*i.Properties.OSProfile.ComputerName] = true
			has(a, "name", i.Name, "vmss_"+*i.InstanceID)
			has(a, "latest model", i.Properties.LatestModelApplied, true)
			if got := power(i.Properties.InstanceView.Statuses); got != "running" {
				a.Errorf("instance %s is %s, want running", *i.InstanceID, got)
			}
		}
		if len(zones) != 3 || len(names) != 3 {
			a.Errorf("three instances have zones %v and computer names %v", zones, names)
		}

		id := *all[0].InstanceID
		c := a.compute.NewVirtualMachineScaleSetVMsClient()
		one, err := c.Get(a.Context(), group, "vmss", id,
			&armcompute.VirtualMachineScaleSetVMsClientGetOptions{Expand: new(armcompute.InstanceViewTypesInstanceView)})
		a.must(err)
		if got := power(one.Properties.InstanceView.Statuses); got != "running" {
			a.Errorf("the instance is %s, want running", got)
		}
		view, err := c.GetInstanceView(a.Context(), group, "vmss", id, nil)
		a.must(err)
		if got := power(view.Statuses); got != "running" {
			a.Errorf("the instance view says %s, want running", got)
		}
		whole, err := a.compute.NewVirtualMachineScaleSetsClient().GetInstanceView(a.Context(), group, "vmss", nil)
		a.must(err)
		counts := map[string]int32{}
		for _, s := range whole.VirtualMachine.StatusesSummary {
			counts[*s.Code] = *s.Count
		}
		if counts["ProvisioningState/succeeded"] != 3 {
			a.Errorf("the scale set's view counts %v", counts)
		}
	})
}

func TestNetworkOfInstances(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		loadBalancers().given(a)
		lb := loadBalancer("one")
		lb.Properties.OutboundRules = nil
		_, err := loadBalancers().put(a, "one", lb)
		a.must(err)
		pool := balancerID("one").Child("backendAddressPools", "nodes")
		givenScaleSet(a, 2, string(pool))
		id := instanceIDs(a)[0]

		c := a.network.NewInterfacesClient()
		all, err := every(c.NewListVirtualMachineScaleSetNetworkInterfacesPager(group, "vmss", nil),
			func(p armnetwork.InterfacesClientListVirtualMachineScaleSetNetworkInterfacesResponse) []*armnetwork.Interface {
				return p.Value
			})
		a.must(err)
		if len(all) != 2 {
			a.Errorf("%d interfaces of the scale set, want 2", len(all))
		}
		own, err := every(c.NewListVirtualMachineScaleSetVMNetworkInterfacesPager(group, "vmss", id, nil),
			func(p armnetwork.InterfacesClientListVirtualMachineScaleSetVMNetworkInterfacesResponse) []*armnetwork.Interface {
				return p.Value
			})
		a.must(err)
		if len(own) != 1 {
			a.Fatalf("%d interfaces of an instance, want 1", len(own))
		}
		nic, err := c.GetVirtualMachineScaleSetNetworkInterface(a.Context(), group, "vmss", id, "nic", nil)
		a.must(err)
		machine := computeID("virtualMachineScaleSets", "vmss").Child("virtualMachines", id)
		has(a, "machine of the interface", nic.Properties.VirtualMachine.ID, string(machine))
		has(a, "interface is primary", nic.Properties.Primary, true)
		configuration, err := c.GetVirtualMachineScaleSetIPConfiguration(a.Context(), group, "vmss", id, "nic", "ipconfig", nil)
		a.must(err)
		if configuration.Properties.PrivateIPAddress == nil || *configuration.Properties.PrivateIPAddress == "" {
			a.Error("the instance has no private address")
		}
		has(a, "pool of the instance", configuration.Properties.LoadBalancerBackendAddressPools[0].ID, string(pool))

		public, err := every(a.network.NewPublicIPAddressesClient().NewListVirtualMachineScaleSetPublicIPAddressesPager(group, "vmss", nil),
			func(p armnetwork.PublicIPAddressesClientListVirtualMachineScaleSetPublicIPAddressesResponse) []*armnetwork.PublicIPAddress {
				return p.Value
			})
		a.must(err)
		if len(public) != 2 {
			a.Errorf("%d public addresses of two instances", len(public))
		}
		address, err := a.network.NewPublicIPAddressesClient().GetVirtualMachineScaleSetPublicIPAddress(a.Context(), group, "vmss", id,
			"nic", "ipconfig", "public", nil)
		a.must(err)
		if address.Properties.IPAddress == nil {
			a.Error("the public address of the instance has no address")
		}

		members, err := a.network.NewLoadBalancerBackendAddressPoolsClient().Get(a.Context(), group, "one", "nodes", nil)
		a.must(err)
		if n := len(members.Properties.BackendIPConfigurations); n != 2 {
			a.Errorf("the pool shows %d members, want 2", n)
		}
	})
}

func TestAScaleSetGrowsAndShrinks(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		givenScaleSet(a, 2)
		old := instanceIDs(a)
		c := a.compute.NewVirtualMachineScaleSetsClient()
		_, err := ended(c.BeginUpdate(a.Context(), group, "vmss",
			armcompute.VirtualMachineScaleSetUpdate{SKU: &armcompute.SKU{Capacity: new(int64(5))}}, nil))
		a.must(err)
		grown := instanceIDs(a)
		if len(grown) != 5 {
			a.Fatalf("instances after growing to five: %v", grown)
		}
		a.must(gone(c.BeginDeleteInstances(a.Context(), group, "vmss",
			armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: []*string{&old[0]}}, nil)))
		left := instanceIDs(a)
		if len(left) != 4 || slices.Contains(left, old[0]) {
			a.Errorf("instances after the delete of %s: %v", old[0], left)
		}
		set, err := scaleSets().get(a, "vmss")
		a.must(err)
		has(a, "capacity after the delete of an instance", set.SKU.Capacity, 4)

		vms := a.compute.NewVirtualMachineScaleSetVMsClient()
		a.must(gone(vms.BeginDelete(a.Context(), group, "vmss", left[0], nil)))
		_, err = vms.Get(a.Context(), group, "vmss", left[0], nil)
		a.refused(err, http.StatusNotFound, "NotFound")
		set.SKU.Capacity = new(int64(0))
		_, err = scaleSets().put(a, "vmss", set)
		a.must(err)
		if rest := instanceIDs(a); len(rest) != 0 {
			a.Errorf("instances of a scale set without capacity: %v", rest)
		}
	})
}

func TestPowerOfInstances(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		givenScaleSet(a, 2)
		ids := instanceIDs(a)
		c := a.compute.NewVirtualMachineScaleSetVMsClient()
		is := func(id, want string) {
			a.Helper()
			view, err := c.GetInstanceView(a.Context(), group, "vmss", id, nil)
			a.must(err)
			if got := power(view.Statuses); got != want {
				a.Errorf("instance %s is %s, want %s", id, got, want)
			}
		}
		a.must(gone(c.BeginPowerOff(a.Context(), group, "vmss", ids[0], nil)))
		is(ids[0], "stopped")
		is(ids[1], "running")
		a.must(gone(c.BeginDeallocate(a.Context(), group, "vmss", ids[0], nil)))
		is(ids[0], "deallocated")
		a.must(gone(c.BeginStart(a.Context(), group, "vmss", ids[0], nil)))
		is(ids[0], "running")
		sets := a.compute.NewVirtualMachineScaleSetsClient()
		a.must(gone(sets.BeginDeallocate(a.Context(), group, "vmss", nil)))
		is(ids[0], "deallocated")
		is(ids[1], "deallocated")
	})
}

// A model that changes reaches the instances when they are upgraded.
func TestInstancesAreUpgraded(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		loadBalancers().given(a)
		lb := loadBalancer("one")
		lb.Properties.OutboundRules = nil
		_, err := loadBalancers().put(a, "one", lb)
		a.must(err)
		givenScaleSet(a, 2)
		set, err := scaleSets().get(a, "vmss")
		a.must(err)
		pool := string(balancerID("one").Child("backendAddressPools", "nodes"))
		configuration := set.Properties.VirtualMachineProfile.NetworkProfile.NetworkInterfaceConfigurations[0].Properties.IPConfigurations[0]
		configuration.Properties.LoadBalancerBackendAddressPools = []*armcompute.SubResource{{ID: &pool}}
		_, err = scaleSets().put(a, "vmss", set)
		a.must(err)
		for _, i := range instances(a, "") {
			has(a, "latest model before the upgrade", i.Properties.LatestModelApplied, false)
		}

		a.must(gone(a.compute.NewVirtualMachineScaleSetsClient().BeginUpdateInstances(a.Context(), group, "vmss",
			armcompute.VirtualMachineScaleSetVMInstanceRequiredIDs{InstanceIDs: []*string{new("*")}}, nil)))
		for _, i := range instances(a, "") {
			has(a, "latest model after the upgrade", i.Properties.LatestModelApplied, true)
		}
		members, err := a.network.NewLoadBalancerBackendAddressPoolsClient().Get(a.Context(), group, "one", "nodes", nil)
		a.must(err)
		if n := len(members.Properties.BackendIPConfigurations); n != 2 {
			a.Errorf("the pool shows %d members after the upgrade, want 2", n)
		}
	})
}

// An instance can be changed on its own: its pools, its disks.
func TestAnInstanceIsUpdated(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		loadBalancers().given(a)
		lb := loadBalancer("one")
		lb.Properties.OutboundRules = nil
		_, err := loadBalancers().put(a, "one", lb)
		a.must(err)
		givenScaleSet(a, 2)
		data := disks().want("")
		one := instances(a, "")[0]
		data.Zones = one.Zones
		_, err = disks().put(a, "data", data)
		a.must(err)

		pool := string(balancerID("one").Child("backendAddressPools", "nodes"))
		own := one.Properties.NetworkProfileConfiguration.NetworkInterfaceConfigurations[0].Properties.IPConfigurations[0]
		own.Properties.LoadBalancerBackendAddressPools = []*armcompute.SubResource{{ID: &pool}}
		one.Properties.StorageProfile.DataDisks = []*armcompute.DataDisk{dataDisk(3, "data")}
		got, err := ended(a.compute.NewVirtualMachineScaleSetVMsClient().BeginUpdate(a.Context(), group, "vmss", *one.InstanceID,
			*one, nil))
		a.must(err)
		has(a, "unit of the disk", got.Properties.StorageProfile.DataDisks[0].Lun, 3)
		disk, err := disks().get(a, "data")
		a.must(err)
		has(a, "state of the disk", disk.Properties.DiskState, armcompute.DiskStateAttached)
		members, err := a.network.NewLoadBalancerBackendAddressPoolsClient().Get(a.Context(), group, "one", "nodes", nil)
		a.must(err)
		if n := len(members.Properties.BackendIPConfigurations); n != 1 {
			a.Errorf("the pool shows %d members, want the one instance", n)
		}
	})
}

// A Flexible scale set is found through the machines in it.
func TestMachinesOfAFlexibleScaleSet(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		networkInterfaces().given(a)
		set := scaleSet(3)
		set.Zones = nil
		set.Properties.OrchestrationMode = new(armcompute.OrchestrationModeFlexible)
		set.Properties.PlatformFaultDomainCount = new(int32(1))
		set.Properties.UpgradePolicy, set.Properties.Overprovision = nil, nil
		set.Properties.VirtualMachineProfile.NetworkProfile.NetworkAPIVersion = new(armcompute.NetworkAPIVersionTwoThousandTwenty1101)
		_, err := scaleSets().put(a, "flex", set)
		a.must(err)
		id := string(computeID("virtualMachineScaleSets", "flex"))
		got, err := every(a.compute.NewVirtualMachinesClient().NewListPager(group, &armcompute.VirtualMachinesClientListOptions{
			Filter: new(fmt.Sprintf("'virtualMachineScaleSet/id' eq '%s'", id))}),
			func(p armcompute.VirtualMachinesClientListResponse) []*armcompute.VirtualMachine { return p.Value })
		a.must(err)
		if len(got) != 3 {
			a.Fatalf("%d machines of the scale set, want 3", len(got))
		}
		for _, vm := range got {
			has(a, "scale set of the machine", vm.Properties.VirtualMachineScaleSet.ID, id)
		}
		a.must(scaleSets().remove(a, "flex"))
		left, err := machines().list(a)
		a.must(err)
		if len(left) != 0 {
			a.Errorf("%d machines are left of the scale set", len(left))
		}
	})
}
