package windows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// Disk is a disk of the machine.
type Disk struct {
	Number   int
	Location string // ends in ": LUN n" for a disk of a SCSI controller
	BusType  string
	Style    string // of its partition table: RAW for none, GPT, MBR
	Size     int64  // bytes
	System   bool   // it has the operating system
	Offline  bool
	ReadOnly bool

	Partitions []Partition
}

// Partition is a partition of a disk.
type Partition struct {
	Number       int
	Type         string
	Offset, Size int64 // bytes
	// Volume is the path of its volume, \\?\Volume{GUID}\, "" for none.
	Volume string
	// FileSystem is "" or RAW if Windows does not know it.
	FileSystem, Label string
}

// printedDisk and printedPartition are what the script prints. A number that is missing is not 0.
type printedDisk struct {
	Number                    *int
	Location, BusType, Style  string
	Size                      *int64
	System, Offline, ReadOnly *bool
	Partitions                *[]printedPartition
}

type printedPartition struct {
	Number                          *int
	Type, Volume, FileSystem, Label string
	Offset, Size                    *int64
}

// volumePath is the path of a volume.
var volumePath = regexp.MustCompile(`^\\\\\?\\Volume\{[0-9A-Fa-f-]+\}\\$`)

// parseDisks reads the output of the script list.
func parseDisks(output []byte) ([]Disk, error) {
	var printed []printedDisk
	if err := parse(output, &printed); err != nil {
		return nil, err
	}
	disks := make([]Disk, 0, len(printed))
	seen := map[int]bool{}
	for i, p := range printed {
		d, err := p.disk()
		if err != nil {
			return nil, fmt.Errorf("disk %d of PowerShell's output: %w", i+1, err)
		}
		if seen[d.Number] {
			return nil, fmt.Errorf("disk %d of PowerShell's output: number %d is there twice", i+1, d.Number)
		}
		seen[d.Number] = true
		disks = append(disks, d)
	}
	return disks, nil
}

// parse reads one JSON value, and nothing after it.
func parse(output []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(output, []byte("\ufeff"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("PowerShell's output %q: %w", beginning(output), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("PowerShell's output %q: want one JSON value", beginning(output))
	}
	return nil
}

// beginning returns as much of a text as an error shows.
func beginning(text []byte) []byte {
	const most = 200
	return text[:min(len(text), most)]
}

func (p printedDisk) disk() (Disk, error) {
	if p.Number == nil || p.Size == nil || p.System == nil || p.Offline == nil || p.ReadOnly == nil || p.Partitions == nil {
		return Disk{}, errors.New("want Number, Size, System, Offline, ReadOnly and Partitions")
	}
	d := Disk{
		Number: *p.Number, Location: p.Location, BusType: p.BusType, Style: p.Style, Size: *p.Size,
		System: *p.System, Offline: *p.Offline, ReadOnly: *p.ReadOnly,
	}
	if d.Number < 0 || d.Size < 0 {
		return Disk{}, fmt.Errorf("number %d, size %d: want 0 or more", d.Number, d.Size)
	}
	for _, p := range *p.Partitions {
		partition, err := p.partition()
		if err != nil {
			return Disk{}, fmt.Errorf("disk number %d: %w", d.Number, err)
		}
		d.Partitions = append(d.Partitions, partition)
	}
	return d, nil
}

func (p printedPartition) partition() (Partition, error) {
	if p.Number == nil || p.Offset == nil || p.Size == nil {
		return Partition{}, errors.New("a partition: want Number, Offset and Size")
	}
	if *p.Number < 0 || *p.Offset < 0 || *p.Size < 0 || *p.Offset+*p.Size < 0 {
		return Partition{}, fmt.Errorf("partition %d at %d, size %d: want 0 or more", *p.Number, *p.Offset, *p.Size)
	}
	if p.Volume != "" && !volumePath.MatchString(p.Volume) {
		return Partition{}, fmt.Errorf(`partition %d: volume %q: want \\?\Volume{GUID}\`, *p.Number, p.Volume)
	}
	return Partition{
		Number: *p.Number, Type: p.Type, Offset: *p.Offset, Size: *p.Size, Volume: p.Volume, FileSystem: p.FileSystem, Label: p.Label,
	}, nil
}

// parseSizes reads the output of the script sizes.
func parseSizes(output []byte) (size, most int64, err error) {
	var printed struct{ Size, Most *int64 }
	if err := parse(output, &printed); err != nil {
		return 0, 0, err
	}
	if printed.Size == nil || printed.Most == nil || *printed.Size < 0 || *printed.Most < 0 {
		return 0, 0, fmt.Errorf("PowerShell's output %q: want Size and Most of a partition, 0 or more", beginning(output))
	}
	return *printed.Size, *printed.Most, nil
}
