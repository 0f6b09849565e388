package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// dataDisks is the list of data disks of a machine while a write changes it.
type dataDisks struct {
	world behaviour.World
	// owner is the machine's id as disks name it in managedBy.
	owner azure.ID
	// machine names its disks after itself.
	machine  string
	doc, old behaviour.Object
	size     catalog.Size
}

const dataDisksPath = "properties.storageProfile.dataDisks"

// attach checks the list and takes the disks that are new in it. Disks that are
// gone from the list or marked stay in it, marked, until [dataDisks.detach].
func (d dataDisks) attach() error {
	behaviour.Default(d.doc, dataDisksPath, []any{})
	if err := d.check(); err != nil {
		return err
	}
	for _, disk := range behaviour.Objects(d.doc, dataDisksPath) {
		behaviour.Default(disk, "toBeDetached", false)
		if err := d.attachOne(disk); err != nil {
			return err
		}
	}
	d.markRemoved()
	return nil
}

func (d dataDisks) check() error {
	const luns = 64
	used, count := map[int]bool{}, 0
	for _, disk := range behaviour.Objects(d.doc, dataDisksPath) {
		if behaviour.Bool(disk, "toBeDetached") {
			continue
		}
		lun, ok := behaviour.Int(disk, "lun")
		if !ok || lun < 0 || lun >= luns {
			return behaviour.Invalid("InvalidParameter", "The value '%v' of parameter 'dataDisk.lun' is out of range. Value must be between 0 and %d.", disk["lun"], luns-1).At("dataDisk.lun")
		}
		if used[lun] {
			return behaviour.Invalid("InvalidParameter", "A disk at LUN %d already exists.", lun).At("dataDisk.lun")
		}
		used[lun] = true
		count++
	}
	if count > d.size.DataDisks {
		return behaviour.Conflict("OperationNotAllowed", "The maximum number of data disks allowed to be attached to a VM of this size is %d.", d.size.DataDisks).At("dataDisks")
	}
	return nil
}

// attachOne takes one disk of the list, unless the machine has it already.
func (d dataDisks) attachOne(disk behaviour.Object) error {
	if behaviour.Bool(disk, "toBeDetached") {
		return nil
	}
	id := behaviour.RefID(disk, "managedDisk")
	if before := d.before(disk, id); before != nil {
		if behaviour.Bool(before, "toBeDetached") {
			return behaviour.Conflict("AttachDiskWhileBeingDetached", "Cannot attach data disk '%s' to VM '%s' because the disk is currently being detached or the last detach operation failed. Please wait until the disk is completely detached and then try again or delete/detach the disk explicitly again.",
				first(behaviour.Text(disk, "name"), id.Name()), d.machine)
		}
		keep(disk, before)
		return nil
	}
	if behaviour.At(disk, "vhd") != nil {
		return nil
	}
	if id == "" {
		if strings.EqualFold(behaviour.Text(disk, "createOption"), "Attach") {
			return behaviour.Invalid("InvalidParameter", "Required parameter 'dataDisk.managedDisk.id' is missing (null).").At("dataDisk.managedDisk.id")
		}
		id = d.create(disk)
	}
	return d.take(disk, id)
}

// before is the entry that the machine had for the disk.
func (d dataDisks) before(disk behaviour.Object, id azure.ID) behaviour.Object {
	for _, was := range behaviour.Objects(d.old, dataDisksPath) {
		if sameDisk(was, disk, id) {
			return was
		}
	}
	return nil
}

func sameDisk(a, b behaviour.Object, id azure.ID) bool {
	if id != "" {
		return behaviour.RefID(a, "managedDisk").Equal(id)
	}
	name := behaviour.Text(b, "name")
	return name != "" && strings.EqualFold(behaviour.Text(a, "name"), name)
}

// create makes the disk of an entry that has none yet.
func (d dataDisks) create(disk behaviour.Object) azure.ID {
	name := behaviour.Text(disk, "name")
	if name == "" {
		name = d.machine + "_disk" + behaviour.Text(disk, "lun") + "_" + hex32(d.world)
	}
	id := groupOf(d.owner).Resource(diskType, name)
	doc := behaviour.Object{
		"location": behaviour.Text(d.doc, "location"),
		"sku":      behaviour.Object{"name": first(behaviour.Text(disk, "managedDisk.storageAccountType"), defaultDiskSKU(d.size))},
		"properties": behaviour.Object{
			"creationData": behaviour.Object{"createOption": first(behaviour.Text(disk, "createOption"), "Empty")},
			"diskSizeGB":   max(number(disk, "diskSizeGB"), 1),
		},
	}
	if zones := d.doc["zones"]; zones != nil {
		doc["zones"] = behaviour.Clone(zones)
	}
	diskFacts(d.world, doc)
	d.world.Put(id, doc)
	return id
}

