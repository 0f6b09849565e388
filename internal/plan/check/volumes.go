package check

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/nodes"
)

// diskDriver is the name of the CSI driver of managed disks.
const diskDriver = "disk.csi.azure.com"

func volumes(f *Facts, l *list) {
	there, used, byVolume := map[string]*Disk{}, map[string]bool{}, map[string]*Disk{}
	for i, d := range f.Disks {
		there[d.ID.Key()] = &f.Disks[i]
	}
	for _, v := range f.Volumes {
		id := diskOf(v)
		if id == "" {
			continue
		}
		used[id.Key()], byVolume[v.Name] = true, there[id.Key()]
		describe := "kubectl describe pv " + v.Name
		switch {
		case !id.Under(f.Group):
			l.add(v.Name, Unknown, "its disk is in another resource group, which is not read: "+string(id),
				"az disk show --ids "+string(id))
		case there[id.Key()] == nil:
			l.add(v.Name, Problem, "its disk is not in Azure: "+string(id), describe)
		}
	}
	for _, d := range f.Disks {
		if d.Ours && !used[d.ID.Key()] && f.age(d.Created) > patience {
			l.add(d.ID.Name(), Warning, "the disk of "+d.Owner.String()+" has no PersistentVolume in this cluster; another cluster may "+
				"use it: "+string(d.ID), "az disk show --ids "+string(d.ID))
		}
	}
	machines := map[string]azure.ID{}
	for _, n := range f.Nodes {
		if id, ok := nodes.MachineID(n.Spec.ProviderID); ok {
			machines[n.Name] = id
		}
	}
	for _, a := range f.Attachments {
		if volume := a.Spec.Source.PersistentVolumeName; a.Spec.Attacher == diskDriver && volume != nil {
			attachment(f, l, a, byVolume[*volume], machines[a.Spec.NodeName])
		}
	}
}

// attachment compares an attachment with the machines that have the disk. The disk is nil and the machine "" if they are not known.
func attachment(f *Facts, l *list, a storagev1.VolumeAttachment, d *Disk, machine azure.ID) {
	volume := *a.Spec.Source.PersistentVolumeName
	mend := "kubectl describe volumeattachment " + a.Name
	for _, e := range []struct {
		doing string
		err   *storagev1.VolumeError
	}{{"attaching", a.Status.AttachError}, {"detaching", a.Status.DetachError}} {
		if e.err != nil {
			l.add(volume, Warning, e.doing+" its disk at Node "+a.Spec.NodeName+" failed: "+
				strings.Join(strings.Fields(e.err.Message), " "), mend)
		}
	}
	if !a.Status.Attached || a.DeletionTimestamp != nil || d == nil || machine == "" || f.age(a.CreationTimestamp.Time) <= patience {
		return
	}
	if !slices.ContainsFunc(d.Holders, machine.Equal) {
		l.add(volume, Problem, "Kubernetes says that its disk is attached at Node "+a.Spec.NodeName+
			", Azure that the machine does not have it: "+string(d.ID), mend)
	}
}

// diskOf returns the disk of a volume, or "".
func diskOf(v v1.PersistentVolume) azure.ID {
	switch {
	case v.Spec.CSI != nil && v.Spec.CSI.Driver == diskDriver:
		return azure.ID(v.Spec.CSI.VolumeHandle)
	case v.Spec.AzureDisk != nil:
		return azure.ID(v.Spec.AzureDisk.DataDiskURI)
	}
	return ""
}
