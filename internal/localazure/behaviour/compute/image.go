package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// images is the type of managed images. An image is made from a generalized machine, or from disks.
func images() behaviour.Type {
	style := behaviour.Compute()
	style.Etag, style.EtagHeader = behaviour.NoEtag, behaviour.Never
	return behaviour.Type{
		Name:  schema.Namespace + "images",
		Style: style,
		Where: behaviour.Located,
		Fill:  fillImage,
	}
}

func fillImage(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	schema.KeepRest(c)
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	if source := behaviour.RefID(c.Doc, "properties.sourceVirtualMachine"); source != "" {
		if err := fillFromMachine(c, source); err != nil {
			return err
		}
	} else if err := schema.Required(c.Doc, "properties.storageProfile.osDisk", "storageProfile.osDisk"); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.storageProfile.dataDisks", []any{})
	behaviour.Default(c.Doc, "properties.storageProfile.zoneResilient", false)
	behaviour.Default(c.Doc, "properties.hyperVGeneration", "V1")
	if disk := behaviour.Sub(c.Doc, "properties.storageProfile.osDisk"); disk != nil {
		behaviour.Default(disk, "caching", "ReadWrite")
	}
	for _, disk := range append(behaviour.Objects(c.Doc, "properties.storageProfile.dataDisks"),
		behaviour.Sub(c.Doc, "properties.storageProfile.osDisk")) {
		if disk != nil {
			behaviour.Default(disk, "caching", "None")
			behaviour.Default(disk, "storageAccountType", "Standard_LRS")
		}
	}
	return nil
}

// fillFromMachine writes the disks of a generalized machine into an image.
func fillFromMachine(c *behaviour.Call, source azure.ID) error {
	machine, ok := c.Get(source)
	if !ok {
		return behaviour.NotFound(source)
	}
	if !behaviour.Bool(machine, schema.Runtime+".generalized") {
		return behaviour.Conflict("OperationNotAllowed",
			"Operation 'CreateImage' is not allowed on VM '%s' since the VM is not generalized.", source.Name())
	}
	storage := behaviour.Sub(machine, "properties.storageProfile")
	os := imageDisk(behaviour.Sub(storage, "osDisk"))
	os["osType"], os["osState"] = behaviour.Text(storage, "osDisk.osType"), "Generalized"
	behaviour.Default(c.Doc, "properties.storageProfile.osDisk", os)
	disks := []any{}
	for _, disk := range behaviour.Objects(storage, "dataDisks") {
		copied := imageDisk(disk)
		copied["lun"] = disk["lun"]
		disks = append(disks, copied)
	}
	behaviour.Default(c.Doc, "properties.storageProfile.dataDisks", disks)
	return nil
}

// imageDisk returns the disk of an image that is made from a machine's disk.
func imageDisk(disk behaviour.Object) behaviour.Object {
	copied := behaviour.Object{"managedDisk": behaviour.Ref(behaviour.RefID(disk, "managedDisk"))}
	for to, from := range map[string]string{"caching": "caching", "diskSizeGB": "diskSizeGB",
		"storageAccountType": "managedDisk.storageAccountType"} {
		if v := behaviour.At(disk, from); v != nil {
			copied[to] = v
		}
	}
	return copied
}

// placementGroups adds to proximity placement groups the resources that refer to them. The answer to a write leaves out empty lists.
func placementGroups(c *behaviour.Call, view behaviour.Object) {
	users := map[string][]azure.ID{}
	for _, r := range c.Referrers(c.ID) {
		if strings.HasSuffix(r.Path, "proximityPlacementGroup") {
			kind := r.Resource.Type()[strings.LastIndexByte(r.Resource.Type(), '/')+1:]
			users[strings.ToLower(kind)] = append(users[strings.ToLower(kind)], r.Resource)
		}
	}
	for _, kind := range []string{"virtualMachines", "virtualMachineScaleSets", "availabilitySets"} {
		if ids := users[strings.ToLower(kind)]; len(ids) > 0 || c.Verb == behaviour.Get {
			behaviour.Set(view, "properties."+kind, behaviour.Refs(ids))
		}
	}
}