// take makes a disk that exists the machine's.
func (d dataDisks) take(entry behaviour.Object, id azure.ID) error {
	disk, ok := d.world.Get(id)
	if !ok {
		return behaviour.Refusal(404, "NotFound", "Disk %s is not found.", id.Name())
	}
	if err := d.attachable(disk, id); err != nil {
		return err
	}
	behaviour.Default(entry, "name", behaviour.Text(disk, "name"))
	behaviour.Default(entry, "createOption", "Attach")
	behaviour.Default(entry, "caching", "None")
	behaviour.Default(entry, "deleteOption", "Detach")
	behaviour.Set(entry, "managedDisk.id", behaviour.Text(disk, "id"))
	behaviour.Set(entry, "managedDisk.storageAccountType", behaviour.Text(disk, "sku.name"))
	behaviour.Set(entry, "diskSizeGB", disk["properties"].(behaviour.Object)["diskSizeGB"])
	shared := number(disk, "properties.maxShares") > 1
	d.world.Edit(id, func(disk behaviour.Object) {
		behaviour.Set(disk, "properties.diskState", "Attached")
		if behaviour.Text(disk, "managedBy") == "" {
			disk["managedBy"] = string(d.owner)
		}
		if shared {
			disk["managedByExtended"] = append(behaviour.Array(disk, "managedByExtended"), string(d.owner))
		}
	})
	return nil
}

func (d dataDisks) attachable(disk behaviour.Object, id azure.ID) error {
	by, shares := behaviour.Text(disk, "managedBy"), max(number(disk, "properties.maxShares"), 1)
	if by != "" && !strings.EqualFold(by, string(d.owner)) && len(owners(disk)) >= shares {
		return behaviour.Conflict("ConflictingUserInput", "Disk '%s' cannot be attached as the disk is already owned by VM '%s'.", id, by)
	}
	if state := behaviour.Text(disk, "properties.diskState"); strings.HasPrefix(state, "ActiveSAS") {
		return behaviour.Conflict("OperationNotAllowed", "Disk '%s' cannot be attached: it is in state %s. Revoke its shared access first.", id.Name(), state)
	}
	zone, own := behaviour.Texts(disk, "zones"), behaviour.Texts(d.doc, "zones")
	if len(zone) > 0 && !slices.Equal(zone, own) {
		return behaviour.Invalid("BadRequest", "Disk %s cannot be attached to the VM because it is not in the same zone as the VM. The disk is in zone '%s', the VM in zone '%s'.", id.Name(), strings.Join(zone, ","), strings.Join(own, ","))
	}
	return nil
}

func owners(disk behaviour.Object) []string {
	if all := behaviour.Texts(disk, "managedByExtended"); len(all) > 0 {
		return all
	}
	if by := behaviour.Text(disk, "managedBy"); by != "" {
		return []string{by}
	}
	return nil
}

// markRemoved keeps the entries that a request left out until they are detached.
func (d dataDisks) markRemoved() {
	now := behaviour.Objects(d.doc, dataDisksPath)
	for _, was := range behaviour.Objects(d.old, dataDisksPath) {
		id := behaviour.RefID(was, "managedDisk")
		if slices.ContainsFunc(now, func(is behaviour.Object) bool { return sameDisk(is, was, id) }) {
			continue
		}
		gone := behaviour.Clone(was)
		gone["toBeDetached"] = true
		behaviour.Set(d.doc, dataDisksPath, append(behaviour.Array(d.doc, dataDisksPath), gone))
	}
}

// detach ends a write: marked disks leave the list and are free.
func (d dataDisks) detach() {
	kept := []any{}
	for _, disk := range behaviour.Objects(d.doc, dataDisksPath) {
		if behaviour.Bool(disk, "toBeDetached") {
			d.free(disk)
			continue
		}
		kept = append(kept, disk)
	}
	behaviour.Set(d.doc, dataDisksPath, kept)
}

// free gives a disk back.
func (d dataDisks) free(entry behaviour.Object) {
	if id := behaviour.RefID(entry, "managedDisk"); id != "" {
		d.world.Edit(id, func(disk behaviour.Object) { d.release(disk) })
	}
}

// drop gives back or deletes all disks of a machine that is gone, the OS disk too;
// osDisk says what happens to that one when it does not say itself.
func (d dataDisks) drop(osDisk string) {
	end := func(entry behaviour.Object, otherwise string) {
		if strings.EqualFold(first(behaviour.Text(entry, "deleteOption"), otherwise), "Delete") {
			if id := behaviour.RefID(entry, "managedDisk"); id != "" {
				d.world.Delete(id)
			}
			return
		}
		d.free(entry)
	}
	end(behaviour.Sub(d.doc, "properties.storageProfile.osDisk"), osDisk)
	each(d.doc, dataDisksPath, func(entry behaviour.Object) { end(entry, "Detach") })
}

func (d dataDisks) release(disk behaviour.Object) {
	left := slices.DeleteFunc(owners(disk), func(by string) bool { return strings.EqualFold(by, string(d.owner)) })
	delete(disk, "managedByExtended")
	if len(left) == 0 {
		delete(disk, "managedBy")
		behaviour.Set(disk, "properties.diskState", "Unattached")
		return
	}
	disk["managedBy"] = left[0]
	if number(disk, "properties.maxShares") > 1 {
		all := make([]any, len(left))
		for i, by := range left {
			all[i] = by
		}
		disk["managedByExtended"] = all
	}
}
