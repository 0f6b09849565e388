package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/host/process"
)

// Image is what a machine boots from.
type Image struct {
	// Ignition says that the image boots with Ignition instead of cloud-init, and has a read-only /usr.
	Ignition bool `json:"ignition,omitempty"`
	// Layers are directories of the root file system, the top one first.
	Layers []string `json:"layers"`
	// Store is a directory of containerd with container images, "" for none.
	Store string `json:"store,omitempty"`
	// inUse keeps other processes from removing Store. It is unlocked when nothing refers to the image any longer.
	inUse *process.Lock
}

// Catalogue makes images and keeps them in a directory.
type Catalogue struct {
	Dir string
	// Say gets a line for each step that takes long.
	Say func(line string)
}

func (c Catalogue) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

// dir is the directory with a name and a hash of what it is made from.
func (c Catalogue) dir(name string, from []string) string {
	sum := sha256.Sum256([]byte(strings.Join(from, "\x00")))
	return filepath.Join(c.Dir, name+"-"+hex.EncodeToString(sum[:6]))
}

// once returns the directory for a name and the inputs of its content. The path contains a hash of the inputs. If the
// directory is missing, make fills it. A failed attempt leaves no directory.
func (c Catalogue) once(ctx context.Context, name string, from []string, make func(dir string) error) (string, error) {
	dir := c.dir(name, from)
	lock, err := process.WaitLock(ctx, dir+".lock", func() { c.say("waiting for another kaz process, which makes the image %s", name) })
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil { // of a killed process
		return "", err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return "", err
	}
	c.say("making the image %s (only once)", name)
	if err := make(part); err != nil {
		return "", fmt.Errorf("image %s: %w", name, errors.Join(err, os.RemoveAll(part)))
	}
	return dir, os.Rename(part, dir)
}

// suite is the release of Debian.
const suite = "bookworm"

// packages returns the packages of the Debian image beside the minimal packages: what Debian's images for Azure have, and what a
// node of Kubernetes needs.
func packages() []string { return append(barePackages(), NodePackages()...) }

// NodePackages returns the packages that a node of Kubernetes needs, and that Debian's images for Azure do not have.
func NodePackages() []string {
	return []string{
		"containerd", "runc", "containernetworking-plugins", "iptables", "nftables", "conntrack", "socat", "ebtables", "ethtool",
	}
}

// barePackages returns the packages of Debian's images for Azure beside the minimal packages.
func barePackages() []string {
	return []string{
		"systemd", "systemd-sysv", "dbus", "udev", "kmod", "procps", "sudo", "util-linux", "mount", "ca-certificates", "netbase",
		"cloud-init", "cloud-guest-utils", "python3", "jq", "curl", "dmidecode", "gdisk", "fdisk", "e2fsprogs", "openssh-server",
		"ifupdown", "isc-dhcp-client", "iproute2", "iputils-ping",
		// It provides a virtual package, which debootstrap cannot resolve.
		"python3-cffi-backend",
	}
}

// debian returns the layer with Debian.
func (c Catalogue) debian(ctx context.Context, name string, packages []string) (string, error) {
	from := append([]string{suite}, slices.Sorted(slices.Values(packages))...)
	return c.once(ctx, name, from, func(dir string) error { return bootstrap(ctx, dir, packages) })
}

// bootstrap makes a tree of Debian with packages.
func bootstrap(ctx context.Context, dir string, packages []string) error {
	if err := run(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), suite, dir); err != nil {
		return fmt.Errorf("%w; the log is debootstrap/debootstrap.log in the image", err)
	}
	// Names are resolved by the network of the machine. Packages are not installed again.
	return remove(dir, "etc/resolv.conf", "etc/hostname", "var/cache/apt/archives", "var/lib/apt/lists")
}

