package windows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	mountutils "k8s.io/mount-utils"

	"kaz/internal/csi/disk"
	"kaz/internal/csi/mount"
)

// Host is what only Windows has.
type Host interface {
	// Run runs a script of PowerShell with environment variables, and returns what it prints.
	Run(ctx context.Context, script string, variables map[string]string) ([]byte, error)
	// Read reads a part of a disk.
	Read(disk int, offset int64, data []byte) error
	// Usage returns the bytes of the volume at a path.
	Usage(path string) (total, available int64, err error)
	// Path returns a path with its drive.
	Path(path string) string
}

// System is a machine with Windows. Its devices are the numbers of disks.
type System struct {
	host   Host
	links  mountutils.Interface
	shells chan struct{}
}

// New returns a machine. links makes and removes links, as mount-utils does on Windows.
func New(host Host, links mountutils.Interface) *System {
	const shells = 3 // processes of PowerShell at a time: each needs some 100 MB
	return &System{host: host, links: links, shells: make(chan struct{}, shells)}
}

// run runs a script when fewer than three are running.
func (s *System) run(ctx context.Context, text script, variables map[string]string) ([]byte, error) {
	select {
	case s.shells <- struct{}{}:
		defer func() { <-s.shells }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.host.Run(ctx, string(text), variables)
}

func (s *System) disks(ctx context.Context) ([]Disk, error) {
	output, err := s.run(ctx, list, nil)
	if err != nil {
		return nil, fmt.Errorf("list the disks: %w", err)
	}
	return parseDisks(output)
}

// disk returns the disk of a device.
func (s *System) disk(ctx context.Context, device string) (Disk, error) {
	disks, err := s.disks(ctx)
	if err != nil {
		return Disk{}, err
	}
	for _, d := range disks {
		if strconv.Itoa(d.Number) == device {
			return d, nil
		}
	}
	return Disk{}, fmt.Errorf("there is no disk with number %s", device)
}

// await looks once a second until a look is done or ctx ends. Windows looks for disks after the first look, and then at every
// fifth one.
func (s *System) await(ctx context.Context, look func() (done bool, err error)) error {
	const interval, scanEvery = time.Second, 5 // looks
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		if done, err := look(); done || err != nil {
			return err
		}
		if looks%scanEvery == 0 {
			if _, err := s.run(ctx, rescan, nil); err != nil {
				slog.Debug("look for disks", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Find waits up to two minutes for the disk of a LUN.
func (s *System) Find(ctx context.Context, lun int) (device string, err error) {
	const within = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = s.await(ctx, func() (bool, error) {
		disks, err := s.disks(ctx)
		if err != nil {
			return false, err
		}
		found, err := choose(disks, lun)
		if found != nil {
			device = strconv.Itoa(found.Number)
		}
		return found != nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no disk of LUN %d appeared: no SCSI disk has a location that ends in \"LUN %d\", at another adapter than the "+
			"operating system's; NVMe disks are not supported on Windows: %w", lun, lun, err)
	}
	return device, err
}

// Partition returns an error: volumes are whole disks.
func (s *System) Partition(_ context.Context, _, number string) (string, error) {
	return "", errPartition(number)
}

func errPartition(number string) error {
	return fmt.Errorf("partition %q is not supported on Windows: want a disk with one partition, and no partition in the volume's "+
		"attributes", number)
}

// Size returns the size of a disk in bytes.
func (s *System) Size(ctx context.Context, device string) (int64, error) {
	d, err := s.disk(ctx, device)
	return d.Size, err
}

// Grown waits up to ten seconds until a disk is wanted bytes, and returns its size.
func (s *System) Grown(ctx context.Context, device string, wanted int64) (size int64, err error) {
	const within = 10 * time.Second
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = s.await(limited, func() (bool, error) {
		// A look that has begun is not interrupted: it takes a second or more, and its answer is wanted.
		var err error
		size, err = s.Size(ctx, device)
		return size >= wanted, err
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return size, err
}

// Tune returns an error: devices have no settings here.
func (s *System) Tune(string, map[string]string) error {
	return errors.New("settings of devices are not supported on Windows")
}

// Check returns why Windows cannot have a volume: only NTFS is mounted.
func (s *System) Check(volumeContext map[string]string, c *csispec.VolumeCapability) error {
	if c.GetBlock() != nil {
		return errors.New("block volumes are not supported on Windows: use volumeMode Filesystem")
	}
	fsType := cmp.Or(disk.Value(volumeContext, "fsType"), c.GetMount().GetFsType())
	if fsType != "" && !strings.EqualFold(fsType, "ntfs") {
		return fmt.Errorf("fsType %q is not supported on Windows: want ntfs", fsType)
	}
	if flags := c.GetMount().GetMountFlags(); len(flags) > 0 {
		return fmt.Errorf("mount options %q are not supported on Windows: want none", flags)
	}
	if number := disk.Value(volumeContext, "partition"); number != "" {
		return errPartition(number)
	}
	return nil
}

// Stage links a path to the volume of a disk, and grows the volume to the disk. A blank disk gets a partition with NTFS first.
func (s *System) Stage(ctx context.Context, device, path, _ string, _ []string) error {
	p, err := s.prepare(ctx, device)
	if err != nil {
		return err
	}
	path = s.host.Path(path)
	if target, err := os.Readlink(path); err != nil || !sameVolume(target, p.Volume) {
		if err := s.link(p.Volume, path); err != nil {
			return err
		}
	}
	return s.grow(ctx, device, p)
}

// prepare takes the steps that make a volume of a disk, and returns its partition.
func (s *System) prepare(ctx context.Context, device string) (Partition, error) {
	const most = 5 // enable, initialize, divide, format, and the volume is ready
	for range most {
		d, err := s.disk(ctx, device)
		if err != nil {
			return Partition{}, err
		}
		step, err := d.next()
		if err != nil || step.script == "" {
			return step.partition, err
		}
		if err := s.checkBlank(d, step.blank); err != nil {
			return Partition{}, err
		}
		_, err = s.run(ctx, step.script, map[string]string{
			diskVariable: device, partitionVariable: strconv.Itoa(step.partition.Number),
		})
		if err != nil {
			return Partition{}, fmt.Errorf("prepare disk number %s: %w", device, err)
		}
	}
	return Partition{}, fmt.Errorf("disk number %s has no volume after %d steps", device, most)
}

// checkBlank returns an error if an area of a disk has content.
func (s *System) checkBlank(d Disk, areas []area) error {
	for _, a := range areas {
		data := make([]byte, a.length)
		if err := s.host.Read(d.Number, a.offset, data); err != nil {
			return fmt.Errorf("read disk number %d at %d: %w", d.Number, a.offset, err)
		}
		for i, b := range data {
			if b != 0 {
				return fmt.Errorf("disk number %d has content at byte %d that Windows does not know, such as a file system of Linux: it "+
					"is not formatted", d.Number, a.offset+int64(i))
			}
		}
	}
	return nil
}

// link makes a link at a path, in place of another link or an empty directory.
func (s *System) link(target, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.links.Mount(target, path, "", []string{"bind"})
}

// Mounted reports whether a path is a link.
func (s *System) Mounted(path string) (bool, error) {
	mounted, err := s.links.IsMountPoint(s.host.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}

// MountedWell reports whether a path is a link to a volume that can be read. It removes any other link.
func (s *System) MountedWell(path string) (bool, error) {
	path = s.host.Path(path)
	mounted, err := s.Mounted(path)
	if err != nil || !mounted {
		return false, err
	}
	if err := mount.Readable(path); err != nil {
		slog.Warn("volume cannot be read; its link is removed", "path", path, "error", err)
		return false, s.links.Unmount(path)
	}
	return true, nil
}

// Bind links a path to a staged volume. Option ro has no effect: the kubelet gives the volume to containers read-only.
func (s *System) Bind(source, target string, _ []string) error {
	if mounted, err := s.MountedWell(target); mounted || err != nil {
		return err
	}
	return s.link(s.host.Path(source), s.host.Path(target))
}

// Unmount removes the link at a path, or an empty directory. If the link is that of a volume, Windows first writes what it holds
// of it.
func (s *System) Unmount(ctx context.Context, path string) error {
	path = s.host.Path(path)
	mounted, err := s.links.IsMountPoint(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !mounted:
		return os.Remove(path)
	}
	if target, err := os.Readlink(path); err == nil && isVolume(target) {
		if _, err := s.run(ctx, flush, map[string]string{volumeVariable: strings.TrimRight(target, `\`) + `\`}); err != nil {
			return fmt.Errorf("flush the volume at %s: %w", path, err)
		}
	}
	return s.links.Unmount(path)
}

// Others returns nothing: Windows has no list of the links to a volume.
func (s *System) Others(string) ([]string, error) { return nil, nil }

// Device returns the number of the disk that has the volume of a path.
func (s *System) Device(ctx context.Context, path string) (string, error) {
	const links = 4 // the path of a pod, the staging path, and what an administrator may have put between them
	target := s.host.Path(path)
	for range links {
		var err error
		if target, err = os.Readlink(strings.TrimRight(target, `\`)); err != nil {
			return "", err
		}
		if !isVolume(target) {
			continue
		}
		disks, err := s.disks(ctx)
		if err != nil {
			return "", err
		}
		d, err := ofVolume(disks, target)
		if err != nil {
			return "", err
		}
		return strconv.Itoa(d.Number), nil
	}
	return "", fmt.Errorf("%s does not lead to a volume", path)
}

// Grow grows the partition of a disk, and its file system, to the disk.
func (s *System) Grow(ctx context.Context, device, _ string) error {
	p, err := s.prepare(ctx, device)
	if err != nil {
		return err
	}
	return s.grow(ctx, device, p)
}

func (s *System) grow(ctx context.Context, device string, p Partition) error {
	variables := map[string]string{diskVariable: device, partitionVariable: strconv.Itoa(p.Number)}
	output, err := s.run(ctx, sizes, variables)
	if err != nil {
		return fmt.Errorf("sizes of partition %d of disk number %s: %w", p.Number, device, err)
	}
	size, most, err := parseSizes(output)
	if err != nil || !growsTo(size, most) {
		return err
	}
	variables[sizeVariable] = strconv.FormatInt(most, 10)
	if _, err = s.run(ctx, resize, variables); err != nil {
		return fmt.Errorf("grow partition %d of disk number %s from %d to %d bytes: %w", p.Number, device, size, most, err)
	}
	return nil
}

// Usage returns the used and free bytes of the volume at a path. NTFS has no number of inodes.
func (s *System) Usage(path string) ([]*csispec.VolumeUsage, error) {
	total, available, err := s.host.Usage(s.host.Path(path))
	if err != nil {
		return nil, &fs.PathError{Op: "usage", Path: path, Err: err}
	}
	return []*csispec.VolumeUsage{
		{Unit: csispec.VolumeUsage_BYTES, Total: total, Available: available, Used: total - available},
	}, nil
}

// Health returns whether the volume at a path can be read.
func (s *System) Health(path string) (*mount.Fault, error) {
	path = s.host.Path(path)
	if _, err := os.Lstat(path); err != nil {
		return nil, err
	}
	if err := mount.Readable(path); err != nil {
		return &mount.Fault{Reason: "Unreadable", Message: "the volume cannot be read: " + err.Error(), Lost: true}, nil
	}
	return nil, nil
}
