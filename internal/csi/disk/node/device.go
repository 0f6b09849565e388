package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi/mount"
)

// Devices finds the block devices of attached disks below /dev and /sys.
type Devices struct {
	// Root is the directory with dev and sys, "" for the real one.
	Root string
	// Within is how long a device may take to appear after Azure attached the disk; 0 is two minutes.
	Within time.Duration
	// GrowWithin is how long the kernel may take to see the new size of a disk; 0 is ten seconds.
	GrowWithin time.Duration
}

// interval is the time between two looks.
const interval = 100 * time.Millisecond

func (d Devices) path(elements ...string) string {
	return filepath.Join("/", d.Root, filepath.Join(elements...))
}

// Find waits for the device of a LUN and returns its path. It prefers the links of the udev rules in Azure's images.
func (d Devices) Find(ctx context.Context, lun int) (string, error) {
	within := d.Within
	if within == 0 {
		within = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	const scanEvery = 50 // looks
	for looks := 0; ; looks++ {
		device, err := d.look(lun)
		if device != "" || err != nil {
			return device, err
		}
		if looks%scanEvery == 0 {
			d.scan()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("no device of LUN %d appeared: no link /dev/disk/azure/scsi1/lun%d or /dev/disk/azure/data/by-lun/%d, "+
				"no NVMe namespace %d of Azure's controller, and no SCSI disk: %w", lun, lun, lun, lun+firstNamespace, ctx.Err())
		}
	}
}

// look returns the device of a LUN, "" if it is not there.
func (d Devices) look(lun int) (string, error) {
	for _, link := range []string{"dev/disk/azure/scsi1/lun", "dev/disk/azure/data/by-lun/"} {
		path := d.path(link + strconv.Itoa(lun))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	found := d.kernelNames(lun)
	if len(found) > 1 {
		return "", fmt.Errorf("%d devices have LUN %d: %s", len(found), lun, strings.Join(found, ", "))
	}
	if len(found) == 0 {
		return "", nil
	}
	path := d.path("dev", found[0])
	if _, err := os.Stat(path); err != nil {
		return "", nil // the kernel makes the file a moment later
	}
	return path, nil
}

// kernelNames returns the names of the block devices that the kernel shows at a LUN.
func (d Devices) kernelNames(lun int) []string {
	entries, err := os.ReadDir(d.path("sys/block"))
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); d.isNamespace(name, lun) || d.isSCSI(name, lun) {
			names = append(names, name)
		}
	}
	return names
}

// Remote disks are namespaces of an NVMe controller with this model. Namespace 1 is the disk of the operating system, and
// the data disk of LUN n is namespace n+2. Source: the document "Disk Identification" of
// https://github.com/Azure/azure-vm-utils, and its rules 80-azure-disk.rules.
const (
	remoteModel    = "MSFT NVMe Accelerator v1.0"
	firstNamespace = 2
)

func (d Devices) isNamespace(name string, lun int) bool {
	return strings.HasPrefix(name, "nvme") && d.attribute(name, "nsid") == strconv.Itoa(lun+firstNamespace) &&
		d.attribute(name, "device/model") == remoteModel
}

// dataControllers are the ids of the virtual SCSI controllers with data disks. Source: 80-azure-disk.rules of
// azure-vm-utils.
func dataControllers() []string {
	return []string{
		"{f8b3781b-1e82-4818-a1c3-63d806ec15bb}", "{f8b3781c-1e82-4818-a1c3-63d806ec15bb}", "{f8b3781d-1e82-4818-a1c3-63d806ec15bb}",
	}
}

// isSCSI reports whether a device is the SCSI disk of a LUN: the last number of its address HOST:CHANNEL:TARGET:LUN.
func (d Devices) isSCSI(name string, lun int) bool {
	if !strings.EqualFold(d.attribute(name, "device/vendor"), "Msft") ||
		!strings.EqualFold(d.attribute(name, "device/model"), "Virtual Disk") {
		return false
	}
	device, err := filepath.EvalSymlinks(d.path("sys/block", name, "device"))
	if err != nil {
		return false
	}
	address := strings.Split(filepath.Base(device), ":")
	if address[len(address)-1] != strconv.Itoa(lun) {
		return false
	}
	for directory := device; len(directory) > len(d.path("sys")); directory = filepath.Dir(directory) {
		if id := readText(filepath.Join(directory, "device_id")); id != "" {
			return slices.Contains(dataControllers(), strings.ToLower(id))
		}
	}
	return false
}

