package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

var lunInPath = regexp.MustCompile(`^/dev/.*disk/azure/scsi[^/]*/lun(\d+)$`)

// Devices finds the block devices of attached disks below /dev and /sys.
type Devices struct {
	// Root is the directory with dev and sys, "" for the real one.
	Root string
	// Within is how long a device may take to appear after Azure attached the disk; 0 is two minutes.
	Within time.Duration
}

// Find waits for the device of a LUN and returns its path: a link that udev rules of Azure's images make, for SCSI and
// for NVMe machines.
func (d Devices) Find(ctx context.Context, lun int) (string, error) {
	within := d.Within
	if within == 0 {
		within = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	const interval = 100 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		for _, link := range []string{"dev/disk/azure/scsi1/lun", "dev/disk/azure/data/by-lun/"} {
			path := filepath.Join("/", d.Root, link+strconv.Itoa(lun))
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
		if looks%50 == 0 {
			d.scanHosts()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("no link /dev/disk/azure/scsi1/lun%d or /dev/disk/azure/data/by-lun/%d appeared: the machine's image "+
				"needs the udev rules of azure-vm-utils or the Azure Linux agent: %w", lun, lun, ctx.Err())
		}
	}
}

// scanHosts has the kernel look for new SCSI disks.
func (d Devices) scanHosts() {
	scans, _ := filepath.Glob(filepath.Join("/", d.Root, "sys/class/scsi_host/*/scan")) // the pattern is valid
	for _, scan := range scans {
		if err := os.WriteFile(scan, []byte("- - -"), 0o200); err != nil {
			slog.Debug("scan for disks", "file", scan, "error", err)
		}
	}
}

// Rescan has the kernel read the size of a SCSI disk again. Other disks do not need it.
func (d Devices) Rescan(device string) {
	target, err := filepath.EvalSymlinks(device)
	if err != nil {
		return
	}
	file := filepath.Join("/", d.Root, "sys/class/block", filepath.Base(target), "device/rescan")
	if err := os.WriteFile(file, []byte("1"), 0o200); err != nil {
		slog.Debug("rescan", "file", file, "error", err)
	}
}
