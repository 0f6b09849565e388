package disk

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Names of tags that the driver sets on disks and snapshots.
const (
	tagCreatedBy      = "k8s-azure-created-by"
	createdBy         = "kubernetes-azure-dd"
	tagPV             = "kubernetes.io-created-for-pv-name"
	tagPVC            = "kubernetes.io-created-for-pvc-name"
	tagPVCNamespace   = "kubernetes.io-created-for-pvc-namespace"
	tagSnapshot       = "kubernetes.io-created-for-snapshot-name"
	tagSnapshotSpace  = "kubernetes.io-created-for-snapshot-namespace"
	tagSource         = "source_volume_id"
	tagAccelerator    = "writeacceleratorenabled"
	defaultSKU        = "StandardSSD_LRS"
	encryptionDefault = "EncryptionAtRestWithCustomerKey"
)

// Cluster is the part of the cloud configuration that disks depend on.
type Cluster struct {
	Subscription, ResourceGroup, Location string
	ExtendedLocation                      *azure.ExtendedLocation
}

// Volume is a volume that a user asks for.
type Volume struct {
	Name       string // of the CSI request
	Parameters Parameters
	SizeGB     int64
	// Zone is the zone number, "" for a disk without a zone.
	Zone string
	// Source is the snapshot or disk that the volume is a copy of, "" for none.
	Source azure.ID
}

const gib = 1 << 30

// SizeGB returns the size of a disk for a request in bytes. limit is 0 for no limit.
func (p Parameters) SizeGB(required, limit int64) (int64, error) {
	const performancePlusAtLeast, largest = 513, 65536
	if required < 0 || limit < 0 {
		return 0, fmt.Errorf("capacity of %d to %d bytes: must not be negative", required, limit)
	}
	size := max(roundUpGB(required), 1)
	if p.PerformancePlus != nil && *p.PerformancePlus {
		size = max(size, performancePlusAtLeast)
	}
	if limit > 0 && limit < size*gib {
		return 0, fmt.Errorf("capacity limit %d bytes: the disk would have %d GiB", limit, size)
	}
	if size > largest {
		return 0, fmt.Errorf("capacity %d GiB: a disk has at most %d GiB", size, largest)
	}
	return size, nil
}

func roundUpGB(bytes int64) int64 { return (bytes + gib - 1) / gib }

// Bytes converts GiB to bytes.
func Bytes(gb int64) int64 { return gb * gib }

// ID returns the id of a volume's disk.
func (c Cluster) ID(v Volume) azure.ID {
	p := v.Parameters
	name := v.Name
	if p.DiskName != "" {
		name = p.expand(p.DiskName)
	}
	group := azure.GroupID(cmp.Or(p.Subscription, c.Subscription), cmp.Or(p.ResourceGroup, c.ResourceGroup))
	return group.Resource(compute.Disks, ResourceName(name))
}

// Disk returns the document of a volume's disk.
func (c Cluster) Disk(v Volume) azure.Resource[compute.Disk] {
	p := v.Parameters
	d := azure.Resource[compute.Disk]{
		ID: c.ID(v), Location: p.location(c), ExtendedLocation: c.ExtendedLocation,
		SKU: &azure.SKU{Name: cmp.Or(p.SKU, defaultSKU)}, Tags: azure.Tags(v.tags()),
		Properties: compute.Disk{
			DiskSizeGB: v.SizeGB, DiskIOPSReadWrite: p.IOPS, DiskMBpsReadWrite: p.MBps, BurstingEnabled: p.Bursting,
			NetworkAccessPolicy: cmp.Or(p.NetworkAccessPolicy, "DenyAll"), PublicNetworkAccess: cmp.Or(p.PublicNetworkAccess, "Disabled"),
			DiskAccessID: p.DiskAccess,
			CreationData: compute.CreationData{CreateOption: "Empty", LogicalSectorSize: p.LogicalSectorSize,
				PerformancePlus: p.PerformancePlus},
		},
	}
	if v.Source != "" {
		d.Properties.CreationData.CreateOption, d.Properties.CreationData.SourceResourceID = "Copy", v.Source
	}
	if v.Zone != "" && !p.ZoneRedundant() {
		d.Zones = []string{v.Zone}
	}
	if p.MaxShares > 1 {
		d.Properties.MaxShares = &p.MaxShares
	}
	if p.EncryptionSet != "" {
		d.Properties.Encryption = &compute.Encryption{
			Type: cmp.Or(p.EncryptionType, encryptionDefault), DiskEncryptionSetID: p.EncryptionSet,
		}
	}
	if p.SKU == ultra {
		d.Properties.DiskIOPSReadWrite, d.Properties.DiskMBpsReadWrite = p.ultraPerformance(v.SizeGB)
	}
	return d
}

// ZoneRedundant reports whether Azure keeps the disk in several zones, so that it has no zone of its own.
func (p Parameters) ZoneRedundant() bool { return strings.HasSuffix(strings.ToLower(p.SKU), "zrs") }

func (p Parameters) location(c Cluster) string { return cmp.Or(p.Location, c.Location) }

