package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// debian downloads Debian packages with apt-get, which verifies them, into a directory.
type debian struct{ dir string }

// unpack adds the files of packages, and of all packages that these depend on, to a tree.
func (d debian) unpack(ctx context.Context, packages []string, into *tree) error {
	files, err := d.download(ctx, packages)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := unpackFile(ctx, file, into); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// download returns the files of packages and of all that they depend on: with an empty status file, apt-get believes that
// nothing is installed.
func (d debian) download(ctx context.Context, packages []string) ([]string, error) {
	dir := filepath.Join(d.dir, strings.Join(packages, "-"))
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o755); err != nil {
		return nil, err
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + dir, "-o", "Debug::NoLocking=1",
		"-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3",
		"install", "--yes", "--quiet=2", "--download-only", "--no-install-recommends",
	}
	apt := exec.CommandContext(ctx, "apt-get", append(args, packages...)...)
	if out, err := apt.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("apt-get: %w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	slices.Sort(files)
	return files, err
}

// left reports whether a container needs no file of a directory.
func left(file string) bool {
	for _, dir := range []string{"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/"} {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}

func unpackFile(ctx context.Context, file string, into *tree) error {
	list := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	err = into.copy(tar.NewReader(out))
	_, drained := io.Copy(io.Discard, out)
	return errors.Join(err, drained, list.Wait())
}

// merged returns the path of a file of a package in a tree in which /bin, /sbin, /lib and /lib64 are links into /usr.
func merged(file string) string {
	file = strings.TrimPrefix(path.Clean("/"+file), "/")
	switch top, _, _ := strings.Cut(file, "/"); top {
	case "bin", "sbin", "lib", "lib64":
		return "usr/" + file
	}
	return file
}
