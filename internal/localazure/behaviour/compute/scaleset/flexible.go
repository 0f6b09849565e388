package scaleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
)

// flexMembers returns the ids of the virtual machines of a flexible scale set, oldest first.
func flexMembers(w behaviour.World, set azure.ID) []azure.ID {
	var ids []azure.ID
	for _, r := range w.Referrers(set) {
		if r.Path == "properties.virtualMachineScaleSet" && r.Resource.Is(schema.MachineType) {
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

// growFlexible adds n virtual machines with their own interfaces.
func growFlexible(c *behaviour.Call, all []member, n int) error {
	if n <= 0 {
		return nil
	}
	f := flexBuilder{call: c, taken: map[string]bool{}}
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
	call  *behaviour.Call
	taken map[string]bool
}

// create stores one machine. Its name is the scale set's name and eight random digits.
func (f flexBuilder) create(zone string, domain int) error {
	c := f.call
	suffix := f.suffix()
	id := schema.GroupOf(c.ID).Resource(schema.MachineType, c.ID.Name()+"_"+suffix)
	model := behaviour.Clone(behaviour.Sub(c.Doc, schema.ProfilePath))
	storage := behaviour.Sub(model, "storageProfile")
	image := vm.ImageOf(behaviour.Object{"properties": model})
	vm.ExactVersion(storage, image)
	diskName := vm.OSDiskName(c, id.Name(), image)
	behaviour.Set(storage, "osDisk.name", diskName)
	behaviour.Default(storage, "osDisk.deleteOption", "Delete")
	disk := schema.GroupOf(c.ID).Resource(schema.DiskType, diskName)
	behaviour.Set(storage, "osDisk.managedDisk.id", string(disk))
	behaviour.Default(storage, "dataDisks", []any{})
	os := behaviour.Sub(model, "osProfile")
	prefix := behaviour.Text(os, "computerNamePrefix")
	delete(os, "computerNamePrefix")
	os["computerName"] = prefix + strings.ToUpper(suffix[:6])
	doc := behaviour.Object{
		"location":     c.Location(),
		schema.Runtime: behaviour.Object{"power": vm.Running, "faultDomain": domain},
		"properties": behaviour.Object{
			"hardwareProfile": behaviour.Object{"vmSize": behaviour.Text(c.Doc, "sku.name")},
			"storageProfile":  storage, "osProfile": os,
			"virtualMachineScaleSet": behaviour.Ref(c.ID),
			"vmId":                   c.GUID(), "timeCreated": behaviour.Stamp(c.Now()), "provisioningState": schema.Creating,
		},
	}
	if zone != "" {
		doc["zones"] = []any{zone}
	}
	for _, shared := range []string{"tags", "identity"} {
		if v := c.Doc[shared]; v != nil {
			doc[shared] = behaviour.Clone(v)
		}
	}
	if data := vm.CustomData(c.Doc); data != "" {
		behaviour.Set(doc, schema.Runtime+".customData", data)
		vm.BeginGuest(c.World, doc)
	}
	for _, shared := range schema.ModelFields() {
		if v, ok := model[shared]; ok {
			behaviour.Set(doc, "properties."+shared, v)
		}
	}
	manageddisk.NewOSDisk(c.World, disk, id, doc)
	if err := f.interfaces(doc, suffix); err != nil {
		return err
	}
	c.Put(id, doc)
	for _, extension := range behaviour.Objects(c.Doc, extensionsPath) {
		properties := behaviour.Clone(behaviour.Sub(extension, "properties"))
		properties["provisioningState"] = schema.Succeeded
		child := id.Child("extensions", behaviour.Text(extension, "name"))
		c.Put(child, behaviour.Object{"location": c.Location(), "properties": properties})
	}
	return nil
}

func (f flexBuilder) suffix() string {
	for {
		const eight = 1 << 32
		suffix := fmt.Sprintf("%08x", f.call.Intn(eight))
		id := schema.GroupOf(f.call.ID).Resource(schema.MachineType, f.call.ID.Name()+"_"+suffix)
		if _, exists := f.call.Get(id); !exists && !f.taken[id.Key()] {
			f.taken[id.Key()] = true
			return suffix
		}
	}
}

// interfaces creates interfaces as a client would and attaches them to the machine.
func (f flexBuilder) interfaces(doc behaviour.Object, suffix string) error {
	configs := behaviour.Objects(f.call.Doc, schema.NetworkPath+".networkInterfaceConfigurations")
	refs := []any{}
	for _, config := range configs {
		nic, err := vm.MakeInterface(f.call, config, suffix)
		if err != nil {
			return err
		}
		refs = append(refs, behaviour.Object{"id": string(nic), "properties": behaviour.Object{
			"primary":      behaviour.Bool(config, "properties.primary"),
			"deleteOption": cmp.Or(behaviour.Text(config, "properties.deleteOption"), "Delete"),
		}})
	}
	behaviour.Set(doc, "properties.networkProfile.networkInterfaces", refs)
	return nil
}
