package disk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/parameter"
)

// Change is a disk that a machine is to have or not to have.
type Change struct {
	Disk   azure.ID
	Attach bool // false: detach
	// Caching, WriteAccelerator and EncryptionSet are of a disk to attach.
	Caching          string
	WriteAccelerator bool
	EncryptionSet    azure.ID
	// Force detaches without the operating system's consent. It is for machines that are out of service.
	Force bool
}

// FullError is an attachment that the machine's size does not allow.
type FullError struct {
	Machine, Disk azure.ID
	Most          int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("attach %s: machine %s has the %d data disks that its size allows", e.Disk.Name(), e.Machine.Name(), e.Most)
}

// LeavingError is an attachment of a disk that Azure is still detaching from the machine.
type LeavingError struct{ Machine, Disk azure.ID }

func (e *LeavingError) Error() string {
	return fmt.Sprintf("attach %s: Azure is still detaching it from machine %s", e.Disk.Name(), e.Machine.Name())
}

// luns is the number of logical unit numbers that a machine has at most.
const luns = 64

// Batch returns one request for all changes of a machine. For each change it returns the reason why the change cannot be
// made, nil if it can. The machine's size allows most data disks; 0 means that the number is not known. The map published
// has disks by the LUNs under which the node may look for them, even if the machine does not have the disks. Other disks get
// other LUNs.
func Batch(
	have azure.Resource[compute.MachineDisks], changes []Change, most int, published map[int]azure.ID,
) (compute.AttachDetach, []error) {
	b := batch{have: have, used: map[int]bool{}, most: luns, published: published}
	if most > 0 {
		b.most = min(most, luns)
	}
	for _, d := range have.Properties.StorageProfile.DataDisks {
		b.used[d.LUN] = true
		if !d.ToBeDetached {
			b.count++
		}
	}
	refused := make([]error, len(changes))
	for _, attach := range []bool{false, true} { // a disk that leaves makes room
		for i, c := range changes {
			switch {
			case c.Attach != attach:
			case c.Attach:
				refused[i] = b.attach(c)
			default:
				b.detach(c)
			}
		}
	}
	return b.request, refused
}

type batch struct {
	have        azure.Resource[compute.MachineDisks]
	used        map[int]bool
	count, most int
	published   map[int]azure.ID
	request     compute.AttachDetach
}

func (b *batch) detach(c Change) {
	at, attached := Find(b.have.Properties.StorageProfile, c.Disk)
	if !attached || b.leaves(c.Disk) {
		return
	}
	d := compute.DetachedDisk{DiskID: c.Disk}
	if c.Force {
		d.DetachOption = "ForceDetach"
	}
	b.request.Detach = append(b.request.Detach, d)
	if !at.ToBeDetached { // an earlier detachment that failed left the mark
		b.count--
	}
}

func (b *batch) attach(c Change) error {
	switch d, ok := Find(b.have.Properties.StorageProfile, c.Disk); {
	case ok && (d.ToBeDetached || b.leaves(c.Disk)):
		return &LeavingError{b.have.ID, c.Disk}
	case ok:
		return nil
	}
	if slices.ContainsFunc(b.request.Attach, func(d compute.AttachedDisk) bool { return d.DiskID.Equal(c.Disk) }) {
		return nil
	}
	lun, free := b.freeLUN(c.Disk)
	if b.count >= b.most || !free {
		return &FullError{b.have.ID, c.Disk, b.most}
	}
	b.used[lun] = true
	b.count++
	b.request.Attach = append(b.request.Attach, c.at(lun))
	return nil
}

// Again returns a request that repeats attachments after the last operation of a machine failed. It has the disks of the
// changes that the machine already lists, at their LUNs. The machine may list a disk that it does not have. ok is false if
// there is nothing to repeat.
func Again(have azure.Resource[compute.MachineDisks], changes []Change) (request compute.AttachDetach, ok bool) {
	if have.Properties.ProvisioningState != "Failed" {
		return request, false
	}
	for _, c := range changes {
		if d, listed := Find(have.Properties.StorageProfile, c.Disk); c.Attach && listed && !d.ToBeDetached {
			request.Attach = append(request.Attach, c.at(d.LUN))
		}
	}
	return request, len(request.Attach) > 0
}

// at returns the part of a request that attaches the disk at a LUN.
func (c Change) at(lun int) compute.AttachedDisk {
	a := compute.AttachedDisk{DiskID: c.Disk, LUN: lun, Caching: c.Caching}
	if c.WriteAccelerator {
		a.WriteAcceleratorEnabled = new(true)
	}
	if c.EncryptionSet != "" {
		a.DiskEncryptionSet = &azure.Reference{ID: c.EncryptionSet}
	}
	return a
}

// leaves reports whether the request detaches a disk.
func (b *batch) leaves(disk azure.ID) bool {
	return slices.ContainsFunc(b.request.Detach, func(d compute.DetachedDisk) bool { return d.DiskID.Equal(disk) })
}

// freeLUN returns the lowest LUN that is free for a disk.
func (b *batch) freeLUN(disk azure.ID) (int, bool) {
	for lun := range luns {
		if published := b.published[lun]; !b.used[lun] && (published == "" || published.Equal(disk)) {
			return lun, true
		}
	}
	return 0, false
}

