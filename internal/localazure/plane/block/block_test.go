//go:build linux

package block_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/block"
	"kaz/internal/testkit"
)

type object = map[string]any

// machines is a local Azure with two machines and the physical side of its disks.
type machines struct {
	*testkit.Azure
	t    *testing.T
	dir  string
	a, b azure.ID
	disk azure.ID
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loop devices need root")
	}
	m := &machines{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t, dir: t.TempDir()}
	m.a, m.b = m.AddMachine(testkit.VirtualMachine{Name: "a"}), m.AddMachine(testkit.VirtualMachine{Name: "b"})
	m.disk = testkit.Group.Resource("Microsoft.Compute/disks", "data")
	m.putDisk(m.disk, 1, object{"createOption": "Empty"})
	return m
}

func (m *machines) putDisk(id azure.ID, size int, source object) {
	m.t.Helper()
	m.Put(id, object{"location": testkit.Location, "sku": object{"name": "Premium_LRS"},
		"properties": object{"diskSizeGB": size, "maxShares": 2, "creationData": source}})
}

// start starts the physical side.
func (m *machines) start() *block.Block {
	m.t.Helper()
	p, err := block.Start(m.t.Context(), block.Options{
		Azure: m.Emulator, Dir: filepath.Join(m.dir, "disks"),
		Root: func(id azure.ID, _ behaviour.Object) (string, bool) { return filepath.Join(m.dir, id.Name()), true },
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(p.Close)
	return p
}

// change attaches a disk to a machine at a LUN, or detaches it if the LUN is negative.
func (m *machines) change(machine, disk azure.ID, lun int) {
	m.t.Helper()
	body := object{"dataDisksToDetach": []object{{"diskId": disk}}}
	if lun >= 0 {
		body = object{"dataDisksToAttach": []object{{"diskId": disk, "lun": lun}}}
	}
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.Client.Post(m.t.Context(), machine, "attachDetachDataDisks", text); err != nil {
		m.t.Fatal(err)
	}
}

// link is where a machine has a disk.
func (m *machines) link(machine string, lun int) string {
	return filepath.Join(m.dir, machine, "dev/disk/azure/scsi1", fmt.Sprintf("lun%d", lun))
}

// eventually waits for what the physical side does after a change of documents.
func (m *machines) eventually(what string, check func() error) {
	m.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond) // the kernel sends no notice
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			m.t.Fatalf("%s: %v", what, err)
		}
	}
}

// device waits for a link and returns the device.
func (m *machines) device(machine string, lun int) string {
	m.t.Helper()
	var target string
	m.eventually("link", func() (err error) {
		target, err = os.Readlink(m.link(machine, lun))
		return err
	})
	return target
}

func (m *machines) absent(path string) {
	m.t.Helper()
	m.eventually("removal", func() error {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w, want that it is absent", path, err)
		}
		return nil
	})
}

const text = "bytes of the disk"

func (m *machines) write(device string) {
	m.t.Helper()
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 4096)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machines) read(device string) {
	m.t.Helper()
	f, err := os.Open(device)
	if err != nil {
		m.t.Fatal(err)
	}
	have := make([]byte, len(text))
	_, err = f.ReadAt(have, 4096)
	if err = errors.Join(err, f.Close()); err != nil || string(have) != text {
		m.t.Fatalf("%s: %q, %v, want %q", device, have, err, text)
	}
}

func size(device string) (int64, error) {
	f, err := os.Open(device)
	if err != nil {
		return 0, err
	}
	n, err := f.Seek(0, 2)
	return n, errors.Join(err, f.Close())
}

// backed reports whether a loop device has a file.
func backed(device string) bool {
	_, err := os.Stat(filepath.Join("/sys/block", filepath.Base(device), "loop/backing_file"))
	return err == nil
}

