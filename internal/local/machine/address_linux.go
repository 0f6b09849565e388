package machine

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// addLocalAddresses brings the loopback interface of a namespace up, with addresses beside its own.
func addLocalAddresses(namespace string, addresses ...netip.Addr) error {
	var batch strings.Builder
	batch.WriteString("link set dev lo up\n")
	for _, a := range addresses {
		fmt.Fprintf(&batch, "address replace %s dev lo\n", netip.PrefixFrom(a, a.BitLen()))
	}
	_, err := inside(namespace, func() (struct{}, error) {
		return struct{}{}, feed(batch.String(), "ip", "-batch", "-")
	})
	return err
}

// feed runs a program with input and returns what it complains of as an error.
func feed(input, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
