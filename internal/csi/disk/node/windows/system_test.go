//go:build linux

package windows

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// TestRefused checks that block volumes (186), other file systems than NTFS, mount options and partitions are refused before
// anything is asked of the machine.
func TestRefused(t *testing.T) {
	n, m := newNode(t)
	block := capability("")
	block.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	for _, c := range []struct {
		row, want     string
		capability    *csispec.VolumeCapability
		volumeContext []string
	}{
		{"186: block", "block volumes are not supported on Windows: use volumeMode Filesystem", block, nil},
		{"file system", `fsType "ext4" is not supported on Windows: want ntfs`, capability("ext4"), nil},
		{"file system of the context", `fsType "xfs" is not supported on Windows: want ntfs`, capability("ntfs"), []string{"fstype", "xfs"}},
		{"mount options", `mount options ["noatime"] are not supported on Windows: want none`, capability("", "noatime"), nil},
		{"partition", `partition "2" is not supported on Windows`, capability(""), []string{"partition", "2"}},
		{"no capability", "capability is missing", nil, nil},
	} {
		want(t, c.row, m.stage(t, n, c.capability, c.volumeContext...), codes.InvalidArgument, c.want)
	}
	want(t, "186: publish", m.publish(t, n, block, filepath.Join(m.dir, "pod")), codes.InvalidArgument, "block volumes are not supported")
	if len(m.ran) > 0 {
		t.Errorf("refused requests ran %q", m.ran)
	}
}

// TestLife checks the life of a volume. A blank disk is formatted once and linked, also if it is staged again, and a pod
// sees it. At the end the links are removed. Windows writes what it holds of the volume before its link is removed.
func TestLife(t *testing.T) {
	n, m := newNode(t)
	m.disk(scsi(3, "11"))
	disk := m.disk(scsi(2, "1"))
	disk.Offline = true
	if err := os.MkdirAll(m.staging(), 0o750); err != nil { // as the kubelet does
		t.Fatal(err)
	}
	target := filepath.Join(m.dir, "pod", "mount")
	for range 2 {
		want(t, "stage", m.stage(t, n, capability("NTFS")), codes.OK, "")
		want(t, "publish", m.publish(t, n, capability(""), target), codes.OK, "")
	}
	for _, s := range []script{enable, initialize, divide, format} {
		if m.count(s) != 1 {
			t.Errorf("ran %d times: %s", m.count(s), s)
		}
	}
	for path, want := range map[string]string{m.staging(): guid1, target: m.staging()} {
		if have, err := os.Readlink(path); have != want {
			t.Errorf("%s leads to %q, %v; want %q", path, have, err, want)
		}
	}
	stats, err := n.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: volume, VolumePath: target})
	want(t, "statistics", err, codes.OK, "")
	if u := stats.GetUsage(); len(u) != 1 || u[0].GetUnit() != csispec.VolumeUsage_BYTES || u[0].GetTotal() != 4*gib ||
		u[0].GetAvailable() != 3*gib || u[0].GetUsed() != gib {
		t.Errorf("statistics: %v", u)
	}
	for range 2 {
		_, err := n.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: target})
		want(t, "unpublish", err, codes.OK, "")
	}
	if m.count(flush) != 0 {
		t.Error("the volume is flushed while it is staged")
	}
	for range 2 {
		_, err := n.NodeUnstageVolume(t.Context(), &csispec.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: m.staging()})
		want(t, "unstage", err, codes.OK, "")
	}
	if m.count(flush) != 1 {
		t.Errorf("the volume is flushed %d times", m.count(flush))
	}
	for _, path := range []string{m.staging(), target} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	want(t, "publish what is not staged", m.publish(t, n, capability(""), target), codes.FailedPrecondition, "must be staged first")
}

// TestNeverFormats checks that a disk with content keeps it, also content that Windows does not know.
func TestNeverFormats(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(m *machine, d *Disk)
	}{
		{"ext4 on the disk", "content at byte 1080", func(m *machine, d *Disk) { m.content[d.Number] = map[int64]byte{1080: 0x53} }},
		{"RAID at the end", "content at byte 4294963200", func(m *machine, d *Disk) { m.content[d.Number] = map[int64]byte{4*gib - 4096: 0xfc} }},
		{"ext4 in a partition", "content at byte 16778296", func(m *machine, d *Disk) {
			d.Style, d.Partitions = "GPT", []Partition{{Number: 1, Type: "Basic", Offset: 16 * mib, Size: gib, Volume: guid1}}
			m.content[d.Number] = map[int64]byte{16*mib + 1080: 0x53}
		}},
		{"ReFS", "file system ReFS: want NTFS", func(_ *machine, d *Disk) {
			d.Style, d.Partitions = "GPT", []Partition{{Number: 1, Type: "Basic", Size: gib, Volume: guid1, FileSystem: "ReFS"}}
		}},
		{"partitions of Linux", "no volume of Windows", func(_ *machine, d *Disk) {
			d.Style, d.Partitions = "GPT", []Partition{{Number: 1, Type: "Unknown", Size: gib}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, m := newNode(t)
			c.change(m, m.disk(scsi(2, "1")))
			want(t, c.name, m.stage(t, n, capability("")), codes.Internal, c.want)
			if m.count(initialize)+m.count(divide)+m.count(format) > 0 {
				t.Error("the disk was changed")
			}
			if _, err := os.Lstat(m.staging()); err == nil {
				t.Error("the disk has a link")
			}
		})
	}
}