// attribute reads an attribute of a block device, "" if it has none.
func (d Devices) attribute(device, name string) string {
	return readText(d.path("sys/block", device, name))
}

func readText(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// scan makes the kernel look for new disks.
func (d Devices) scan() {
	d.write("- - -", "sys/class/scsi_host/*/scan")
	d.write("1", "sys/class/nvme/*/rescan_controller")
}

// write writes a text to all files of a pattern. The kernel also finds new disks by itself, so an error only means a delay.
func (d Devices) write(text, pattern string) {
	files, _ := filepath.Glob(d.path(pattern)) // the pattern is valid
	for _, file := range files {
		if err := writeExisting(file, text); err != nil {
			slog.Debug("tell the kernel to look for disks", "file", file, "error", err)
		}
	}
}

// writeExisting writes to a file, which must exist.
func writeExisting(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Partition waits for a partition of a device and returns its path.
func (d Devices) Partition(ctx context.Context, device, number string) (string, error) {
	within := d.Within
	if within == 0 {
		within = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		path := partition(device, number)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the disk has no partition %s: there is no %s: %w", number, path, ctx.Err())
		}
	}
}

var (
	endsInDigit = regexp.MustCompile(`[0-9]$`)
	lunInPath   = regexp.MustCompile(`^/dev/.*disk/azure/scsi[^/]*/lun(\d+)$`)
)

// partition returns the path of a partition: links of udev end in -partN, names that end in a digit are followed by pN.
func partition(device, number string) string {
	switch {
	case strings.Contains(device, "/disk/azure/"):
		return device + "-part" + number
	case endsInDigit.MatchString(device):
		return device + "p" + number
	}
	return device + number
}

// Grown has the kernel read the size of a device again, and waits until it is wanted bytes. It returns the size that the
// kernel has at the end, which is less than wanted if the kernel did not see it in time. A partition that is too small is an error
// with the code FailedPrecondition.
func (d Devices) Grown(ctx context.Context, device string, wanted int64) (int64, error) {
	within := d.GrowWithin
	if within == 0 {
		within = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		if looks%10 == 0 {
			d.rescan(device)
		}
		size, err := mount.Size(device)
		if err != nil || size >= wanted {
			return size, err
		}
		if d.isPartition(device) {
			return size, status.Errorf(codes.FailedPrecondition, "%s of %d bytes is a partition of a disk: grow the partition to %d bytes "+
				"first", device, size, wanted)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return size, nil
		}
	}
}

// rescan has the kernel read the size of one disk again: that of a SCSI disk or of an NVMe namespace.
func (d Devices) rescan(device string) {
	directory, err := d.sysfs(device)
	if err != nil {
		slog.Debug("rescan", "device", device, "error", err)
		return
	}
	for _, file := range []string{"device/rescan", "device/rescan_controller"} {
		if err := writeExisting(filepath.Join(directory, file), "1"); err != nil {
			slog.Debug("rescan", "device", device, "file", file, "error", err)
		}
	}
}

// sysfs returns the directory of the disk of a device or partition.
func (d Devices) sysfs(device string) (string, error) {
	number, err := mount.Number(device)
	if err != nil {
		return "", err
	}
	directory, err := filepath.EvalSymlinks(d.path("sys/dev/block", number))
	if err != nil {
		return "", err
	}
	if readText(filepath.Join(directory, "partition")) != "" {
		directory = filepath.Dir(directory)
	}
	return directory, nil
}

// holders returns the names of the devices that are built on a device, such as that of multipath.
func (d Devices) holders(device string) []string {
	directory, err := d.sysfs(device)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(directory, "holders"))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

// isPartition reports whether a device is a partition. Partitions do not grow with their disk.
func (d Devices) isPartition(device string) bool {
	number, err := mount.Number(device)
	return err == nil && readText(d.path("sys/dev/block", number, "partition")) != ""
}

// Tune writes the settings of a disk: values by the path of the file below the disk's directory in /sys/block.
func (d Devices) Tune(device string, settings map[string]string) error {
	directory, err := d.sysfs(device)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := writeExisting(filepath.Join(directory, filepath.FromSlash(name)), settings[name]); err != nil {
			return fmt.Errorf("set %s to %q: %w", name, settings[name], err)
		}
	}
	return nil
}
