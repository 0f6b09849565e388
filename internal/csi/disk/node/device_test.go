//go:build linux

package node_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kaz/internal/csi/disk/node"
)

// namespace adds an NVMe namespace to the kernel's view, without links of udev.
func (w *host) namespace(t *testing.T, name, id, model string) {
	t.Helper()
	addDevice(t, w.root, name, map[string]string{"nsid": id + "\n", "device/model": model + "   \n"})
}

// addDevice adds a block device to a directory with dev and sys.
func addDevice(t *testing.T, root, name string, attributes map[string]string) {
	t.Helper()
	files := map[string]string{filepath.Join("dev", name): ""}
	for attribute, value := range attributes {
		files[filepath.Join("sys/block", name, attribute)] = value
	}
	for file, text := range files {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// addSCSI adds a SCSI disk below a controller of the virtual machine bus.
func addSCSI(t *testing.T, root, name, controller, address, model string) {
	t.Helper()
	bus := filepath.Join(root, "sys/devices/VMBUS", controller)
	device := filepath.Join(bus, "host0/target0", address)
	addDevice(t, root, name, nil)
	for file, text := range map[string]string{
		filepath.Join(bus, "device_id"): "{" + controller + "}\n", filepath.Join(device, "vendor"): "Msft    \n",
		filepath.Join(device, "model"): model + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	block := filepath.Join(root, "sys/block", name)
	if err := os.MkdirAll(block, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(device, filepath.Join(block, "device")); err != nil {
		t.Fatal(err)
	}
}

// TestFind checks how the device of LUN 2 is found. The links of both sets of udev rules lead to it. Without links, the
// kernel's own view of NVMe namespaces (170) and SCSI disks does.
func TestFind(t *testing.T) {
	const (
		remote     = "MSFT NVMe Accelerator v1.0"
		osDisks    = "f8b3781a-1e82-4818-a1c3-63d806ec15bb"
		dataDisks  = "f8b3781b-1e82-4818-a1c3-63d806ec15bb"
		scsi, nvme = "dev/disk/azure/scsi1/lun2", "dev/disk/azure/data/by-lun/2"
	)
	for _, c := range []struct {
		name string
		make func(t *testing.T, root string)
		want string // "" for an error
	}{
		{"a link of the Linux agent", func(t *testing.T, root string) { addDevice(t, root, "disk/azure/scsi1/lun2", nil) }, scsi},
		{"a link of azure-vm-utils", func(t *testing.T, root string) { addDevice(t, root, "disk/azure/data/by-lun/2", nil) }, nvme},
		{"170: NVMe by namespace", func(t *testing.T, root string) {
			for name, id := range map[string]string{"nvme0n1": "1", "nvme0n2": "2", "nvme0n3": "3", "nvme0n9": "4"} {
				addDevice(t, root, name, map[string]string{"nsid": id, "device/model": remote + "  \n"})
			}
		}, "dev/nvme0n9"},
		{"a local NVMe disk", func(t *testing.T, root string) {
			addDevice(t, root, "nvme1n1", map[string]string{"nsid": "4", "device/model": "Microsoft NVMe Direct Disk v2"})
		}, ""},
		{"two controllers", func(t *testing.T, root string) {
			for _, name := range []string{"nvme0n4", "nvme1n4"} {
				addDevice(t, root, name, map[string]string{"nsid": "4", "device/model": remote})
			}
		}, ""},
		{"SCSI without links", func(t *testing.T, root string) {
			addSCSI(t, root, "sda", osDisks, "0:0:0:0", "Virtual Disk")
			addSCSI(t, root, "sdb", osDisks, "0:0:0:2", "Virtual Disk")
			addSCSI(t, root, "sdc", dataDisks, "1:0:0:0", "Virtual Disk")
			addSCSI(t, root, "sdd", dataDisks, "1:0:0:2", "Virtual Disk")
		}, "dev/sdd"},
		{"a DVD drive", func(t *testing.T, root string) { addSCSI(t, root, "sr0", dataDisks, "1:0:0:2", "Virtual DVD-ROM") }, ""},
		{"LUN 12", func(t *testing.T, root string) { addSCSI(t, root, "sde", dataDisks, "1:0:0:12", "Virtual Disk") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			c.make(t, root)
			within := 10 * time.Second
			if c.want == "" {
				within = 10 * time.Millisecond
			}
			have, err := node.Devices{Root: root, Within: within}.Find(t.Context(), 2)
			if c.want == "" && err == nil || c.want != "" && have != filepath.Join(root, c.want) {
				t.Errorf("%q, %v; want %q", have, err, c.want)
			}
		})
	}
}