// ultraPerformance returns the IOPS and MB/s of an Ultra disk, because Azure does not choose them. Without parameters the
// disk gets one IOPS for each GiB, from 500 to 160000. Its throughput is then 100 MB/s, or IOPS/256 if that is more; at most
// IOPS/4 and 4000. If only one parameter is set, the other value is 500 IOPS or 100 MB/s.
func (p Parameters) ultraPerformance(size int64) (iops, mbps *int64) {
	const leastIOPS, mostIOPS, leastMBps, mostMBps = 500, 160000, 100, 4000
	iops, mbps = p.IOPS, p.MBps
	if iops == nil && mbps == nil {
		iops = new(min(max(leastIOPS, size), mostIOPS))
		throughput := int64(leastMBps)
		if perMB := *iops / 256; perMB > throughput {
			throughput = (*iops + 255) / 256
		}
		if most := *iops / 4; throughput > most {
			throughput = (*iops + 3) / 4
		}
		return iops, new(min(throughput, mostMBps))
	}
	if iops == nil {
		iops = new(int64(leastIOPS))
	}
	if mbps == nil {
		mbps = new(int64(leastMBps))
	}
	return iops, mbps
}

// tags returns the tags of a volume's disk. They name its owner also if the provisioner does not say for what it creates the
// volume: the name of the volume is then that of its persistent volume.
func (v Volume) tags() map[string]string {
	p, tags := v.Parameters, map[string]string{tagCreatedBy: createdBy}
	for key, value := range p.Tags {
		tags[key] = p.expand(value)
	}
	addTag(tags, tagPV, cmp.Or(p.PVName, v.Name))
	addTag(tags, tagPVC, p.PVCName)
	addTag(tags, tagPVCNamespace, p.PVCNamespace)
	if p.WriteAccelerator {
		tags[tagAccelerator] = "true"
	}
	return tags
}

func addTag(tags map[string]string, key, value string) {
	if value != "" {
		tags[key] = value
	}
}

// expand replaces the variables that names and tags of a class can contain.
func (p Parameters) expand(text string) string {
	return strings.NewReplacer("${pvc.metadata.name}", p.PVCName, "${pvc.metadata.namespace}", p.PVCNamespace,
		"${pv.metadata.name}", p.PVName).Replace(text)
}

// ResourceName returns name as Azure allows it for a disk or snapshot: it is cut at 80 characters. A name with other
// characters is replaced by one that is made from it, so that the same request has the same name again.
func ResourceName(name string) string {
	const most = 80
	if len(name) > most {
		name = name[:most]
	}
	if validName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "pvc-disk-dynamic-" + hex.EncodeToString(sum[:16])
}

func validName(name string) bool {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	for i := range len(name) {
		if !letter(name[i]) && !strings.ContainsRune("_.-", rune(name[i])) {
			return false
		}
	}
	return name != "" && letter(name[0]) && (letter(name[len(name)-1]) || name[len(name)-1] == '_')
}

// Context returns the volume context that a persistent volume of this volume carries: the parameters as the user wrote
// them, and the size.
func (v Volume) Context(class, mutable map[string]string) map[string]string {
	context := maps.Clone(class)
	if context == nil {
		context = map[string]string{}
	}
	maps.Copy(context, mutable)
	for key := range context {
		switch strings.ToLower(key) {
		case "kind":
			context[key] = "Managed"
		case "cachingmode":
			if v.Parameters.SKU == premiumV2 {
				delete(context, key)
			}
		}
	}
	if v.Parameters.SKU == premiumV2 {
		context["cachingmode"] = "None"
	}
	context[RequestedSize] = fmt.Sprint(v.SizeGB)
	return context
}

// RequestedSize is the key of the volume context with the size in GiB. Volumes that users create by hand lack it.
const RequestedSize = "requestedsizegib"

// SameVolume reports why a disk that exists cannot be the one that a request would create, "" if it can.
func SameVolume(have, want azure.Resource[compute.Disk]) string {
	h, w := have.Properties, want.Properties
	switch {
	case h.DiskSizeGB != w.DiskSizeGB:
		return fmt.Sprintf("it has %d GiB, not %d", h.DiskSizeGB, w.DiskSizeGB)
	case have.SKU != nil && want.SKU != nil && !strings.EqualFold(have.SKU.Name, want.SKU.Name):
		return fmt.Sprintf("its SKU is %s, not %s", have.SKU.Name, want.SKU.Name)
	case !h.CreationData.SourceResourceID.Equal(w.CreationData.SourceResourceID):
		return fmt.Sprintf("it is a copy of %q, not of %q", h.CreationData.SourceResourceID, w.CreationData.SourceResourceID)
	}
	return ""
}

// Modify returns the change of a disk that a VolumeAttributesClass asks for, and whether it changes anything.
func Modify(have azure.Resource[compute.Disk], want Parameters) (azure.Resource[compute.Disk], bool, error) {
	change := azure.Resource[compute.Disk]{
		Properties: compute.Disk{DiskIOPSReadWrite: want.IOPS, DiskMBpsReadWrite: want.MBps},
	}
	sku := want.SKU
	if have.SKU != nil {
		sku = cmp.Or(want.SKU, have.SKU.Name)
	}
	if err := (&Parameters{SKU: sku, IOPS: want.IOPS, MBps: want.MBps}).check(); err != nil {
		return change, false, err
	}
	if want.SKU != "" {
		change.SKU = &azure.SKU{Name: want.SKU}
	}
	same := func(have, want *int64) bool { return want == nil || have != nil && *have == *want }
	unchanged := (have.SKU != nil && strings.EqualFold(have.SKU.Name, sku)) &&
		same(have.Properties.DiskIOPSReadWrite, want.IOPS) && same(have.Properties.DiskMBpsReadWrite, want.MBps)
	return change, !unchanged, nil
}

// Ours reports whether this driver, or the driver that it replaces, created a disk or snapshot with these tags.
func Ours(tags azure.Tags) bool { return strings.EqualFold(tags[tagCreatedBy], createdBy) }
