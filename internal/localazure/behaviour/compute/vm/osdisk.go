package vm

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// OSDiskName returns a name for the OS disk of a machine from an image.
func OSDiskName(w behaviour.World, machine string, image catalog.Image) string {
	if image.Disk1 {
		return machine + "_disk1_" + schema.Hex32(w)
	}
	return machine + "_OsDisk_1_" + schema.Hex32(w)
}

// PlaceOSDisk checks that the OS disk of a storage profile fits to the size of the machine, and completes the profile. old is the
// stored profile, nil for a new machine or model. A disk that exists stays where it is.
func PlaceOSDisk(w behaviour.World, storage, old behaviour.Object, size catalog.Size, image catalog.Image) error {
	if err := chooseController(w, storage, old, size, image); err != nil {
		return err
	}
	if behaviour.Text(storage, "osDisk.diffDiskSettings.option") == "" ||
		behaviour.Text(old, "osDisk.diffDiskSettings.option") != "" &&
			schema.Number(old, "osDisk.diskSizeGB") == schema.Number(storage, "osDisk.diskSizeGB") {
		return nil
	}
	return placeEphemeral(storage, size)
}

// placeEphemeral checks the room for an ephemeral OS disk. Without a placement the disk goes into the cache if the size has one.
func placeEphemeral(storage behaviour.Object, size catalog.Size) error {
	const path, cache = "osDisk.diffDiskSettings.placement", "CacheDisk"
	placements := size.Placements()
	if len(placements) > 0 {
		behaviour.Default(storage, path, placements[0].Name)
	}
	behaviour.Default(storage, path, cache)
	name := behaviour.Text(storage, path)
	i := slices.IndexFunc(placements, func(p catalog.Placement) bool { return strings.EqualFold(p.Name, name) })
	switch {
	case i < 0:
		return behaviour.Invalid("NotSupported",
			"The Diff Disk Placement of type '%s' is not supported for VM size %s. Please request with "+
				"different DiffDiskPlacement or use a different VM Sku which supports the current DiffDiskPlacement in the request.", name,
			size.Name)
	case schema.Number(storage, "osDisk.diskSizeGB") > placements[i].GiB:
		return behaviour.Invalid("NotSupported", "OS disk of Ephemeral VM with size greater than %d GB is not allowed for VM size %s when "+
			"the DiffDiskPlacement is %s. Please refer to https://aka.ms/Ephemeral for more details.", placements[i].GiB, size.Name,
			placements[i].Name)
	}
	return nil
}

// chooseController checks that the image and the size have a disk controller in common, and that it is the one of the profile. Without
// one a machine of a size with NVMe disks shows NVMe.
func chooseController(w behaviour.World, storage, old behaviour.Object, size catalog.Size, image catalog.Image) error {
	const see = "Please query sku api at https://aka.ms/azure-compute-skus  to determine supported disk controller types for the VM size."
	const path = "diskControllerType"
	asked := behaviour.Text(storage, path)
	if asked != "" && !schema.ContainsFold(size.DiskControllers(), asked) {
		return behaviour.Invalid("InvalidParameter",
			"The VM size '%s' cannot boot with DiskControllerType '%s'. Please check that the disk "+
				"controller type provided is one of the supported disk controller types for the VM size '%s'. "+see, size.Name, asked,
			size.Name).At("storageProfile.diskControllerType")
	}
	boots := bootsFrom(w, storage, image)
	common := slices.DeleteFunc(size.DiskControllers(), func(c string) bool {
		return !slices.Contains(boots, c) || asked != "" && !strings.EqualFold(asked, c)
	})
	if len(common) == 0 {
		return behaviour.Invalid("InvalidParameter",
			"The VM size '%s' cannot boot with OS image or disk. Please check that disk controller "+
				"types supported by the OS image or disk is one of the supported disk controller types for the VM size '%s'. "+see,
			size.Name, size.Name).At("vmSize")
	}
	if old == nil && size.NVMe {
		behaviour.Default(storage, path, common[0])
	}
	return nil
}

// bootsFrom returns the types of controllers that the image or the disk of a storage profile boots from. What is not known boots from
// all of them.
func bootsFrom(w behaviour.World, storage behaviour.Object, image catalog.Image) []string {
	all := []string{"SCSI", "NVMe"}
	id := azure.ID(behaviour.Text(storage, "imageReference.id"))
	switch {
	case id.Is("Microsoft.Compute/galleries/images/versions"):
		id = id.Parent()
	case id == "" && behaviour.Text(storage, "imageReference.publisher") != "":
		return image.DiskControllers()
	case id == "":
		return all // a disk that exists
	}
	doc, there := w.Get(id)
	if !there {
		return all
	}
	for _, feature := range behaviour.Objects(doc, "properties.features") {
		if strings.EqualFold(behaviour.Text(feature, "name"), "DiskControllerTypes") {
			return slices.DeleteFunc(all, func(c string) bool {
				return !strings.Contains(strings.ToLower(behaviour.Text(feature, "value")), strings.ToLower(c))
			})
		}
	}
	return all[:1]
}
