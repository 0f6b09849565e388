package boot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// importImages imports archives into a new directory of containerd, and unpacks them.
func importImages(ctx context.Context, dir string, archives []string) error {
	state, err := os.MkdirTemp("", "kaz-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	socket := filepath.Join(state, "containerd.sock")
	config := filepath.Join(state, "config.toml")
	if err := os.WriteFile(config, []byte("version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(state, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	daemon := exec.CommandContext(ctx, "containerd", "--config", config, "--root", dir, "--state", filepath.Join(state, "run"),
		"--address", socket)
	daemon.Stdout, daemon.Stderr = log, log
	daemon.Cancel = func() error { return daemon.Process.Signal(syscall.SIGTERM) }
	if err := daemon.Start(); err != nil {
		return err
	}
	err = awaitSocket(ctx, socket)
	for _, archive := range archives {
		if err == nil {
			err = run(ctx, "ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive)
		}
	}
	return errors.Join(err, daemon.Process.Signal(syscall.SIGTERM), ignoreExit(daemon.Wait()))
}

// ignoreExit ignores how a stopped program ended.
func ignoreExit(err error) error {
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil
	}
	return err
}

// awaitSocket waits until a server accepts connections at a Unix socket.
func awaitSocket(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no server at %s: %w", path, err)
		case <-tick.C:
		}
	}
}

// fillStore gives a new machine the container images of its image. Their files are hard links: nothing writes them. The
// databases are copies.
func fillStore(s Spec) error {
	to := filepath.Join(s.Dir, "var/lib/containerd")
	if _, err := os.Stat(to); err == nil || s.Image.Store == "" {
		return nil
	}
	part := to + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := copyStore(s.Image.Store, part); err != nil {
		return fmt.Errorf("container images of %s: %w", s.Name, err)
	}
	return os.Rename(part, to)
}

// copyStore copies a directory of containerd.
func copyStore(from, to string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return place(file, filepath.Join(to, name), entry)
	})
}

func place(file, to string, entry fs.DirEntry) error {
	info, err := entry.Info()
	switch {
	case err != nil:
		return err
	case entry.IsDir():
		return os.MkdirAll(to, info.Mode().Perm())
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !entry.Type().IsRegular():
		return nil
	case strings.HasSuffix(file, ".db"):
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, info.Mode().Perm())
	}
	if err := os.Link(file, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	text, err := os.ReadFile(file) // on another file system
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
