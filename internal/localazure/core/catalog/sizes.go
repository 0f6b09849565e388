package catalog

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Size is a size of virtual machines.
type Size struct {
	Name              string // "Standard_D2s_v3"
	Family            string // quota family, "standardDSv3Family"
	VCPUs             int
	MemoryGiB         float64
	DataDisks         int // limit of attached data disks
	NetworkInterfaces int
	TempGiB           int // size of the local disk, 0 for none
	CacheGiB          int // size of the host's cache for an ephemeral OS disk, 0 for none
	IOPS, MBps        int // limit of all uncached disks together
	NetworkMbps       int
	Premium           bool // premium disks can be attached
	Accelerated       bool // accelerated networking
	Ephemeral         bool // the OS disk can be in the cache or on the local disk
	NVMe              bool // all disks are NVMe devices, also the local one
	Architecture      string
	Generations       []string
}

//go:embed sizes.csv
var sizesCSV string

var sizes = sync.OnceValue(func() table[Size] {
	return load("sizes.csv", sizesCSV, func(f fields) (string, Size) {
		memory, err := strconv.ParseFloat(f.text("memory_gib"), 64)
		if err != nil {
			panic(fmt.Sprintf("sizes.csv: memory_gib: %v", err))
		}
		features := strings.Fields(f.text("features"))
		s := Size{
			Name: f.text("name"), Family: f.text("family"), VCPUs: f.whole("vcpus"), MemoryGiB: memory,
			DataDisks: f.whole("data_disks"), NetworkInterfaces: f.whole("network_interfaces"),
			TempGiB: f.whole("temp_gib"), CacheGiB: f.whole("cache_gib"),
			IOPS: f.whole("iops"), MBps: f.whole("mbps"), NetworkMbps: f.whole("network_mbps"),
			Premium: slices.Contains(features, "premium"), Accelerated: slices.Contains(features, "accelerated"),
			Ephemeral: slices.Contains(features, "ephemeral"), NVMe: slices.Contains(features, "nvme"),
			Architecture: f.text("architecture"), Generations: strings.Split(f.text("generations"), ","),
		}
		return s.Name, s
	})
})

// Sizes returns all sizes by series. Callers must not change the slice.
func Sizes() []Size { return sizes().all }

// FindSize returns a size by its name, in any case.
func FindSize(name string) (Size, bool) { return sizes().find(name) }

// Tier returns the first part of the size's name, "Standard".
func (s Size) Tier() string {
	tier, _, _ := strings.Cut(s.Name, "_")
	return tier
}

// Placement is where an ephemeral OS disk can be, and how large it can be there.
type Placement struct {
	Name string
	GiB  int
}

// Placements returns the placements of an ephemeral OS disk. Azure takes the first one if the machine names none.
func (s Size) Placements() []Placement {
	local := "ResourceDisk"
	if s.NVMe {
		local = "NvmeDisk"
	}
	all := []Placement{{"CacheDisk", s.CacheGiB}, {local, s.TempGiB}}
	return slices.DeleteFunc(all, func(p Placement) bool { return !s.Ephemeral || p.GiB == 0 })
}

// DiskControllers returns the types of controllers of the size's disks.
func (s Size) DiskControllers() []string {
	if s.NVMe {
		return []string{"NVMe"}
	}
	return []string{"SCSI"}
}
