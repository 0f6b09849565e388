package guest

import (
	"os"
	"os/exec"
	"runtime"
)

// check returns an [UnavailableError] if something is missing that guests need.
func check() error {
	if runtime.GOARCH != "amd64" {
		return &UnavailableError{Reason: "Debian has user-mode Linux for amd64 only, and this is " + runtime.GOARCH}
	}
	if os.Geteuid() != 0 {
		return &UnavailableError{Reason: "the links of guests need root"}
	}
	programs := []struct{ name, pack string }{
		{kernel, "user-mode-linux"}, {"modprobe", "kmod"}, {"ip", "iproute2"}, {"mount.cifs", "cifs-utils"}, {"mount.nfs", "nfs-common"},
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			return &UnavailableError{Reason: "the program " + p.name + " is missing; install the package " + p.pack}
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return &UnavailableError{Reason: "links of guests need a tap device: " + err.Error()}
	}
	return nil
}
