package catalog

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// Image is a platform image as the local Azure knows it.
type Image struct {
	Publisher, Offer, SKU string // empty for all SKUs
	OS                    string // "Windows" or "Linux"
	Version               string // the latest of Versions
	Versions              []string
	OSName, OSVersion     string // as the guest agent reports them
	DiskGiB               int
	NVMe                  bool // the image also boots from NVMe disks
	Disk1                 bool // the names of OS disks from the image have disk1 in them, else OsDisk_1
}

//go:embed images.csv
var imagesCSV string

var images = sync.OnceValue(func() []Image {
	return load("images.csv", imagesCSV, func(f fields) (string, Image) {
		i := Image{Publisher: f.text("publisher"), Offer: f.text("offer"), SKU: f.text("sku"), OS: f.text("os"),
			Versions: strings.Fields(f.text("versions")), OSName: f.text("os_name"), OSVersion: f.text("os_version"),
			DiskGiB: f.whole("disk_gib"), NVMe: f.text("features") == "nvme", Disk1: f.text("features") == "disk1"}
		i.Version = i.Versions[len(i.Versions)-1]
		return i.Publisher + "/" + i.Offer + "/" + i.SKU, i
	}).all
})

// DiskControllers returns the types of disk controllers that the image boots from.
func (i Image) DiskControllers() []string {
	if i.NVMe {
		return []string{"SCSI", "NVMe"}
	}
	return []string{"SCSI"}
}

// Images returns the images of the catalogue that clients can list. Each has an offer and a SKU.
func Images() []Image {
	return slices.DeleteFunc(slices.Clone(images()), func(i Image) bool { return i.SKU == "" })
}

// Extension is an extension of virtual machines that a publisher offers.
type Extension struct {
	Publisher, Type, OS string
	Versions            []string
}

//go:embed extensions.csv
var extensionsCSV string

var extensions = sync.OnceValue(func() []Extension {
	return load("extensions.csv", extensionsCSV, func(f fields) (string, Extension) {
		e := Extension{Publisher: f.text("publisher"), Type: f.text("type"), OS: f.text("os"), Versions: strings.Fields(f.text("versions"))}
		return e.Publisher + "/" + e.Type, e
	}).all
})

// Extensions returns the extensions of the catalogue. Callers must not change the slice.
func Extensions() []Extension { return extensions() }

// FindImage returns the image of the SKU, or one of the offer, of the publisher, or of the operating system os, in this
// order. An unknown image without a system counts as Linux.
func FindImage(publisher, offer, sku, os string) Image {
	for _, i := range images() {
		if strings.EqualFold(i.Publisher, publisher) && strings.EqualFold(i.Offer, offer) && strings.EqualFold(i.SKU, sku) {
			return i
		}
	}
	for _, i := range images() {
		if strings.EqualFold(i.Publisher, publisher) &&
			(i.Offer == "" || strings.EqualFold(i.Offer, offer)) &&
			(i.SKU == "" || strings.EqualFold(i.SKU, sku) || hasPrefixFold(sku, i.SKU+"-")) {
			return i
		}
	}
	if os == "" && strings.Contains(strings.ToLower(publisher+offer), "windows") {
		os = "Windows"
	}
	if os == "Windows" {
		return Image{OS: os, Version: "20348.4648.260108", OSName: "Windows Server 2022 Datacenter", OSVersion: "10.0.20348.4648",
			DiskGiB: 127}
	}
	return Image{OS: "Linux", Version: "1.0.0", OSName: "linux", OSVersion: "1", DiskGiB: 30}
}

// HasSKU reports whether the catalogue has an offer's SKU.
func HasSKU(publisher, offer, sku string) bool {
	return slices.ContainsFunc(images(), func(i Image) bool {
		return strings.EqualFold(i.Publisher, publisher) && strings.EqualFold(i.Offer, offer) && strings.EqualFold(i.SKU, sku)
	})
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
