package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Enter is the first process of a machine. It mounts the root file system and becomes systemd. It returns only an error.
func Enter(s Spec, console string) error {
	if os.Getpid() != 1 {
		return errors.New("only the first process of a machine can boot it")
	}
	if err := unix.Sethostname([]byte(s.Host)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := forgetAddresses(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount / as private: %w", err)
	}
	root, err := mountRoot(s)
	if err != nil {
		return err
	}
	if err := errors.Join(provision(root, s), trust(root, s.AzureCA)); err != nil {
		return err
	}
	for _, step := range []func(Spec, string) error{mountSystem, mountCgroups, mountFirmware, mountBus, mountOwn, ignite} {
		if err := step(s, root); err != nil {
			return err
		}
	}
	if err := bind(console, filepath.Join(root, "dev/console")); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return become(root)
}

// forgetAddresses removes the IPv4 addresses that the network gave to the interfaces: the machine asks for them by DHCP.
func forgetAddresses() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		if err := run(context.Background(), "ip", "-4", "address", "flush", "dev", i.Name); err != nil {
			return err
		}
	}
	return nil
}

// mountRoot mounts the layers of the image with the machine's own files above them.
func mountRoot(s Spec) (string, error) {
	root := filepath.Join(s.Dir, "root")
	for _, dir := range []string{"root", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o755); err != nil {
			return "", err
		}
	}
	data := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", strings.Join(s.Image.Layers, ":"), s.Dir, s.Dir)
	return root, mount("overlay", root, "overlay", 0, data)
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s %s: %w", kind, target, err)
	}
	return nil
}

// bind mounts a file or a directory at another path.
func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// bindFile mounts a file with a text over another one.
func bindFile(s Spec, name, text, target string) error {
	file := filepath.Join(s.Dir, "firmware", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o444); err != nil {
		return err
	}
	return bind(file, target)
}

// mountSystem mounts what a kernel gives each system. The devices are the devices of this machine. Links to disks are the
// machine's own.
func mountSystem(s Spec, root string) error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		kind, target string
		flags        uintptr
		data         string
	}{
		{"proc", "proc", safe, ""}, {"sysfs", "sys", safe, ""}, {"devtmpfs", "dev", unix.MS_NOSUID, "mode=755"},
		{"devpts", "dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5"},
		{"tmpfs", "dev/shm", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"}, {"mqueue", "dev/mqueue", safe, ""},
		{"tmpfs", "run", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		if err := mount(m.kind, filepath.Join(root, m.target), m.kind, m.flags, m.data); err != nil {
			return err
		}
	}
	disks := filepath.Join(s.Dir, "dev/disk")
	if err := errors.Join(os.MkdirAll(disks, 0o755), os.MkdirAll(filepath.Join(root, "dev/disk"), 0o755)); err != nil {
		return err
	}
	if err := bind(disks, filepath.Join(root, "dev/disk")); err != nil {
		return err
	}
	if err := bind(filepath.Join(root, "dev/pts/ptmx"), filepath.Join(root, "dev/ptmx")); err != nil {
		return err
	}
	// Swap belongs to the host: a machine must not turn it off.
	return bindFile(s, "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", filepath.Join(root, "proc/swaps"))
}

const cgroupRoot = "/sys/fs/cgroup"

// mountCgroups mounts the hierarchies of control groups as this machine has them. The machine sees its own part.
func mountCgroups(_ Spec, root string) error {
	inside := filepath.Join(root, cgroupRoot)
	var f unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &f); err != nil {
		return err
	}
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if f.Type == unix.CGROUP2_SUPER_MAGIC {
		return mount("cgroup2", inside, "cgroup2", safe, "")
	}
	if err := mount("tmpfs", inside, "tmpfs", safe, "mode=755"); err != nil {
		return err
	}
	hierarchies, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		target := filepath.Join(inside, filepath.Base(h.dir))
		if err := mount(h.kind, target, h.kind, safe, h.data); err != nil {
			return err
		}
	}
	return nil
}

type hierarchy struct{ dir, kind, data string }

// cgroupMounts returns the hierarchies below [cgroupRoot], with the options that mount them again.
func cgroupMounts() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []hierarchy
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		const dirField = 4
		if len(head) <= dirField || len(tail) < 3 || filepath.Dir(head[dirField]) != cgroupRoot {
			continue
		}
		h := hierarchy{dir: head[dirField], kind: tail[0]}
		switch h.kind {
		case "cgroup":
			h.data = strings.TrimPrefix(tail[2], "rw,")
		case "cgroup2":
		default:
			continue
		}
		all = append(all, h)
	}
	return all, nil
}