// remove removes files and directories from a tree.
func remove(dir string, names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// masked are the units of a machine with hardware of its own. Here the devices and the kernel belong to the host.
func masked() []string {
	return []string{
		"systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udev-settle.service", "systemd-udevd-control.socket",
		"systemd-udevd-kernel.socket", "systemd-modules-load.service", "kmod-static-nodes.service", "systemd-tmpfiles-setup-dev.service",
		"systemd-pstore.service", "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount", "systemd-random-seed.service",
		"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
		"dev-hugepages.mount", "getty@tty1.service", "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer", "e2scrub_all.timer",
		"e2scrub_reap.service", "cloud-init-hotplugd.socket",
	}
}

// settings returns the files with which a Debian image fits this host, by name.
func settings() map[string]string {
	return map[string]string{
		"etc/cloud/cloud.cfg.d/90-azure.cfg": "datasource_list: [Azure]\nlocale: C.UTF-8\nssh_genkeytypes: [ecdsa, ed25519]\n",
		// Modules of the kernel are loaded by the host. The machine may ask for modules that nodes need.
		"etc/modprobe.d/host.conf":                "install overlay /bin/true\ninstall br_netfilter /bin/true\n",
		"etc/systemd/journald.conf.d/kernel.conf": "[Journal]\nReadKMsg=no\nStorage=volatile\nRuntimeMaxUse=32M\n",
		"etc/systemd/system.conf.d/console.conf":  "[Manager]\nShowStatus=yes\nStatusUnitFormat=name\n",
		"etc/fstab":                               "",
	}
}

// programs returns scripts in place of programs that would find out how the machine is made, by name.
func programs() map[string]string {
	return map[string]string{
		// cloud-init does not look for firmware in a container.
		"usr/bin/systemd-detect-virt": `#!/bin/sh
# A machine in Azure is virtual, and no container.
quiet= kind=microsoft
for option; do
  case $option in
    -q|--quiet) quiet=1 ;;
    -c|--container|-r|--chroot|--private-users) kind=none ;;
  esac
done
[ "$quiet" ] || echo $kind
[ $kind != none ]
`,
	}
}

// links returns symbolic links, by name.
func links() map[string]string {
	all := map[string]string{
		// The power button of the machine.
		"etc/systemd/system/sigpwr.target": "/lib/systemd/system/poweroff.target",
	}
	for _, unit := range masked() {
		all["etc/systemd/system/"+unit] = "/dev/null"
	}
	return all
}

// write writes files and links into a layer.
func write(dir string, files, symbolic map[string]string) error {
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			return err
		}
	}
	for name, target := range symbolic {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(target, file); err != nil {
			return err
		}
	}
	return nil
}

// hashInputs returns what a layer is made from, for its hash.
func hashInputs(files, symbolic map[string]string) []string {
	var all []string
	for name, text := range files {
		all = append(all, name+"\x00"+text)
	}
	for name, target := range symbolic {
		all = append(all, name+"\x00-> "+target)
	}
	return slices.Sorted(slices.Values(all))
}

// Debian returns the image of plain Debian with containerd.
func (c Catalogue) Debian(ctx context.Context) (Image, error) {
	tree, err := c.debian(ctx, "debian-12", packages())
	if err != nil {
		return Image{}, err
	}
	return c.fitted(ctx, tree, "host", settings())
}

// Bare returns the image of Debian without anything that a node of Kubernetes needs, as Debian's images for Azure are.
func (c Catalogue) Bare(ctx context.Context) (Image, error) {
	tree, err := c.debian(ctx, "debian-12-bare", barePackages())
	if err != nil {
		return Image{}, err
	}
	files := settings()
	maps.Copy(files, hostSettings())
	return c.fitted(ctx, tree, "host-bare", files)
}

// fitted returns the image of a tree of Debian and of a layer with which it fits this host.
func (c Catalogue) fitted(ctx context.Context, tree, name string, files map[string]string) (Image, error) {
	maps.Copy(files, programs())
	layer, err := c.once(ctx, name, hashInputs(files, links()), func(dir string) error { return write(dir, files, links()) })
	return Image{Layers: []string{layer, tree}}, err
}
