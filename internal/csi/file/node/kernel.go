package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"kaz/internal/csi/file"
	"kaz/internal/plan/share"
)

// MountError is a mount that failed.
type MountError struct {
	Program string
	Output  string // of the program; it has no secret
	Cause   error
}

func (e *MountError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Program, e.Cause, strings.Join(strings.Fields(e.Output), " "))
}

func (e *MountError) Unwrap() error { return e.Cause }

// Kernel mounts with the programs mount.cifs and mount.nfs.
type Kernel struct{}

// Mount implements [Mounter]. The key reaches mount.cifs through a pipe: it is neither in arguments, nor in a file, nor in the
// table of mounts. If ctx ends, the program is killed.
func (Kernel) Mount(ctx context.Context, m share.Mount, target string, c file.Credentials) error {
	options := m.Options
	if !c.Key.IsZero() {
		options = append([]string{"username=" + c.Account}, options...)
	}
	cmd := exec.CommandContext(ctx, "mount."+m.Type, m.Source, target, "-o", strings.Join(options, ","))
	const patience = 5 * time.Second
	cmd.WaitDelay = patience
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if !c.Key.IsZero() {
		reader, err := secretPipe(ctx, c.Key.Reveal())
		if err != nil {
			return err
		}
		defer reader.Close()
		cmd.ExtraFiles = []*os.File{reader}
		cmd.Env = append(cmd.Environ(), "PASSWD_FD=3") // the first of ExtraFiles
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("mount.%s: %w", m.Type, ctx.Err())
	}
	if err != nil {
		return &MountError{Program: "mount." + m.Type, Output: output.String(), Cause: err}
	}
	return nil
}

// secretPipe returns a pipe from which a text can be read once. Nothing reads yet: a text that does not fit into the pipe is an error.
func secretPipe(ctx context.Context, text string) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	const atMost = 5 * time.Second
	ctx, end := context.WithTimeout(ctx, atMost)
	defer end()
	deadline, _ := ctx.Deadline()
	err = writer.SetWriteDeadline(deadline)
	if err == nil {
		_, err = writer.WriteString(text)
	}
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("%d bytes for the mount program: %w", len(text), err), reader.Close())
	}
	return reader, nil
}
