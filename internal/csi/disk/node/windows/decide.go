package windows

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lunInLocation is the end of the location of a SCSI disk, such as "Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1".
var lunInLocation = regexp.MustCompile(`(?:^|: )LUN (\d+)$`)

// The disk that Azure gives to a machine for temporary files has this label.
const temporaryLabel = "Temporary Storage"

// choose returns the data disk of a LUN, nil if it is not there. Disks of other controllers can have the same LUN: the disk
// of the operating system, and the disk for temporary files beside it. NVMe disks have LUNs that are not Azure's. choose
// leaves all of these out.
func choose(disks []Disk, lun int) (*Disk, error) {
	reserved := map[string]bool{} // adapters
	for _, d := range disks {
		if d.System && d.adapter() != "" {
			reserved[d.adapter()] = true
		}
	}
	var found []Disk
	for _, d := range disks {
		match := lunInLocation.FindStringSubmatch(d.Location)
		scsi := strings.EqualFold(d.BusType, "SAS") || strings.EqualFold(d.BusType, "SCSI")
		if match != nil && match[1] == strconv.Itoa(lun) && scsi && !d.System && !d.temporary() && !reserved[d.adapter()] {
			found = append(found, d)
		}
	}
	if len(found) > 1 {
		numbers := make([]string, len(found))
		for i, d := range found {
			numbers[i] = strconv.Itoa(d.Number)
		}
		return nil, fmt.Errorf("%d disks have LUN %d: the disks with the numbers %s; nothing is mounted", len(found), lun,
			strings.Join(numbers, ", "))
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// adapter returns the part of a SCSI disk's location that says its adapter, "" for other disks.
func (d Disk) adapter() string {
	adapter, _, ok := strings.Cut(d.Location, " : Port ")
	if !ok {
		return ""
	}
	return adapter
}

func (d Disk) temporary() bool {
	return slices.ContainsFunc(d.Partitions, func(p Partition) bool { return strings.EqualFold(p.Label, temporaryLabel) })
}

// area is a range of bytes of a disk.
type area struct{ offset, length int64 }

// ends returns the areas of a range in which file systems, partition tables, LVM and RAID have their signatures: the first and the
// last MiB. Disks are read by whole sectors.
func ends(offset, size int64) []area {
	const look, sector = 1 << 20, 4096
	if size <= 2*look {
		return []area{{offset, size - size%sector}}
	}
	return []area{{offset, look}, {offset + size - size%sector - look, look}}
}

// step is the next step that makes a volume of a disk.
type step struct {
	script    script // "" if the volume is ready
	partition Partition
	// blank are the areas that must be empty before the script runs. Windows shows a disk or partition with a file system of
	// another operating system as one without a file system.
	blank []area
}

// next returns the next step for a disk. A disk with content that is no NTFS volume is an error.
func (d Disk) next() (step, error) {
	if d.Offline || d.ReadOnly {
		return step{script: enable}, nil
	}
	data := slices.DeleteFunc(slices.Clone(d.Partitions), func(p Partition) bool { return p.Type == "Reserved" })
	switch {
	case d.Style == "RAW" && len(d.Partitions) == 0:
		return step{script: initialize, blank: ends(0, d.Size)}, nil
	case d.Style == "GPT" && len(data) == 0:
		return step{script: divide}, nil
	case d.Style != "GPT" && d.Style != "MBR":
		return step{}, fmt.Errorf("disk number %d has the partition style %q and %d partitions: want RAW without partitions, GPT or MBR",
			d.Number, d.Style, len(d.Partitions))
	case len(data) != 1:
		return step{}, fmt.Errorf("disk number %d has %d partitions: want one", d.Number, len(data))
	case data[0].Volume == "":
		return step{}, fmt.Errorf("partition %d of disk number %d, of type %q, has no volume of Windows: it is neither formatted nor "+
			"mounted", data[0].Number, d.Number, data[0].Type)
	}
	p := data[0]
	switch strings.ToUpper(p.FileSystem) {
	case "NTFS":
		return step{partition: p}, nil
	case "", "RAW":
		return step{script: format, partition: p, blank: ends(p.Offset, p.Size)}, nil
	}
	return step{}, fmt.Errorf("partition %d of disk number %d has the file system %s: want NTFS", p.Number, d.Number, p.FileSystem)
}

// growsTo reports whether a partition of size bytes is to grow to most, the bytes that it can have. Disks grow by GiB. A
// difference under 100 MiB is space that Windows leaves at the end of a disk.
func growsTo(size, most int64) bool {
	const least = 100 << 20
	return most-size >= least
}

// ofVolume returns the disk with a volume.
func ofVolume(disks []Disk, volume string) (*Disk, error) {
	for _, d := range disks {
		if slices.ContainsFunc(d.Partitions, func(p Partition) bool { return sameVolume(p.Volume, volume) }) {
			return &d, nil
		}
	}
	return nil, fmt.Errorf("no disk has the volume %s", volume)
}

// isVolume reports whether the target of a link is a volume.
func isVolume(target string) bool {
	return volumePath.MatchString(strings.TrimRight(target, `\`) + `\`)
}

func sameVolume(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, `\`), strings.TrimRight(b, `\`))
}
