package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// writePackages writes packages of kaz for Debian and for distributions with RPM.
func (r *release) writePackages(ctx context.Context) error {
	for _, platform := range linuxPlatforms(r.platforms) {
		for _, format := range []string{"deb", "rpm"} {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := r.writePackage(platform, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, platform, err)
			}
		}
	}
	return nil
}

func (r *release) writePackage(platform, format string) (err error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(r.packageInfo(platform))
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return packager.Package(info, out)
}

// packageInfo describes a package with kaz.
func (r *release) packageInfo(platform string) *nfpm.Info {
	_, arch, _ := strings.Cut(platform, "/")
	file := func(from, to string, mode os.FileMode) *files.Content {
		info := &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}
		return &files.Content{Source: from, Destination: to, FileInfo: info}
	}
	info := &nfpm.Info{
		Name: "kaz", Arch: arch, Platform: "linux", Version: strings.TrimPrefix(r.version, "v"), Section: "admin", Priority: "optional",
		Maintainer: "The kaz authors", License: "Apache-2.0", MTime: r.date,
		Description: "Kubernetes on Azure, and a local Azure\n" +
			"kaz makes Kubernetes clusters on Azure, checks them, and runs an Azure on this machine to try them on.",
	}
	info.Contents = files.Contents{
		file(r.program("kaz", platform), "/usr/bin/kaz", 0o755),
		file(filepath.Join(r.source, "LICENSE"), "/usr/share/doc/kaz/copyright", 0o644),
	}
	// The name of this machine would differ between builds.
	info.RPM.BuildHost = "localhost"
	info.RPM.Summary = "Kubernetes on Azure, and a local Azure"
	return info
}
