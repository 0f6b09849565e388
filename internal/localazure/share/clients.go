package share

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// client is what a machine needs to mount the shares of a protocol.
type client struct {
	protocol                    Protocol
	filesystem, module, program string
	packages                    string // Debian packages of the program
}

func clients() []client {
	return []client{{SMB, "cifs", "cifs", "mount.cifs", "cifs-utils"}, {NFS, "nfs4", "nfsv4", "mount.nfs", "nfs-common"}}
}

// CheckClients returns the reasons why this machine cannot mount shares, nil if it can. The machines of a local cluster use
// the kernel and the programs of this machine.
func CheckClients() error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	return checkClients(string(known), func(module string) bool {
		return exec.Command("modprobe", "--dry-run", "--quiet", module).Run() == nil
	}, func(program string) bool {
		_, err := programFile(program)
		return err == nil
	})
}

// checkClients checks against the text of /proc/filesystems.
func checkClients(filesystems string, hasModule, hasProgram func(string) bool) error {
	var problems []error
	for _, c := range clients() {
		if !slices.Contains(strings.Fields(filesystems), c.filesystem) && !hasModule(c.module) {
			problems = append(problems, fmt.Errorf("%s needs a kernel with the module %s", c.protocol, c.module))
		}
		if !hasProgram(c.program) {
			problems = append(problems, fmt.Errorf("%s needs %s; install %s", c.protocol, c.program, c.packages))
		}
	}
	return errors.Join(problems...)
}
