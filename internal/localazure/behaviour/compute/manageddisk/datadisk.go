package manageddisk

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// DataDisks is the list of data disks of a machine while a write changes it.
type DataDisks struct {
	World behaviour.World
	// Owner is the machine's id as disks name it in managedBy.
	Owner azure.ID
	// Machine is the name of the machine, with which the names of its disks begin.
	Machine string
	// Doc is the machine's document; Old is the document before the write, nil for a new machine.
	Doc, Old behaviour.Object
	Size     catalog.Size
}

const DataDisksPath = "properties.storageProfile.dataDisks"

// Attach checks the list and attaches its new disks. Disks to detach, which the request left out or marked, stay in the
// list with a mark until [DataDisks.Detach].
func (d DataDisks) Attach() error {
	behaviour.Default(d.Doc, DataDisksPath, []any{})
	if err := d.check(); err != nil {
		return err
	}
	for _, disk := range behaviour.Objects(d.Doc, DataDisksPath) {
		behaviour.Default(disk, "toBeDetached", false)
		if err := d.attachOne(disk); err != nil {
			return err
		}
	}
	d.markRemoved()
	return nil
}

func (d DataDisks) check() error {
	const luns = 64
	used, count := map[int]bool{}, 0
	for _, disk := range behaviour.Objects(d.Doc, DataDisksPath) {
		if behaviour.Bool(disk, "toBeDetached") {
			continue
		}
		lun, ok := behaviour.Int(disk, "lun")
		if !ok || lun < 0 || lun >= luns {
			return behaviour.Invalid("InvalidParameter",
				"The value '%v' of parameter 'dataDisk.lun' is out of range. Value must be between 0 and %d.", disk["lun"],
				luns-1).At("dataDisk.lun")
		}
		if used[lun] {
			return behaviour.Invalid("InvalidParameter", "A disk at LUN %d already exists.", lun).At("dataDisk.lun")
		}
		used[lun] = true
		count++
	}
	if count > d.Size.DataDisks {
		return behaviour.Conflict("OperationNotAllowed",
			"The maximum number of data disks allowed to be attached to a VM of this size is %d.", d.Size.DataDisks).At("dataDisks")
	}
	return nil
}

// attachOne attaches one disk of the list, unless it is attached already.
func (d DataDisks) attachOne(disk behaviour.Object) error {
	if behaviour.Bool(disk, "toBeDetached") {
		return nil
	}
	id := behaviour.RefID(disk, "managedDisk")
	if before := d.before(disk, id); before != nil {
		if behaviour.Bool(before, "toBeDetached") {
			return behaviour.Conflict("AttachDiskWhileBeingDetached",
				"Cannot attach data disk '%s' to VM '%s' because the disk is currently being detached or the last detach operation "+
					"failed. Please wait until the disk is completely detached and then try again or delete/detach the disk "+
					"explicitly again.",
				cmp.Or(behaviour.Text(disk, "name"), id.Name()), d.Machine)
		}
		schema.Keep(disk, before)
		return nil
	}
	if behaviour.At(disk, "vhd") != nil {
		return nil
	}
	if id == "" {
		if strings.EqualFold(behaviour.Text(disk, "createOption"), "Attach") {
			return behaviour.Invalid("InvalidParameter",
				"Required parameter 'dataDisk.managedDisk.id' is missing (null).").At("dataDisk.managedDisk.id")
		}
		id = d.Create(disk)
	}
	return d.attachExisting(disk, id)
}

// before returns the entry that the machine had for the disk.
func (d DataDisks) before(disk behaviour.Object, id azure.ID) behaviour.Object {
	for _, was := range behaviour.Objects(d.Old, DataDisksPath) {
		if sameDisk(was, disk, id) {
			return was
		}
	}
	return nil
}

// sameDisk reports whether an entry b means the disk of an entry a that the machine has. The id is that of the disk of b, "" for none.
func sameDisk(a, b behaviour.Object, id azure.ID) bool {
	if id != "" {
		return behaviour.RefID(a, "managedDisk").Equal(id)
	}
	if name := behaviour.Text(b, "name"); name != "" {
		return strings.EqualFold(behaviour.Text(a, "name"), name)
	}
	// An entry that names no disk means the disk that such an entry made at this LUN.
	option := behaviour.Text(b, "createOption")
	return !strings.EqualFold(option, "Attach") && strings.EqualFold(behaviour.Text(a, "createOption"), option) &&
		schema.Number(a, "lun") == schema.Number(b, "lun")
}

// Create stores the disk of an entry that has none yet.
func (d DataDisks) Create(disk behaviour.Object) azure.ID {
	name := behaviour.Text(disk, "name")
	if name == "" {
		const first = 2 // the OS disk is number 1
		name = d.Machine + "_disk" + strconv.Itoa(schema.Number(disk, "lun")+first) + "_" + schema.Hex32(d.World)
	}
	id := schema.GroupOf(d.Owner).Resource(schema.DiskType, name)
	doc := behaviour.Object{
		"location": behaviour.Text(d.Doc, "location"),
		"sku": behaviour.Object{"name": cmp.Or(behaviour.Text(disk, "managedDisk.storageAccountType"),
			DefaultDiskSKU(d.Size))},
		"properties": behaviour.Object{
			"creationData": behaviour.Object{"createOption": cmp.Or(behaviour.Text(disk, "createOption"), "Empty")},
			"diskSizeGB":   max(schema.Number(disk, "diskSizeGB"), 1),
		},
	}
	if zones := d.Doc["zones"]; zones != nil {
		doc["zones"] = behaviour.Clone(zones)
	}
	diskFacts(d.World, doc)
	d.World.Put(id, doc)
	return id
}

