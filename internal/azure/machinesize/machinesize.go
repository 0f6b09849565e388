// Package machinesize has what kaz must know about sizes of virtual machines where Azure cannot be asked: plans are made offline, and
// nodes may have no right to read the resource SKUs of the subscription. Layer L0.
//
// The numbers are those of Microsoft's documentation of sizes (learn.microsoft.com/azure/virtual-machines/sizes): the greatest number of
// remote disks, accelerated networking, and the cache and the local disk that an ephemeral OS disk can be on. A local disk counts only
// where the page of the series says that an ephemeral OS disk can be on it. What Azure says about a size takes precedence wherever it can
// be asked.
package machinesize

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Size is what is known about a size of machines.
type Size struct {
	DataDisks   int  // the greatest number of data disks
	Accelerated bool // whether it has accelerated networking
	// CacheGiB, TempGiB and NVMeGiB are the room for an ephemeral OS disk at the placements CacheDisk, ResourceDisk and NvmeDisk.
	CacheGiB, TempGiB, NVMeGiB int
}

//go:embed sizes.csv
var sizesCSV string

var sizes = sync.OnceValue(func() map[string]Size {
	rows, err := csv.NewReader(strings.NewReader(sizesCSV)).ReadAll()
	if err != nil {
		panic(err)
	}
	all := make(map[string]Size, len(rows))
	for _, row := range rows[1:] {
		all[strings.ToLower(row[0])] = Size{DataDisks: number(row, 1), Accelerated: row[2] == "yes", CacheGiB: number(row, 3),
			TempGiB: number(row, 4), NVMeGiB: number(row, 5)}
	}
	return all
})

func number(row []string, column int) int {
	n, err := strconv.Atoi(row[column])
	if err != nil {
		panic(fmt.Sprintf("sizes.csv: %s: column %d: %v", row[0], column, err))
	}
	return n
}

// constrained matches the part of a name that says how many processors of the size are in use, as in Standard_E16-4s_v5. Such a size
// has the disks and the network of the whole one.
var constrained = regexp.MustCompile(`^(\w+_[A-Za-z]+\d+)-\d+`)

// Find returns what is known about a size. Letter case does not matter.
func Find(name string) (Size, bool) {
	s, known := sizes()[strings.ToLower(constrained.ReplaceAllString(name, "$1"))]
	return s, known
}

var version = regexp.MustCompile(`(?i)^\w+?_([A-Z]+)\d.*_v(\d+)$`)

// firstNVMe is the first version of sizes that have NVMe devices alone as disks. Those of the family L are since version 4.
func firstNVMe(family string) int {
	if strings.EqualFold(family, "L") {
		return 4
	}
	return 6
}

// NVMeOnly reports whether the disks of a size are NVMe devices alone, so that it boots only from images with the feature
// DiskControllerTypes NVMe. The name tells: these are the sizes of version 6 and later, and those of Lsv4, Lasv4 and Laosv4.
func NVMeOnly(name string) bool {
	found := version.FindStringSubmatch(name)
	if found == nil {
		return false
	}
	n, err := strconv.Atoi(found[2])
	return err == nil && n >= firstNVMe(found[1])
}

// Placement returns where Azure is to place an ephemeral OS disk: into the cache of the host, on the temporary disk or on the local NVMe
// disk, whichever first has room. It is "" if the size is not known or has no such room. Azure itself takes the cache if the size has
// one, also if the disk is too large for it.
func Placement(name string, gib int) string {
	s, _ := Find(name)
	for _, p := range []struct {
		name string
		room int
	}{{"CacheDisk", s.CacheGiB}, {"ResourceDisk", s.TempGiB}, {"NvmeDisk", s.NVMeGiB}} {
		if p.room > 0 && gib <= p.room {
			return p.name
		}
	}
	return ""
}
