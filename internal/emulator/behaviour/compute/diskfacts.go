package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// performance is what a disk of a size can do: the first row whose size is not
// less than the disk's.
type performance struct {
	sizeGB, iops, mbps int
	tier               string
}

func premiumTiers() []performance {
	return []performance{
		{4, 120, 25, "P1"}, {8, 120, 25, "P2"}, {16, 120, 25, "P3"}, {32, 120, 25, "P4"}, {64, 240, 50, "P6"},
		{128, 500, 100, "P10"}, {256, 1100, 125, "P15"}, {512, 2300, 150, "P20"}, {1024, 5000, 200, "P30"},
		{2048, 7500, 250, "P40"}, {4096, 7500, 250, "P50"}, {8192, 16000, 500, "P60"}, {16384, 18000, 750, "P70"},
		{32767, 20000, 900, "P80"},
	}
}

func standardTiers() []performance {
	return []performance{{4096, 500, 60, ""}, {8192, 1300, 300, ""}, {32767, 2000, 500, ""}}
}

func standardSSDTiers() []performance {
	return []performance{{4096, 500, 100, ""}, {8192, 2000, 400, ""}, {16384, 4000, 600, ""}, {32767, 6000, 750, ""}}
}

// performanceOf is what a disk can do by its SKU and size.
func performanceOf(sku string, sizeGB int) performance {
	var tiers []performance
	switch family, _, _ := strings.Cut(strings.ToLower(sku), "_"); family {
	case "premium":
		tiers = premiumTiers()
	case "standardssd":
		tiers = standardSSDTiers()
	case "premiumv2":
		return performance{iops: 3000, mbps: 125}
	case "ultrassd":
		return performance{iops: 500, mbps: 100}
	default:
		tiers = standardTiers()
	}
	for _, t := range tiers {
		if sizeGB <= t.sizeGB {
			return t
		}
	}
	return tiers[len(tiers)-1]
}

// provisionable reports whether the owner of a disk of this SKU sets its performance.
func provisionable(sku string) bool {
	lower := strings.ToLower(sku)
	return strings.HasPrefix(lower, "premiumv2") || strings.HasPrefix(lower, "ultrassd")
}

func skuTier(sku string) string {
	switch lower := strings.ToLower(sku); {
	case strings.HasPrefix(lower, "ultrassd"):
		return "Ultra"
	case strings.HasPrefix(lower, "premium"):
		return "Premium"
	}
	return "Standard"
}

// diskFacts completes the document of a disk that exists.
func diskFacts(w behaviour.World, doc behaviour.Object) {
	sku := behaviour.Text(doc, "sku.name")
	behaviour.Set(doc, "sku.tier", skuTier(sku))
	size := number(doc, "properties.diskSizeGB")
	p := performanceOf(sku, size)
	if provisionable(sku) {
		behaviour.Default(doc, "properties.diskIOPSReadWrite", p.iops)
		behaviour.Default(doc, "properties.diskMBpsReadWrite", p.mbps)
	} else {
		behaviour.Set(doc, "properties.diskIOPSReadWrite", p.iops)
		behaviour.Set(doc, "properties.diskMBpsReadWrite", p.mbps)
	}
	if p.tier != "" {
		behaviour.Default(doc, "properties.tier", p.tier)
	}
	commonDiskFacts(w, doc)
	behaviour.Default(doc, "properties.diskState", "Unattached")
}

// commonDiskFacts are those that disks and snapshots share.
func commonDiskFacts(w behaviour.World, doc behaviour.Object) {
	const gib = 1 << 30
	behaviour.Default(doc, "properties.encryption.type", "EncryptionAtRestWithPlatformKey")
	behaviour.Default(doc, "properties.networkAccessPolicy", "AllowAll")
	behaviour.Default(doc, "properties.publicNetworkAccess", "Enabled")
	behaviour.Default(doc, "properties.timeCreated", behaviour.Stamp(w.Now()))
	behaviour.Default(doc, "properties.uniqueId", w.GUID())
	behaviour.Set(doc, "properties.diskSizeBytes", number(doc, "properties.diskSizeGB")*gib)
}

// newOSDisk stores the disk that a machine boots from.
func newOSDisk(w behaviour.World, id, owner azure.ID, machine behaviour.Object) {
	os := behaviour.Sub(machine, "properties.storageProfile.osDisk")
	doc := behaviour.Object{
		"location": behaviour.Text(machine, "location"), "managedBy": string(owner),
		"sku": behaviour.Object{"name": behaviour.Text(os, "managedDisk.storageAccountType")},
		"properties": behaviour.Object{
			"osType": behaviour.Text(os, "osType"), "hyperVGeneration": generation(machine),
			"creationData": behaviour.Object{"createOption": "FromImage"},
			"diskSizeGB":   number(os, "diskSizeGB"), "diskState": "Attached",
		},
	}
	for _, shared := range []string{"zones", "tags"} {
		if v := machine[shared]; v != nil {
			doc[shared] = behaviour.Clone(v)
		}
	}
	if ref := imageID(w, behaviour.Text(machine, "location"), behaviour.Sub(machine, "properties.storageProfile.imageReference")); ref != "" {
		behaviour.Set(doc, "properties.creationData.imageReference", behaviour.Object{"id": ref})
	}
	diskFacts(w, doc)
	w.Put(id, doc)
}

// imageID is how a disk names the image it was made from.
func imageID(w behaviour.World, location string, ref behaviour.Object) string {
	if id := behaviour.Text(ref, "id"); id != "" {
		return id
	}
	if behaviour.Text(ref, "publisher") == "" {
		return ""
	}
	return "/Subscriptions/" + w.Subscription() + "/Providers/Microsoft.Compute/Locations/" + location +
		"/Publishers/" + behaviour.Text(ref, "publisher") + "/ArtifactTypes/VMImage/Offers/" + behaviour.Text(ref, "offer") +
		"/Skus/" + behaviour.Text(ref, "sku") + "/Versions/" + behaviour.Text(ref, "exactVersion")
}