// attachExisting attaches an existing disk to the machine.
func (d DataDisks) attachExisting(entry behaviour.Object, id azure.ID) error {
	disk, ok := d.World.Get(id)
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
	shared := schema.Number(disk, "properties.maxShares") > 1
	d.World.Edit(id, func(disk behaviour.Object) {
		behaviour.Set(disk, "properties.diskState", "Attached")
		behaviour.Set(disk, "properties.LastOwnershipUpdateTime", behaviour.Stamp(d.World.Now()))
		if behaviour.Text(disk, "managedBy") == "" {
			disk["managedBy"] = string(d.Owner)
		}
		if shared {
			disk["managedByExtended"] = append(behaviour.Array(disk, "managedByExtended"), string(d.Owner))
		}
	})
	return nil
}

func (d DataDisks) attachable(disk behaviour.Object, id azure.ID) error {
	by, shares := behaviour.Text(disk, "managedBy"), max(schema.Number(disk, "properties.maxShares"), 1)
	if by != "" && !strings.EqualFold(by, string(d.Owner)) && len(owners(disk)) >= shares {
		return behaviour.Conflict("ConflictingUserInput", "Disk '%s' cannot be attached as the disk is already owned by VM '%s'.", id, by)
	}
	if state := behaviour.Text(disk, "properties.diskState"); strings.HasPrefix(state, "ActiveSAS") {
		return behaviour.Conflict("OperationNotAllowed",
			"There is an active shared access signature outstanding for disk %s. Call EndGetAccess before attaching the disk.", id.Name())
	}
	zone, own := behaviour.Texts(disk, "zones"), behaviour.Texts(d.Doc, "zones")
	if len(zone) > 0 && !slices.Equal(zone, own) {
		return behaviour.Invalid("BadRequest",
			"Disk %s cannot be attached to the VM because it is not in the same zone as the VM. The disk is in zone '%s', the VM "+
				"in zone '%s'.", id.Name(), strings.Join(zone, ","), strings.Join(own, ","))
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

// markRemoved marks the entries that a request left out, and keeps them until they are detached.
func (d DataDisks) markRemoved() {
	now := behaviour.Objects(d.Doc, DataDisksPath)
	for _, was := range behaviour.Objects(d.Old, DataDisksPath) {
		id := behaviour.RefID(was, "managedDisk")
		if slices.ContainsFunc(now, func(is behaviour.Object) bool { return sameDisk(is, was, id) }) {
			continue
		}
		gone := behaviour.Clone(was)
		gone["toBeDetached"] = true
		behaviour.Set(d.Doc, DataDisksPath, append(behaviour.Array(d.Doc, DataDisksPath), gone))
	}
}

// Detach ends a write: it detaches the marked disks and removes them from the list.
func (d DataDisks) Detach() {
	kept := []any{}
	for _, disk := range behaviour.Objects(d.Doc, DataDisksPath) {
		if behaviour.Bool(disk, "toBeDetached") {
			d.detachOne(disk)
			continue
		}
		kept = append(kept, disk)
	}
	behaviour.Set(d.Doc, DataDisksPath, kept)
}

// detachOne detaches the disk of an entry.
func (d DataDisks) detachOne(entry behaviour.Object) {
	if id := behaviour.RefID(entry, "managedDisk"); id != "" {
		d.World.Edit(id, func(disk behaviour.Object) { d.release(disk) })
	}
}

// Drop detaches or deletes all disks of a deleted machine. osDisk is the delete option of an OS disk without one.
func (d DataDisks) Drop(osDisk string) {
	end := func(entry behaviour.Object, otherwise string) {
		if strings.EqualFold(cmp.Or(behaviour.Text(entry, "deleteOption"), otherwise), "Delete") {
			if id := behaviour.RefID(entry, "managedDisk"); id != "" {
				d.World.Delete(id)
			}
			return
		}
		d.detachOne(entry)
	}
	end(behaviour.Sub(d.Doc, "properties.storageProfile.osDisk"), osDisk)
	for _, entry := range behaviour.Objects(d.Doc, DataDisksPath) {
		end(entry, "Detach")
	}
}

func (d DataDisks) release(disk behaviour.Object) {
	left := slices.DeleteFunc(owners(disk), func(by string) bool { return strings.EqualFold(by, string(d.Owner)) })
	delete(disk, "managedByExtended")
	if len(left) == 0 {
		delete(disk, "managedBy")
		behaviour.Set(disk, "properties.diskState", "Unattached")
		return
	}
	disk["managedBy"] = left[0]
	if schema.Number(disk, "properties.maxShares") > 1 {
		all := make([]any, len(left))
		for i, by := range left {
			all[i] = by
		}
		disk["managedByExtended"] = all
	}
}