// Expected returns the data disks of a machine that has the disks at their LUNs and no others.
func Expected(published map[int]azure.ID) (disks compute.DataDisks) {
	for _, lun := range slices.Sorted(maps.Keys(published)) {
		d := compute.DataDisk{LUN: lun}
		d.ManagedDisk.ID = published[lun]
		disks.DataDisks = append(disks.DataDisks, d)
	}
	return disks
}

// Find returns the entry of a disk in a machine's data disks.
func Find(disks compute.DataDisks, id azure.ID) (compute.DataDisk, bool) {
	i := slices.IndexFunc(disks.DataDisks, func(d compute.DataDisk) bool { return d.ManagedDisk.ID.Equal(id) })
	if i < 0 {
		return compute.DataDisk{}, false
	}
	return disks.DataDisks[i], true
}

// Check compares a machine's data disks after a batch with a change. It returns an error if Azure did not apply the change.
func (c Change) Check(machine azure.ID, now compute.DataDisks) error {
	switch d, ok := Find(now, c.Disk); {
	case c.Attach && (!ok || d.ToBeDetached):
		return fmt.Errorf("attach %s: Azure ended the operation, but machine %s does not have the disk", c.Disk.Name(), machine.Name())
	case !c.Attach && ok:
		return fmt.Errorf("detach %s: Azure ended the operation, but machine %s still has the disk", c.Disk.Name(), machine.Name())
	}
	return nil
}

// ReadAnswer reads the answer of the action attachDetachDataDisks after the operation has ended. The answer is the storage
// profile of the machine. Azure sends it when it accepts the request, and marks the disks that it will detach. ReadAnswer
// leaves the marked disks out: they are gone when the operation ends.
func ReadAnswer(answer azure.Document) (compute.DataDisks, error) {
	var disks compute.DataDisks
	if err := json.Unmarshal(answer, &disks); err != nil {
		return disks, fmt.Errorf("answer of attachDetachDataDisks: %w", err)
	}
	disks.DataDisks = slices.DeleteFunc(disks.DataDisks, func(d compute.DataDisk) bool { return d.ToBeDetached })
	return disks, nil
}

// Attachment returns the change that attaches a disk.
func Attachment(have azure.Resource[compute.Disk], caching string) Change {
	c := Change{Disk: have.ID, Attach: true, Caching: caching, WriteAccelerator: strings.EqualFold(have.Tags[tagAccelerator], "true")}
	if e := have.Properties.Encryption; e != nil {
		c.EncryptionSet = e.DiskEncryptionSetID
	}
	return c
}

// Described returns the change that attaches a disk as its volume context describes it, and whether the context says enough.
// The disk may have changed since the context was written. Azure then refuses what the disk cannot have.
func Described(id azure.ID, context map[string]string) (Change, bool) {
	said := map[string]string{}
	for key, value := range context {
		said[strings.ToLower(key)] = value
	}
	size, err := strconv.ParseInt(said[RequestedSize], 10, 64)
	if err != nil || said["diskencryptionsetid"] != "" {
		return Change{}, false
	}
	have := azure.Resource[compute.Disk]{ID: id, Tags: azure.Tags{tagAccelerator: said[tagAccelerator]}}
	have.SKU = &azure.SKU{Name: cmp.Or(said["skuname"], said["storageaccounttype"], defaultSKU)}
	have.Properties.DiskSizeGB = size
	if shares, err := strconv.ParseInt(cmp.Or(said["maxshares"], "1"), 10, 64); err != nil {
		return Change{}, false
	} else if shares > 1 {
		have.Properties.MaxShares = &shares
	}
	caching, err := Caching(have, said["cachingmode"])
	return Attachment(have, caching), err == nil
}

// Caching returns the host cache of a disk. Large, shared and provisioned disks have none.
func Caching(have azure.Resource[compute.Disk], asked string) (string, error) {
	const cachedBelowGB = 4096
	var p Parameters
	if err := parameter.Read(&p, []parameter.Key[Parameters]{cachingKey()}, map[string]string{"cachingMode": asked}); err != nil {
		return "", err
	}
	shared := have.Properties.MaxShares != nil && *have.Properties.MaxShares > 1
	provisioned := have.SKU != nil && (have.SKU.Name == ultra || have.SKU.Name == premiumV2)
	if have.Properties.DiskSizeGB >= cachedBelowGB || shared || provisioned {
		return "None", nil
	}
	return cmp.Or(p.CachingMode, "ReadOnly"), nil
}

// AddFacts adds what the node needs to know of a disk with a persistent volume that was not made by this driver.
func AddFacts(to map[string]string, have azure.Resource[compute.Disk]) {
	p := have.Properties
	facts := map[string]string{
		"networkaccesspolicy": p.NetworkAccessPolicy, "diskiopsreadwrite": textOf(p.DiskIOPSReadWrite),
		"diskmbpsreadwrite": textOf(p.DiskMBpsReadWrite), "logicalsectorsize": textOf(p.CreationData.LogicalSectorSize),
		"maxshares": textOf(p.MaxShares),
	}
	if have.SKU != nil {
		facts["skuname"] = have.SKU.Name
	}
	if p.Encryption != nil {
		facts["diskencryptionsetid"] = string(p.Encryption.DiskEncryptionSetID)
	}
	for key, value := range facts {
		addTag(to, key, value)
	}
}
