package machine

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// socket is the socket of containerd.
const socket = "/run/containerd/containerd.sock"

// importArgs are the arguments of ctr that import an archive, "-" for standard input.
func importArgs(archive string) []string {
	return []string{"--address", socket, "--namespace", "k8s.io", "images", "import", "--all-platforms=false", archive}
}

// ImportImages imports an archive with images into containerd of the machine with a disk, which runs.
func ImportImages(ctx context.Context, disk, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd, err := Enter(ctx, disk, append([]string{ctr}, importArgs("-")...)...)
	if err != nil {
		return err
	}
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
	}
	return nil
}