// TestInterrupted checks that a disk whose preparation was interrupted after any step is prepared when it is asked for again.
func TestInterrupted(t *testing.T) {
	for _, at := range []script{initialize, divide, format, sizes} {
		n, m := newNode(t)
		m.disk(scsi(2, "1"))
		m.before = func(s script) error {
			if s != at {
				return nil
			}
			return errors.New("powershell: exit status 1: not enough memory")
		}
		want(t, "interrupted", m.stage(t, n, capability("")), codes.Internal, "not enough memory")
		m.before = nil
		want(t, "again", m.stage(t, n, capability("")), codes.OK, "")
		if m.count(initialize) > 2 || m.count(format) > 2 {
			t.Errorf("interrupted at %s: ran %q", at, m.ran)
		}
	}
}

// TestFind checks that a disk that appears late is waited for, and that the wait ends with what was looked for.
func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := newNode(t)
		appears := time.Now().Add(30 * time.Second)
		m.before = func(script) error {
			if time.Now().After(appears) && len(m.disks) == 1 {
				m.disk(scsi(2, "1"))
			}
			return nil
		}
		want(t, "late", m.stage(t, n, capability("")), codes.OK, "")
		if took := time.Since(appears); took > 2*time.Second || m.count(rescan) < 5 {
			t.Errorf("found %v after it appeared, with %d scans", took, m.count(rescan))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n, m := newNode(t)
		want(t, "never", m.stage(t, n, capability("")), codes.DeadlineExceeded,
			`no SCSI disk has a location that ends in "LUN 1", at another adapter`)
		m.disk(scsi(2, "1"))
		m.disk(scsi(3, "1"))
		want(t, "two", m.stage(t, n, capability("")), codes.Internal, "the disks with the numbers 2, 3")
	})
}

// TestExpand checks that a partition grows to its disk once Windows sees the new size, also when the disk grew while it was not
// staged.
func TestExpand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := newNode(t)
		disk := m.disk(scsi(2, "1"))
		want(t, "stage", m.stage(t, n, capability("")), codes.OK, "")
		target := filepath.Join(m.dir, "pod", "mount")
		want(t, "publish", m.publish(t, n, capability(""), target), codes.OK, "")
		expand := func() (int64, error) {
			answer, err := n.NodeExpandVolume(t.Context(), &csispec.NodeExpandVolumeRequest{
				VolumeId: volume, VolumePath: target, CapacityRange: &csispec.CapacityRange{RequiredBytes: 8 * gib},
			})
			return answer.GetCapacityBytes(), err
		}
		_, err := expand()
		want(t, "not yet", err, codes.Unavailable, "sees 4294967296 bytes of 8589934592")
		m.before = func(s script) error {
			if s == rescan {
				disk.Size = 8 * gib
			}
			return nil
		}
		size, err := expand()
		want(t, "grown", err, codes.OK, "")
		if p := disk.Partitions[1]; size != 8*gib || p.Size != 8*gib-17*mib || m.count(resize) != 1 {
			t.Errorf("the answer is %d, the partition %d bytes, after %d changes", size, p.Size, m.count(resize))
		}
		disk.Size = 16 * gib
		want(t, "stage again", m.stage(t, n, capability("")), codes.OK, "")
		if p := disk.Partitions[1]; p.Size != 16*gib-17*mib {
			t.Errorf("the partition has %d bytes", p.Size)
		}
		_, err = n.NodeExpandVolume(t.Context(), &csispec.NodeExpandVolumeRequest{VolumeId: volume, VolumePath: m.dir})
		want(t, "no link", err, codes.NotFound, "expand volume")
	})
}

// TestGoneVolume checks that a volume whose disk is gone is reported, that links to it are replaced, and that it can be unstaged.
func TestGoneVolume(t *testing.T) {
	n, m := newNode(t)
	disk := m.disk(scsi(2, "1"))
	want(t, "stage", m.stage(t, n, capability("")), codes.OK, "")
	volumeDir := filepath.Join(filepath.Dir(m.staging()), guid1)
	health := func() []*csispec.VolumeHealth_VolumeHealthEntry {
		answer, err := n.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: volume, StagingTargetPath: m.staging()})
		want(t, "health", err, codes.OK, "")
		return answer.GetVolumeHealth().GetHealthStatuses()
	}
	if entries := health(); len(entries) > 0 {
		t.Errorf("health of a volume that can be read: %v", entries)
	}
	if err := os.Remove(volumeDir); err != nil {
		t.Fatal(err)
	}
	if entries := health(); len(entries) != 1 || entries[0].GetStatus() != csispec.VolumeHealthErrorType_INACCESSIBLE {
		t.Errorf("health of a volume that is gone: %v", entries)
	}
	disk.Partitions[1].Volume = guid2 // that of another attachment
	m.disks = slices.Delete(m.disks, 0, 1)
	want(t, "stage again", m.stage(t, n, capability("")), codes.OK, "")
	if have, err := os.Readlink(m.staging()); have != guid2 {
		t.Errorf("the path leads to %q, %v", have, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(m.staging()), guid2)); err != nil {
		t.Fatal(err)
	}
	_, err := n.NodeUnstageVolume(t.Context(), &csispec.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: m.staging()})
	want(t, "unstage", err, codes.OK, "")
	if _, err := os.Lstat(m.staging()); err == nil {
		t.Error("the link is still there")
	}
}

// TestSmallDisk checks that a disk that is smaller than its volume is not touched.
func TestSmallDisk(t *testing.T) {
	n, m := newNode(t)
	m.disk(scsi(2, "1"))
	want(t, "small", m.stage(t, n, capability(""), "requestedsizegib", "8"), codes.FailedPrecondition, "it is another disk")
	if m.count(initialize) > 0 {
		t.Error("the disk was changed")
	}
}
