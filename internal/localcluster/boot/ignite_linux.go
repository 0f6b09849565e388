package boot

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignitionProgram is Ignition in Debian's package, which is made for the initramfs.
const ignitionProgram = "/usr/lib/dracut/modules.d/30ignition/ignition"

// ignitionResult is the file that Ignition leaves. A machine that has it has booted before.
const ignitionResult = "etc/.ignition-result.json"

// ignitionPresets is the file in which Ignition lists the units to enable. At a first boot systemd applies presets. It
// takes no boot here for a first boot, because the image has a machine id.
const ignitionPresets = "etc/systemd/system-preset/20-ignition.preset"

// ignite runs Ignition at the first boot, as an initramfs does before systemd starts. It runs the stages of Ignition, and
// then applies the presets that enable units. The custom data is a file here, in place of a drive. After that /usr is
// read-only.
func ignite(s Spec, root string) error {
	if !s.Image.Ignition {
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, ignitionResult)); errors.Is(err, os.ErrNotExist) {
		if err := firstBoot(s, root); err != nil {
			return err
		}
	}
	usr := filepath.Join(root, "usr")
	if err := bind(usr, usr); err != nil {
		return err
	}
	return mount("", usr, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func firstBoot(s Spec, root string) error {
	config, err := base64.StdEncoding.DecodeString(s.CustomData)
	if err != nil {
		return fmt.Errorf("custom data: %w", err)
	}
	const file = "/run/ignition/config.ign"
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, file), config, 0o600); err != nil {
		return err
	}
	for _, stage := range []string{"fetch", "disks", "mount", "files", "umount"} {
		if err := chrooted(root, ignitionProgram, "--platform", "file", "--stage", stage, "--root", "/", "--log-to-stdout"); err != nil {
			return fmt.Errorf("ignition: %w", err)
		}
	}
	presets, err := os.ReadFile(filepath.Join(root, ignitionPresets))
	if err != nil {
		return err
	}
	return chrooted(root, "/usr/bin/systemctl", append([]string{"preset"}, enabledUnits(string(presets))...)...)
}

// chrooted runs a program with a tree as its root. A failure contains the end of its output.
func chrooted(root, program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "IGNITION_CONFIG_FILE=/run/ignition/config.ign"}
	text, err := cmd.CombinedOutput()
	if err != nil {
		const most = 2000
		return fmt.Errorf("%s %v: %w: %s", program, args, err, text[max(0, len(text)-most):])
	}
	return nil
}