// firmware is what the firmware of a machine in Azure says about it.
func firmware(s Spec) map[string]string {
	return map[string]string{
		"chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77", "product_uuid": s.ID, "product_serial": s.ID,
		"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine", "chassis_vendor": "Microsoft Corporation",
	}
}

// mountFirmware mounts the machine's description by its firmware at /sys/class/dmi/id.
func mountFirmware(s Spec, root string) error {
	own := filepath.Join(s.Dir, "firmware/dmi/id")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	for name, text := range firmware(s) {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text+"\n"), 0o444); err != nil {
			return err
		}
	}
	class := filepath.Join(root, "sys/class")
	if _, err := os.Stat(filepath.Join(class, "dmi/id")); err == nil {
		return bind(own, filepath.Join(class, "dmi/id"))
	}
	return addTo(s, class, "dmi", filepath.Join(s.Dir, "firmware/dmi"))
}

// mountBus mounts the bus of SCSI disks, which machines in Azure have, if the kernel has none. It has no devices: the links below
// /dev/disk show the disks.
func mountBus(s Spec, root string) error {
	bus := filepath.Join(root, "sys/bus")
	if _, err := os.Stat(filepath.Join(bus, "scsi")); err == nil {
		return nil
	}
	own := filepath.Join(s.Dir, "firmware/scsi")
	if err := os.MkdirAll(filepath.Join(own, "devices"), 0o755); err != nil {
		return err
	}
	return addTo(s, bus, "scsi", own)
}

// addTo mounts a directory that has the directories of one of the kernel, and a further one that the kernel does not have.
func addTo(s Spec, dir, name, own string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	kernel := filepath.Join(s.Dir, "firmware", filepath.Base(dir))
	if err := os.MkdirAll(kernel, 0o755); err != nil {
		return err
	}
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := errors.Join(bind(dir, kernel), mount("tmpfs", dir, "tmpfs", safe, "mode=755")); err != nil {
		return err
	}
	for _, existing := range names {
		target := filepath.Join(dir, existing.Name())
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if err := bind(filepath.Join(kernel, existing.Name()), target); err != nil {
			return err
		}
	}
	target := filepath.Join(dir, name)
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	return errors.Join(bind(own, target), unix.Unmount(kernel, unix.MNT_DETACH))
}

// mountOwn mounts the directories that need a real file system below them: overlays cannot be on an overlay.
func mountOwn(s Spec, root string) error {
	for _, dir := range []string{"var/lib/containerd", "var/lib/kubelet"} {
		own := filepath.Join(s.Dir, dir)
		if err := errors.Join(os.MkdirAll(own, 0o711), os.MkdirAll(filepath.Join(root, dir), 0o711)); err != nil {
			return err
		}
		if err := bind(own, filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	return nil
}

// bundle is the file with the certificate authorities that programs trust. update-ca-certificates makes it anew, with ownAuthority.
const (
	bundle       = "etc/ssl/certs/ca-certificates.crt"
	ownAuthority = "usr/local/share/ca-certificates/local-azure.crt"
)

// trust makes the programs of a machine trust the hosts of the local Azure.
func trust(root, authority string) error {
	own, err := os.ReadFile(authority)
	if err != nil {
		return fmt.Errorf("authority of the local Azure: %w", err)
	}
	file := filepath.Join(root, bundle)
	known, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if strings.Contains(string(known), string(own)) {
		return nil
	}
	lasting := filepath.Join(root, ownAuthority)
	for _, name := range []string{file, lasting} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(lasting, own, 0o644), os.WriteFile(file, append(known, own...), 0o644))
}

// dropCapabilities takes away what would change the host: its kernel modules and its clock.
func dropCapabilities() error {
	for _, capability := range []uintptr{unix.CAP_SYS_MODULE, unix.CAP_SYS_TIME, unix.CAP_SYS_RAWIO} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("capability %d: %w", capability, err)
		}
	}
	return nil
}

// become makes the mounted root the root of the machine, and systemd its first process.
func become(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	// systemd shares the mounts only outside containers, for one of which it takes a machine. Volumes of pods need it.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	console, err := os.OpenFile("/dev/console", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup2(int(console.Fd()), fd); err != nil {
			return err
		}
	}
	return unix.Exec("/lib/systemd/systemd", []string{"/sbin/init"}, []string{"TERM=linux", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"})
}
