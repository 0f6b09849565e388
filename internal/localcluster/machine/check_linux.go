package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostPrograms returns the programs of the distribution that machines need, each with its Debian and Ubuntu package.
func hostPrograms() map[string]string {
	return map[string]string{
		Containerd: "containerd", ctr: "containerd", "runc": "runc", "nft": "nftables", "ip": "iproute2", "nsenter": "util-linux",
		"iptables": "iptables", "ip6tables": "iptables", // of the CNI plugin portmap
	}
}

// HostPrograms returns the paths of the distribution's programs that run inside machines, by name.
func HostPrograms() (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range []string{Containerd, ctr} {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
}

// networkPlugins is the directory of the CNI plugins.
const networkPlugins = "/usr/lib/cni"

// machineMemory is about the memory that the programs of a machine use.
const machineMemory = 320 << 20

// Check returns the reasons why this machine cannot run a number of virtual machines with their disks in dir, each with
// what to do.
func Check(dir string, machines int) []error {
	var problems []error
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if os.Geteuid() != 0 {
		note("not root: namespaces, mounts and nftables need it; run as root")
	}
	var packages []string
	for program, pack := range hostPrograms() {
		if _, err := exec.LookPath(program); err != nil {
			packages = append(packages, pack)
		}
	}
	for _, plugin := range []string{"ptp", "host-local", "loopback", "portmap"} {
		if _, err := os.Stat(filepath.Join(networkPlugins, plugin)); err != nil {
			packages = append(packages, "containernetworking-plugins")
			break
		}
	}
	if len(packages) > 0 {
		note("programs are missing: install %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(packages))), " "))
	}
	if _, _, err := hierarchies(); err != nil {
		note("no cgroups: %w; mount them at %s", err, cgroupRoot)
	}
	if free, err := availableMemory(); err == nil && free < int64(machines)*machineMemory {
		note("%d MB of memory are free, %d machines need about %d MB: start fewer", free>>20, machines, int64(machines)*machineMemory>>20)
	}
	if os.Geteuid() == 0 {
		problems = append(problems, checkKernel(dir)...)
	}
	return problems
}

// checkKernel tries features of the kernel that it cannot query.
func checkKernel(dir string) []error {
	var problems []error
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return append(problems, err)
	}
	for _, c := range []struct {
		what string
		try  func() error
	}{
		{"namespaces", func() error {
			return runWithInput("", "unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true")
		}},
		{"an overlay of " + dir, func() error { return tryOverlay(dir) }},
		{"nftables", func() error { return runWithInput("add table ip kaz { }\n", "unshare", "--net", "nft", "-f", "-") }},
	} {
		if err := c.try(); err != nil {
			problems = append(problems, fmt.Errorf("the kernel refuses %s: %w", c.what, err))
		}
	}
	return problems
}

// tryOverlay mounts an overlay in a directory, as machines do.
func tryOverlay(dir string) error {
	work, err := os.MkdirTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(work, name), 0o700); err != nil {
			return errors.Join(err, os.RemoveAll(work))
		}
	}
	merged := filepath.Join(work, "merged")
	err = unix.Mount("overlay", merged, "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", work))
	if err == nil {
		err = unix.Unmount(merged, 0)
	}
	return errors.Join(err, os.RemoveAll(work))
}

// availableMemory returns the bytes that programs can use without swapping, as estimated by the kernel.
func availableMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == "MemAvailable:" {
			kilobytes, err := strconv.ParseInt(words[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
