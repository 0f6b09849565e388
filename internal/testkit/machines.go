package testkit

import (
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// The orchestration modes of scale sets.
const (
	Uniform  = "Uniform"
	Flexible = "Flexible"
)

// nodesSubnet is the subnet of the machines.
const nodesSubnet azure.ID = VNet + "/subnets/nodes"

// AddScaleSet creates a scale set with count machines.
func (a *Azure) AddScaleSet(name, mode string, count int, zones ...string) azure.ID {
	a.t.Helper()
	id := Group.Resource(compute.ScaleSets, name)
	a.PutScaleSet(id, name+"-", mode, count, zones...)
	return id
}

// PutScaleSet creates a scale set in any resource group. prefix starts the computer names.
func (a *Azure) PutScaleSet(id azure.ID, prefix, mode string, count int, zones ...string) {
	a.t.Helper()
	if !id.Parent().Equal(Group) {
		a.Put(id.Parent(), object{"location": Location})
	}
	properties := object{
		"orchestrationMode": mode,
		"virtualMachineProfile": object{
			"osProfile": object{
				"computerNamePrefix": prefix, "adminUsername": "kaz",
				"linuxConfiguration": object{"disablePasswordAuthentication": true},
			},
			"storageProfile": storage("Premium_LRS"),
			"networkProfile": object{"networkInterfaceConfigurations": []object{{
				"name": "nic", "properties": object{"primary": true, "ipConfigurations": []object{{
					"name": "ipconfig", "properties": object{"subnet": object{"id": nodesSubnet}, "primary": true},
				}}},
			}}},
		},
	}
	if mode == Uniform {
		properties["upgradePolicy"] = object{"mode": "Manual"}
	} else {
		properties["platformFaultDomainCount"] = 1
	}
	body := object{
		"location": Location, "properties": properties,
		"sku": object{"name": "Standard_D2s_v5", "tier": "Standard", "capacity": count},
	}
	if len(zones) > 0 {
		body["zones"] = zones
	}
	a.Put(id, body)
}

func storage(disk string) object {
	return object{
		"osDisk":         object{"createOption": "FromImage", "managedDisk": object{"storageAccountType": disk}},
		"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
	}
}

// AddAvailabilitySet creates an availability set.
func (a *Azure) AddAvailabilitySet(name string) azure.ID {
	a.t.Helper()
	id := Group.Resource("Microsoft.Compute/availabilitySets", name)
	a.Put(id, object{"location": Location, "sku": object{"name": "Aligned"}})
	return id
}

// VirtualMachine describes a virtual machine outside uniform scale sets.
type VirtualMachine struct {
	Name            string
	Group           azure.ID // empty means the cluster's
	InterfaceGroup  azure.ID // of the network interface; empty means the machine's
	AvailabilitySet azure.ID
	Zone            string
	// Public adds a public address, Dual an IPv6 address.
	Public, Dual bool
}

// AddMachine creates a virtual machine with a network interface.
func (a *Azure) AddMachine(m VirtualMachine) azure.ID {
	a.t.Helper()
	group := m.Group
	if group == "" {
		group = Group
	} else {
		a.Put(group, object{"location": Location})
	}
	address := object{"subnet": object{"id": nodesSubnet}, "primary": true}
	if m.Public {
		public := group.Resource(network.PublicIPAddresses, m.Name+"-ip")
		a.Put(public,
			object{"location": Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
		address["publicIPAddress"] = object{"id": public}
	}
	addresses := []object{{"name": "ipv4", "properties": address}}
	if m.Dual {
		addresses = append(addresses,
			object{"name": "ipv6", "properties": object{"subnet": object{"id": nodesSubnet}, "privateIPAddressVersion": "IPv6"}})
	}
	nic := group.Resource(network.Interfaces, m.Name+"-nic")
	if m.InterfaceGroup != "" {
		a.Put(m.InterfaceGroup, object{"location": Location})
		nic = m.InterfaceGroup.Resource(network.Interfaces, m.Name+"-nic")
	}
	a.Put(nic, object{"location": Location, "properties": object{"ipConfigurations": addresses}})
	properties := object{
		"hardwareProfile": object{"vmSize": "Standard_D2s_v5"},
		"osProfile": object{"computerName": m.Name, "adminUsername": "kaz",
			"linuxConfiguration": object{"disablePasswordAuthentication": true}},
		"storageProfile": storage("Premium_LRS"),
		"networkProfile": object{"networkInterfaces": []object{{"id": nic, "properties": object{"primary": true}}}},
	}
	body := object{"location": Location, "properties": properties}
	if m.AvailabilitySet != "" {
		properties["availabilitySet"] = object{"id": m.AvailabilitySet}
	}
	if m.Zone != "" {
		body["zones"] = []string{m.Zone}
	}
	id := group.Resource(compute.VirtualMachines, m.Name)
	a.Put(id, body)
	return id
}
