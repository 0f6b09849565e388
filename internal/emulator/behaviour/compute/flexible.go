package compute

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/network"
)

// flexMembers are the ids of the virtual machines of a flexible scale set, oldest
// first.
func flexMembers(w behaviour.World, set azure.ID) []azure.ID {
	var ids []azure.ID
	for _, r := range w.Referrers(set) {
		if r.Path == "properties.virtualMachineScaleSet" && r.Resource.Is(machineType) {
			ids = append(ids, r.Resource)
		}
	}
	age := func(id azure.ID) string {
		doc, _ := w.Get(id)
		return behaviour.Text(doc, "properties.timeCreated") + id.Key()
	}
	slices.SortFunc(ids, func(a, b azure.ID) int { return strings.Compare(age(a), age(b)) })
	return slices.Compact(ids)
}

// growFlexible adds n virtual machines with interfaces of their own.
func growFlexible(c *behaviour.Call, all []member, n int) error {
	if n <= 0 {
		return nil
	}
	f := flexBuilder{call: c, addresses: newAddresses(c.World), taken: map[string]bool{}}
	for _, m := range all {
		f.taken[m.id.Key()] = true
	}
	place := newPlacement(c.Doc, all)
	for range n {
		zone, domain := place.next()
		if err := f.create(zone, domain); err != nil {
			return err
		}
	}
	return nil
}

type flexBuilder struct {
	call      *behaviour.Call
	addresses *addresses
	taken     map[string]bool
}

// create makes one machine, named after the scale set and eight random digits.
func (f flexBuilder) create(zone string, domain int) error {
	c := f.call
	suffix := f.suffix()
	id := groupOf(c.ID).Resource(machineType, c.ID.Name()+"_"+suffix)
	model := behaviour.Clone(behaviour.Sub(c.Doc, profilePath))
	storage := behaviour.Sub(model, "storageProfile")
	exactVersion(storage, imageOf(behaviour.Object{"properties": model}))
	diskName := id.Name() + "_OsDisk_1_" + hex32(c)
	behaviour.Set(storage, "osDisk.name", diskName)
	behaviour.Default(storage, "osDisk.deleteOption", "Delete")
	disk := groupOf(c.ID).Resource(diskType, diskName)
	behaviour.Set(storage, "osDisk.managedDisk.id", string(disk))
	behaviour.Default(storage, "dataDisks", []any{})
	os := behaviour.Sub(model, "osProfile")
	prefix := behaviour.Text(os, "computerNamePrefix")
	delete(os, "computerNamePrefix")
	os["computerName"] = prefix + strings.ToUpper(suffix[:6])
	doc := behaviour.Object{
		"location": c.Location(),
		runtime:    behaviour.Object{"power": Running, "faultDomain": domain},
		"properties": behaviour.Object{
			"hardwareProfile": behaviour.Object{"vmSize": behaviour.Text(c.Doc, "sku.name")},
			"storageProfile":  storage, "osProfile": os,
			"virtualMachineScaleSet": behaviour.Ref(c.ID),
			"vmId":                   c.GUID(), "timeCreated": behaviour.Stamp(c.Now()), "provisioningState": creating,
		},
	}
	if zone != "" {
		doc["zones"] = []any{zone}
	}
	if tags := c.Doc["tags"]; tags != nil {
		doc["tags"] = behaviour.Clone(tags)
	}
	for _, shared := range []string{"securityProfile", "diagnosticsProfile", "licenseType", "priority", "evictionPolicy"} {
		if v, ok := model[shared]; ok {
			behaviour.Set(doc, "properties."+shared, v)
		}
	}
	newOSDisk(c.World, disk, id, doc)
	if err := f.interfaces(doc, suffix); err != nil {
		return err
	}
	c.Put(id, doc)
	return nil
}

func (f flexBuilder) suffix() string {
	for {
		const eight = 1 << 32
		suffix := fmt.Sprintf("%08x", f.call.Intn(eight))
		id := groupOf(f.call.ID).Resource(machineType, f.call.ID.Name()+"_"+suffix)
		if _, exists := f.call.Get(id); !exists && !f.taken[id.Key()] {
			f.taken[id.Key()] = true
			return suffix
		}
	}
}

