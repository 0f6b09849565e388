package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
)

const (
	metadata     = "properties.sourceMetadata"
	diskMetadata = metadata + ".storageProfile"
)

// found are the fields that say what a restore point found.
var found = []string{metadata, "properties.consistencyMode", "properties.timeCreated"}

// describeSource writes into a restore point what its machine is, or what the restore point that it copies says of that. A restore point
// stays what it was.
func describeSource(c *behaviour.Call) error {
	if c.Old != nil {
		for _, path := range found {
			if value := behaviour.At(c.Old, path); value != nil {
				behaviour.Set(c.Doc, path, behaviour.Clone(value))
			}
		}
		return nil
	}
	if source, there := c.Get(behaviour.RefID(c.Doc, "properties.sourceRestorePoint")); there {
		for _, path := range found {
			if value := behaviour.At(source, path); value != nil {
				behaviour.Default(c.Doc, path, behaviour.Clone(value))
			}
		}
		for _, disk := range pointDisks(c.Doc) {
			delete(disk, "diskRestorePoint")
		}
		return nil
	}
	collection, _ := c.Get(c.ID.Parent())
	machine, there := c.Get(behaviour.RefID(collection, "properties.source"))
	if !there {
		return nil
	}
	said := behaviour.Object{"location": behaviour.Text(machine, "location"), "hyperVGeneration": manageddisk.HyperVGeneration(machine)}
	for _, name := range []string{"vmId", "hardwareProfile", "osProfile", "securityProfile", "diagnosticsProfile", "licenseType"} {
		copyMember(said, behaviour.Sub(machine, "properties"), name)
	}
	behaviour.Set(c.Doc, metadata, said)
	behaviour.Set(c.Doc, diskMetadata+".osDisk", pointDisk(behaviour.Sub(machine, "properties.storageProfile.osDisk"), "osType"))
	disks := []any{}
	for _, disk := range behaviour.Objects(machine, manageddisk.DataDisksPath) {
		id := behaviour.RefID(disk, "managedDisk")
		if !slices.ContainsFunc(behaviour.Objects(c.Doc, "properties.excludeDisks"), func(excluded behaviour.Object) bool {
			return azure.ID(behaviour.Text(excluded, "id")).Equal(id)
		}) {
			disks = append(disks, pointDisk(disk, "lun"))
		}
	}
	behaviour.Set(c.Doc, diskMetadata+".dataDisks", disks)
	return nil
}

// pointDisk is what a restore point says of a disk.
func pointDisk(disk behaviour.Object, own string) behaviour.Object {
	said := behaviour.Object{}
	for _, name := range []string{own, "name", "diskSizeGB", "caching", "managedDisk", "writeAcceleratorEnabled"} {
		copyMember(said, disk, name)
	}
	return said
}

func copyMember(to, from behaviour.Object, name string) {
	if value := from[name]; value != nil {
		to[name] = behaviour.Clone(value)
	}
}

func pointDisks(point behaviour.Object) []behaviour.Object {
	disks := behaviour.Objects(point, diskMetadata+".dataDisks")
	if disk := behaviour.Sub(point, diskMetadata+".osDisk"); disk != nil {
		disks = append(disks, disk)
	}
	return disks
}

// saveDisks ends the creation of a restore point: each disk has a restore point of its own.
func saveDisks(c *behaviour.Call) error {
	for _, disk := range pointDisks(c.Doc) {
		name := behaviour.Text(disk, "name") + "_" + c.GUID()
		behaviour.Default(disk, "diskRestorePoint", behaviour.Object{"id": string(c.ID.Child("diskRestorePoints", name))})
	}
	mode := "ApplicationConsistent"
	if strings.EqualFold(behaviour.Text(c.Doc, diskMetadata+".osDisk.osType"), "Linux") {
		mode = "FileSystemConsistent" // Linux has no service that writes the memory of programs
	}
	behaviour.Default(c.Doc, "properties.consistencyMode", mode)
	return nil
}
