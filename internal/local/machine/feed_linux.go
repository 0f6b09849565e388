package machine

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// feed runs a program with input and returns what it complains of as an error.
func feed(input, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