// interfaces makes interfaces as a client would and gives them to the machine.
func (f flexBuilder) interfaces(doc behaviour.Object, suffix string) error {
	configs := behaviour.Objects(f.call.Doc, networkPath+".networkInterfaceConfigurations")
	refs := []any{}
	for _, config := range configs {
		nic, err := makeInterface(f.call, config, suffix)
		if err != nil {
			return err
		}
		refs = append(refs, behaviour.Object{"id": string(nic), "properties": behaviour.Object{
			"primary": behaviour.Bool(config, "properties.primary"), "deleteOption": first(behaviour.Text(config, "properties.deleteOption"), "Delete"),
		}})
	}
	behaviour.Set(doc, "properties.networkProfile.networkInterfaces", refs)
	return nil
}

// makeInterface makes a network interface out of its description in a model, and
// the public addresses that it asks for.
func makeInterface(c *behaviour.Call, config behaviour.Object, suffix string) (azure.ID, error) {
	id := groupOf(c.ID).Resource(networkIface, behaviour.Text(config, "name")+"-nic-"+suffix)
	var addresses []any
	for _, model := range behaviour.Objects(config, "properties.ipConfigurations") {
		props := behaviour.Object{"subnet": behaviour.Clone(behaviour.Sub(model, "properties.subnet"))}
		for _, field := range []string{"primary", "privateIPAddressVersion", "loadBalancerBackendAddressPools", "applicationGatewayBackendAddressPools", "applicationSecurityGroups"} {
			if v := behaviour.At(model, "properties."+field); v != nil {
				props[field] = behaviour.Clone(v)
			}
		}
		if public := behaviour.Sub(model, "properties.publicIPAddressConfiguration"); public != nil {
			made, err := makePublicIP(c, public, suffix)
			if err != nil {
				return "", err
			}
			props["publicIPAddress"] = behaviour.Ref(made)
		}
		addresses = append(addresses, behaviour.Object{"name": behaviour.Text(model, "name"), "properties": props})
	}
	body := behaviour.Object{"location": c.Location(), "properties": behaviour.Object{
		"ipConfigurations":            addresses,
		"enableAcceleratedNetworking": behaviour.Bool(config, "properties.enableAcceleratedNetworking"),
		"enableIPForwarding":          behaviour.Bool(config, "properties.enableIPForwarding"),
	}}
	for _, field := range []string{"networkSecurityGroup", "dnsSettings"} {
		if v := behaviour.At(config, "properties."+field); v != nil {
			behaviour.Set(body, "properties."+field, behaviour.Clone(v))
		}
	}
	return id, c.Apply(id, body)
}

func makePublicIP(c *behaviour.Call, config behaviour.Object, suffix string) (azure.ID, error) {
	id := groupOf(c.ID).Resource(networkAddress, behaviour.Text(config, "name")+"-"+suffix)
	body := behaviour.Object{"location": c.Location(), "sku": behaviour.Object{"name": "Standard"}, "properties": behaviour.Object{
		"publicIPAllocationMethod": "Static",
		"publicIPAddressVersion":   first(behaviour.Text(config, "properties.publicIPAddressVersion"), network.IPv4),
	}}
	return id, c.Apply(id, body)
}

// makeInterfaces makes the interfaces that a virtual machine describes instead of
// naming.
func makeInterfaces(c *behaviour.Call, configs []behaviour.Object) error {
	refs := []any{}
	for _, config := range configs {
		nic, err := makeInterface(c, config, hex32(c)[:8])
		if err != nil {
			return err
		}
		refs = append(refs, behaviour.Object{"id": string(nic), "properties": behaviour.Object{
			"primary":      len(configs) == 1 || behaviour.Bool(config, "properties.primary"),
			"deleteOption": first(behaviour.Text(config, "properties.deleteOption"), "Detach"),
		}})
	}
	behaviour.Remove(c.Doc, "properties.networkProfile.networkInterfaceConfigurations")
	behaviour.Set(c.Doc, "properties.networkProfile.networkInterfaces", refs)
	return nil
}
