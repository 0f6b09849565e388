//go:build linux

package windows

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	mountutils "k8s.io/mount-utils"

	"kaz/internal/csi/disk/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// volume is the id of the volume in the tests.
const volume = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/data"

var _ node.System = (*System)(nil)

// machine plays a machine with Windows: it does what the scripts say to disks in memory. Volumes are directories with the
// names of volumes, which only Linux allows.
type machine struct {
	mountutils.Interface // links

	dir     string
	disks   []*Disk
	content map[int]map[int64]byte // of disks, by offset
	ran     []script
	// before is called before a script runs. Its error is that of the script.
	before func(script) error
}

// Run implements [Host].
func (m *machine) Run(_ context.Context, text string, variables map[string]string) ([]byte, error) {
	m.ran = append(m.ran, script(text))
	if m.before != nil {
		if err := m.before(script(text)); err != nil {
			return nil, err
		}
	}
	switch script(text) {
	case list:
		return json.Marshal(m.disks)
	case rescan:
		return nil, nil
	case flush:
		if !volumePath.MatchString(variables[volumeVariable]) {
			return nil, errors.New("Get-Volume: " + variables[volumeVariable])
		}
		return nil, nil
	}
	for _, d := range m.disks {
		if strconv.Itoa(d.Number) == variables[diskVariable] {
			return m.change(d, script(text), variables)
		}
	}
	return nil, errors.New("no such disk")
}

// change runs a script for one disk.
func (m *machine) change(d *Disk, text script, variables map[string]string) ([]byte, error) {
	const behind = 17 * mib // a partition ends before the end of the disk
	switch text {
	case enable:
		d.Offline, d.ReadOnly = false, false
		return nil, nil
	case initialize:
		d.Style = "GPT"
		d.Partitions = append(d.Partitions, Partition{Number: 1, Type: "Reserved", Offset: 17408, Size: 16759808})
		return nil, nil
	case divide:
		d.Partitions = append(d.Partitions, Partition{Number: 2, Type: "Basic", Offset: 16 * mib, Size: d.Size - behind, Volume: guid1})
		return nil, nil
	}
	for i := range d.Partitions {
		p := &d.Partitions[i]
		if strconv.Itoa(p.Number) != variables[partitionVariable] {
			continue
		}
		switch text {
		case format:
			p.FileSystem = "NTFS"
			return nil, nil
		case sizes:
			return json.Marshal(map[string]int64{"Size": p.Size, "Most": d.Size - behind})
		case resize:
			var err error
			p.Size, err = strconv.ParseInt(variables[sizeVariable], 10, 64)
			return nil, err
		}
	}
	return nil, errors.New("no such partition")
}

// Read implements [Host].
func (m *machine) Read(disk int, offset int64, data []byte) error {
	for at, b := range m.content[disk] {
		if at >= offset && at < offset+int64(len(data)) {
			data[at-offset] = b
		}
	}
	return nil
}

// Usage implements [Host].
func (m *machine) Usage(path string) (total, available int64, err error) {
	_, err = os.Stat(path)
	return 4 * gib, 3 * gib, err
}

// Path implements [Host].
func (m *machine) Path(path string) string { return path }

// Mount makes a link, as mount-utils does on Windows. The volume at its end is a directory beside the link.
func (m *machine) Mount(source, target, _ string, options []string) error {
	if len(options) != 1 || options[0] != "bind" {
		return errors.New("only links")
	}
	if isVolume(source) {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(target), source), 0o750); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	return os.Symlink(source, target)
}

// Unmount removes a link.
func (m *machine) Unmount(target string) error { return os.Remove(target) }

// IsMountPoint reports whether a path is a link.
func (m *machine) IsMountPoint(path string) (bool, error) {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0, err
}

// count returns how often a script ran.
func (m *machine) count(s script) int {
	n := 0
	for _, ran := range m.ran {
		if ran == s {
			n++
		}
	}
	return n
}

// disk adds a disk, and returns it.
func (m *machine) disk(d Disk) *Disk {
	m.disks = append(m.disks, &d)
	return &d
}

// newNode returns a node service on a machine with a disk of the operating system.
func newNode(t *testing.T) (*node.Node, *machine) {
	t.Helper()
	m := &machine{dir: t.TempDir(), content: map[int]map[int64]byte{}}
	m.disk(Disk{
		Number: 0, Location: "Integrated : Adapter 0 : Port 0 : Target 0 : LUN 1", BusType: "SAS", Style: "GPT", Size: 128 * gib, System: true,
		Partitions: []Partition{{Number: 1, Type: "Basic", Size: 127 * gib, Volume: guid2, FileSystem: "NTFS"}},
	})
	return node.New(node.Config{System: New(m, m)}), m
}

// capability is the capability of a volume with a file system.
func capability(fsType string, flags ...string) *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}},
	}
}

func (m *machine) staging() string { return filepath.Join(m.dir, "staging", "globalmount") }

// stage stages the disk of LUN 1 with a capability.
func (m *machine) stage(t *testing.T, n *node.Node, c *csispec.VolumeCapability, volumeContext ...string) error {
	t.Helper()
	inContext := map[string]string{}
	for i := 0; i+1 < len(volumeContext); i += 2 {
		inContext[volumeContext[i]] = volumeContext[i+1]
	}
	_, err := n.NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: m.staging(), VolumeCapability: c, VolumeContext: inContext,
		PublishContext: map[string]string{"LUN": "1"},
	})
	return err
}

func (m *machine) publish(t *testing.T, n *node.Node, c *csispec.VolumeCapability, target string) error {
	t.Helper()
	_, err := n.NodePublishVolume(t.Context(), &csispec.NodePublishVolumeRequest{
		VolumeId: volume, StagingTargetPath: m.staging(), TargetPath: target, VolumeCapability: c,
		PublishContext: map[string]string{"LUN": "1"}, Readonly: true,
	})
	return err
}

// want fails the test if err has another code or lacks a text.
func want(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want code %s and %q", what, err, code, text)
	}
}
