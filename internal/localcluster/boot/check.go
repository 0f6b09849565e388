package boot

import (
	"fmt"
	"os/exec"
)

// Check returns the reason why images cannot be made here, nil if they can.
func Check() error {
	for program, name := range map[string]string{"debootstrap": "debootstrap", "chroot": "coreutils"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; install %s", err, name)
		}
	}
	return nil
}
