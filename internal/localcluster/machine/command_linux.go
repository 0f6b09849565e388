package machine

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// runWithInput runs a program with standard input. A failure contains the output of the program.
func runWithInput(input, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
