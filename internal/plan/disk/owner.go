package disk

import (
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Owner is what a disk or snapshot was created for, as its tags say. Fields that the tags lack are empty.
type Owner struct {
	// Volume is the name of the persistent volume of a disk, which is the name of the volume in the CSI request.
	Volume string
	// Claim is the persistent volume claim of a disk, or the VolumeSnapshot of a snapshot.
	Claim, Namespace string
}

// OwnerOfDisk returns the owner of a disk with these tags.
func OwnerOfDisk(tags azure.Tags) Owner {
	return Owner{Volume: tagOf(tags, tagPV), Claim: tagOf(tags, tagPVC), Namespace: tagOf(tags, tagPVCNamespace)}
}

func ownerOfSnapshot(tags azure.Tags) Owner {
	return Owner{Claim: tagOf(tags, tagSnapshot), Namespace: tagOf(tags, tagSnapshotSpace)}
}

// tagOf returns the value of a tag. Letter case in names of tags does not matter to Azure.
func tagOf(tags azure.Tags, name string) string {
	if value, ok := tags[name]; ok {
		return value
	}
	for key, value := range tags {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// contradicts reports whether two owners cannot be the same. Fields that one of them lacks say nothing.
func (o Owner) contradicts(other Owner) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return differ(o.Volume, other.Volume) || differ(o.Claim, other.Claim) || differ(o.Namespace, other.Namespace)
}

// String names the owner of a disk.
func (o Owner) String() string {
	var parts []string
	if o.Volume != "" {
		parts = append(parts, "persistent volume "+o.Volume)
	}
	if o.Claim != "" {
		parts = append(parts, "claim "+strings.TrimPrefix(o.Namespace+"/"+o.Claim, "/"))
	}
	if len(parts) == 0 {
		return "an owner that its tags do not name"
	}
	return strings.Join(parts, " of ")
}

// OtherOwner reports why a disk of the wanted name belongs to another volume, "" if it is the disk of this volume. A name
// that the driver made from the name of the volume is evidence enough for a disk without tags, a name of a StorageClass is not.
func OtherOwner(have, want azure.Resource[compute.Disk], named bool) string {
	owner, asked := OwnerOfDisk(have.Tags), OwnerOfDisk(want.Tags)
	if !owner.contradicts(asked) && (owner.Volume != "" || !named) {
		return ""
	}
	return fmt.Sprintf("it belongs to %s, not to %s; each volume needs a disk of its own: leave diskName out, or give it "+
		"${pvc.metadata.namespace} and ${pvc.metadata.name}", owner, asked)
}

// OtherSnapshot reports of what else a snapshot of the wanted name is, "" if it is the wanted snapshot of a disk.
func OtherSnapshot(have, want azure.Resource[compute.Snapshot], source azure.ID) string {
	if from := SourceOf(have); !from.Equal(source) {
		return "of disk " + from.Name()
	}
	owner, asked := ownerOfSnapshot(have.Tags), ownerOfSnapshot(want.Tags)
	if owner.contradicts(asked) {
		return fmt.Sprintf("of VolumeSnapshot %s/%s, not of %s/%s", owner.Namespace, owner.Claim, asked.Namespace, asked.Claim)
	}
	return ""
}

// PersistentVolume is a persistent volume that has a disk as its handle.
type PersistentVolume struct {
	Name string
	// Released says that its claim is gone and that its disk is to be deleted.
	Released bool
}

// Keep reports why a disk must not be deleted, "" if it may be. volumes are the persistent volumes that have it as their handle, as far
// as they are known. The only one is that which is being deleted. With several, none may still be used.
func Keep(have azure.Resource[compute.Disk], volumes []PersistentVolume) string {
	owner := OwnerOfDisk(have.Tags)
	owned := owner.Volume == "" || len(volumes) == 0
	for _, v := range volumes {
		if len(volumes) > 1 && !v.Released {
			return fmt.Sprintf("persistent volume %s has it, too, and is not released; delete that one first, or set "+
				"persistentVolumeReclaimPolicy Retain here", v.Name)
		}
		owned = owned || v.Name == owner.Volume
	}
	if owned {
		return ""
	}
	return fmt.Sprintf("it belongs to %s, not to persistent volume %s; if it is to be deleted, delete the disk, or set its tag %s "+
		"to %s", owner, volumes[0].Name, tagPV, volumes[0].Name)
}
