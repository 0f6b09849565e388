package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// devices is a directory with dev and sys, as the kernel and udev of a machine fill them.
type devices struct {
	t    *testing.T
	root string
}

func (d devices) write(path, text string) {
	d.t.Helper()
	path = filepath.Join(d.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d devices) nvme(name, namespace, model string) {
	d.t.Helper()
	d.write("dev/"+name, "")
	d.write("sys/block/"+name+"/nsid", namespace+"\n")
	d.write("sys/block/"+name+"/device/model", model+"   \n")
}

func (d devices) scsi(name, controller, address string) {
	d.t.Helper()
	bus := "sys/devices/VMBUS/" + controller
	device := bus + "/host0/target0/" + address
	d.write("dev/"+name, "")
	d.write(bus+"/device_id", "{"+controller+"}\n")
	d.write(device+"/vendor", "Msft    \n")
	d.write(device+"/model", "Virtual Disk    \n")
	d.write("sys/block/"+name+"/size", "8\n")
	if err := os.Symlink(filepath.Join(d.root, device), filepath.Join(d.root, "sys/block", name, "device")); err != nil {
		d.t.Fatal(err)
	}
}

// TestDiskOfEtcd checks how the boot script finds the disk with LUN 0, with and without links of udev.
func TestDiskOfEtcd(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the script needs bash")
	}
	const (
		remote   = "MSFT NVMe Accelerator v1.0"
		osDisk   = "f8b3781a-1e82-4818-a1c3-63d806ec15bb"
		dataDisk = "f8b3781b-1e82-4818-a1c3-63d806ec15bb"
	)
	for _, c := range []struct {
		name string
		make func(d devices)
		want string // the path below the directory, or a part of the message
	}{
		{"link of the Linux agent", func(d devices) { d.write("dev/disk/azure/scsi1/lun0", "") }, "/dev/disk/azure/scsi1/lun0"},
		{"link of azure-vm-utils", func(d devices) { d.write("dev/disk/azure/data/by-lun/0", "") }, "/dev/disk/azure/data/by-lun/0"},
		{"NVMe without links", func(d devices) {
			d.nvme("nvme0n1", "1", remote)
			d.nvme("nvme0n2", "2", remote)
			d.nvme("nvme0n3", "3", remote)
			d.nvme("nvme1n1", "2", "Microsoft NVMe Direct Disk v2")
		}, "/dev/nvme0n2"},
		{"SCSI without links", func(d devices) {
			d.scsi("sda", osDisk, "0:0:0:0")
			d.scsi("sdb", dataDisk, "1:0:0:0")
			d.scsi("sdc", dataDisk, "1:0:0:10")
		}, "/dev/sdb"},
		{"the kernel has no file yet", func(d devices) {
			d.nvme("nvme0n2", "2", remote)
			if err := os.Remove(filepath.Join(d.root, "dev/nvme0n2")); err != nil {
				d.t.Fatal(err)
			}
		}, "the disk of etcd is missing: no disk with LUN 0"},
		{"two controllers", func(d devices) {
			d.nvme("nvme0n2", "2", remote)
			d.nvme("nvme1n2", "2", remote)
		}, "2 disks have LUN 0: "},
		{"only the disk of the system", func(d devices) { d.scsi("sda", osDisk, "0:0:0:0") }, "the disk of etcd is missing: no disk with LUN 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := devices{t, t.TempDir()}
			c.make(d)
			out, err := etcdDisk(t, d.root, "")
			if strings.HasPrefix(c.want, "/") {
				if want := "formats " + d.root + c.want + "\n"; err != nil || out != want {
					t.Errorf("got %v %q, want %q", err, out, want)
				}
			} else if err == nil || !strings.HasPrefix(out, c.want) {
				t.Errorf("got %v %q, want %q", err, out, c.want)
			}
		})
	}
}

// TestDiskWithOtherContent checks that only a blank disk gets a file system.
func TestDiskWithOtherContent(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the script needs bash")
	}
	for content, want := range map[string]string{
		"":                              "formats ",
		`LABEL="etcd_disk"`:             "",
		`LABEL="data" TYPE="xfs"`:       "the disk with LUN 0 is not the one of etcd, and not blank: LABEL=\"data\" TYPE=\"xfs\"\n",
		`PTTYPE="gpt"`:                  "the disk with LUN 0 is not the one of etcd, and not blank: PTTYPE=\"gpt\"\n",
		`LABEL="etcd_disk2" TYPE="xfs"`: "the disk with LUN 0 is not the one of etcd",
	} {
		d := devices{t, t.TempDir()}
		d.write("dev/disk/azure/scsi1/lun0", "")
		out, err := etcdDisk(t, d.root, content)
		if !strings.HasPrefix(out, want) || want == "" && out != "" || (err != nil) != strings.HasPrefix(want, "the disk") {
			t.Errorf("%s: got %v %q, want %q", content, err, out, want)
		}
	}
}

// etcdDisk runs the phase that mounts the disk of etcd, where blkid shows a content of the disk.
func etcdDisk(t *testing.T, root, content string) (string, error) {
	t.Helper()
	return call(t, "awk", content, `root=`+root+` KAZ_ROLE=control-plane KAZ_TRIES=2 KAZ_RETRY_DELAY=0
		content=$(cat)
		blkid() {
			case "$*" in
				*LABEL*) [[ $content =~ LABEL=\"([^\"]*)\" ]] && echo "${BASH_REMATCH[1]}" ;;
				*UUID*) echo 1234 ;;
				*) [ -n "$content" ] && echo "$content" ;;
			esac
		}
		mkfs.ext4() { echo "formats ${!#}"; }
		mountpoint() { return 0; }
		mkdir -p "$root/etc"; touch "$root/etc/fstab"
		disks`, "attribute", "at-data-controller", "device", "disks")
}