func TestContentMovesWithTheDisk(t *testing.T) {
	m := newMachines(t)
	m.start()
	m.change(m.a, m.disk, 3)
	first := m.device("a", 3)
	m.write(first)
	if _, err := os.Lstat(m.link("b", 3)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("machine b sees the disk of machine a: %v", err)
	}
	m.change(m.a, m.disk, -1)
	m.absent(m.link("a", 3))
	m.eventually("the free device", func() error {
		if backed(first) {
			return errors.New("it still has a file")
		}
		return nil
	})
	m.change(m.b, m.disk, 0)
	m.read(m.device("b", 0))
}

func TestContentOutlivesMachineAndProcess(t *testing.T) {
	m := newMachines(t)
	running := m.start()
	m.change(m.a, m.disk, 0)
	m.write(m.device("a", 0))
	running.Close()
	m.absent(m.link("a", 0))
	m.start()
	m.read(m.device("a", 0))
	if err := m.Client.Delete(t.Context(), m.a); err != nil {
		t.Fatal(err)
	}
	m.absent(m.link("a", 0))
	m.change(m.b, m.disk, 0)
	m.read(m.device("b", 0))
}

// The kernel of each machine must see what the other one writes.
func TestSharedDiskIsOneDevice(t *testing.T) {
	m := newMachines(t)
	m.start()
	m.change(m.a, m.disk, 0)
	m.change(m.b, m.disk, 5)
	if a, b := m.device("a", 0), m.device("b", 5); a != b {
		t.Errorf("devices %s and %s, want one", a, b)
	}
	m.change(m.a, m.disk, -1)
	m.absent(m.link("a", 0))
	m.write(m.device("b", 5))
}

// A mount keeps the device of a disk that Azure detached. Two devices of a file would not see each other's writes.
func TestBusyDeviceIsUsedAgain(t *testing.T) {
	m := newMachines(t)
	m.start()
	m.change(m.a, m.disk, 0)
	first := m.device("a", 0)
	busy, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	m.change(m.a, m.disk, -1)
	m.absent(m.link("a", 0))
	m.change(m.b, m.disk, 0)
	if again := m.device("b", 0); again != first {
		t.Errorf("device %s, want %s, which has the file", again, first)
	}
}

func TestGrownDisk(t *testing.T) {
	m := newMachines(t)
	m.start()
	m.change(m.a, m.disk, 0)
	device := m.device("a", 0)
	m.write(device)
	m.putDisk(m.disk, 2, object{"createOption": "Empty"})
	m.eventually("the new size", func() error {
		if n, err := size(device); err != nil || n != 2<<30 {
			return fmt.Errorf("%d bytes, %w, want 2 GiB", n, err)
		}
		return nil
	})
	m.read(device)
}

func TestSnapshotAndCopyAreIndependent(t *testing.T) {
	m := newMachines(t)
	m.start()
	m.change(m.a, m.disk, 0)
	m.write(m.device("a", 0))
	snapshot := testkit.Group.Resource("Microsoft.Compute/snapshots", "then")
	m.Put(snapshot, object{"location": testkit.Location,
		"properties": object{"creationData": object{"createOption": "Copy", "sourceResourceId": m.disk}, "incremental": true}})
	restored := testkit.Group.Resource("Microsoft.Compute/disks", "restored")
	m.putDisk(restored, 1, object{"createOption": "Copy", "sourceResourceId": snapshot})
	m.change(m.b, restored, 0)
	m.read(m.device("b", 0))
	if m.device("b", 0) == m.device("a", 0) {
		t.Error("the copy is the device of its source")
	}
}

func TestDeletedDiskLeavesNoFile(t *testing.T) {
	m := newMachines(t)
	m.start()
	files := func() []string {
		all, err := filepath.Glob(filepath.Join(m.dir, "disks", "*.img"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := files()
	if len(before) == 0 {
		t.Fatal("no files of disks")
	}
	if err := m.Client.Delete(t.Context(), m.disk); err != nil {
		t.Fatal(err)
	}
	m.eventually("removal of the file", func() error {
		if now := files(); len(now) != len(before)-1 {
			return fmt.Errorf("files %s, want one less than %s", strings.Join(now, " "), strings.Join(before, " "))
		}
		return nil
	})
}
