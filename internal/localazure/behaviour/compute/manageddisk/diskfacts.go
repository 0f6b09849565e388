package manageddisk

import (
	"cmp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// performance is the IOPS, the throughput and the tier of disks up to a size.
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

// performanceOf returns the performance of a SKU at a size.
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

// provisionable reports whether the user sets the performance of disks of this SKU.
func provisionable(sku string) bool {
	lower := strings.ToLower(sku)
	return strings.HasPrefix(lower, "premiumv2") || strings.HasPrefix(lower, "ultrassd")
}

func SKUTier(sku string) string {
	switch lower := strings.ToLower(sku); {
	case strings.HasPrefix(lower, "ultrassd"):
		return "Ultra"
	case strings.HasPrefix(lower, "premium"):
		return "Premium"
	}
	return "Standard"
}

// diskFacts completes the document of an existing disk.
func diskFacts(w behaviour.World, doc behaviour.Object) {
	sku := behaviour.Text(doc, "sku.name")
	behaviour.Set(doc, "sku.tier", SKUTier(sku))
	size := schema.Number(doc, "properties.diskSizeGB")
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

// commonDiskFacts completes the fields that disks and snapshots share.
func commonDiskFacts(w behaviour.World, doc behaviour.Object) {
	const gib = 1 << 30
	behaviour.Default(doc, "properties.encryption.type", "EncryptionAtRestWithPlatformKey")
	behaviour.Default(doc, "properties.networkAccessPolicy", "AllowAll")
	behaviour.Default(doc, "properties.publicNetworkAccess", "Enabled")
	behaviour.Default(doc, "properties.timeCreated", behaviour.Stamp(w.Now()))
	behaviour.Default(doc, "properties.uniqueId", w.GUID())
	behaviour.Set(doc, "properties.diskSizeBytes", schema.Number(doc, "properties.diskSizeGB")*gib)
}

// NewOSDisk stores the OS disk of a machine.
func NewOSDisk(w behaviour.World, id, owner azure.ID, machine behaviour.Object) {
	os := behaviour.Sub(machine, "properties.storageProfile.osDisk")
	doc := behaviour.Object{
		"location": behaviour.Text(machine, "location"), "managedBy": string(owner),
		"sku": behaviour.Object{"name": behaviour.Text(os, "managedDisk.storageAccountType")},
		"properties": behaviour.Object{
			"osType": behaviour.Text(os, "osType"), "hyperVGeneration": HyperVGeneration(machine),
			"creationData": behaviour.Object{"createOption": "FromImage"},
			"diskSizeGB":   schema.Number(os, "diskSizeGB"), "diskState": "Attached",
			"LastOwnershipUpdateTime": behaviour.Stamp(w.Now()),
		},
	}
	for _, shared := range []string{"zones", "tags"} {
		if v := machine[shared]; v != nil {
			doc[shared] = behaviour.Clone(v)
		}
	}
	if ref := imageID(w, behaviour.Text(machine, "location"),
		behaviour.Sub(machine, "properties.storageProfile.imageReference")); ref != "" {
		behaviour.Set(doc, "properties.creationData.imageReference", behaviour.Object{"id": ref})
	}
	diskFacts(w, doc)
	w.Put(id, doc)
}

// imageID returns the id of an image as disks name it.
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

// describeImage writes what a disk has from the image that it is made from: the generation of its machines, and what they can.
func describeImage(c *behaviour.Call) {
	generation, osType, architecture := "V1", "", "x64"
	image := azure.ID(behaviour.Text(c.Doc, "properties.creationData.galleryImageReference.id"))
	if image.Is("Microsoft.Compute/galleries/images/versions") {
		image = image.Parent()
	}
	if doc, there := c.Get(image); there {
		generation = cmp.Or(behaviour.Text(doc, "properties.hyperVGeneration"), generation)
		osType = behaviour.Text(doc, "properties.osType")
		architecture = cmp.Or(behaviour.Text(doc, "properties.architecture"), architecture)
	}
	reference := behaviour.Object{}
	words := strings.Split(behaviour.Text(c.Doc, "properties.creationData.imageReference.id"), "/")
	for i, word := range words[:len(words)-1] {
		switch strings.ToLower(word) {
		case "publishers", "offers", "skus":
			reference[strings.ToLower(word[:len(word)-1])] = words[i+1]
		}
	}
	if len(reference) > 0 {
		machine := behaviour.Object{}
		behaviour.Set(machine, "properties.storageProfile.imageReference", reference)
		generation = HyperVGeneration(machine)
		sku := behaviour.Text(reference, "sku")
		osType = catalog.FindImage(behaviour.Text(reference, "publisher"), behaviour.Text(reference, "offer"), sku, "").OS
		if strings.Contains(strings.ToLower(sku), "arm64") {
			architecture = "Arm64"
		}
	}
	if osType != "" {
		behaviour.Default(c.Doc, "properties.osType", osType)
	}
	behaviour.Default(c.Doc, "properties.hyperVGeneration", generation)
	behaviour.Default(c.Doc, "properties.supportedCapabilities", behaviour.Object{"acceleratedNetwork": true})
	behaviour.Default(c.Doc, "properties.supportedCapabilities.architecture", architecture)
}

// HyperVGeneration is the generation of what a document's image reference names. SKUs of the second one have it in their name, or they
// have a sibling of the first one.
func HyperVGeneration(doc behaviour.Object) string {
	text := func(field string) string {
		return behaviour.Text(doc, "properties.storageProfile.imageReference."+field)
	}
	sku := strings.ToLower(text("sku"))
	if strings.Contains(sku, "gen2") || strings.HasSuffix(sku, "-g2") || strings.Contains(sku, "arm64") ||
		catalog.HasSKU(text("publisher"), text("offer"), sku+"-gen1") {
		return "V2"
	}
	return "V1"
}

func DefaultDiskSKU(size catalog.Size) string {
	if size.Premium {
		return "Premium_LRS"
	}
	return "Standard_LRS"
}
