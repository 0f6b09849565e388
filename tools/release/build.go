package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// program returns the path of a built program.
func (r *release) program(name, platform string) string {
	return filepath.Join(r.work, "programs", strings.ReplaceAll(platform, "/", "_"), programFile(name, platform))
}

// buildPrograms builds the programs of all platforms, and kaz for this machine.
func (r *release) buildPrograms(ctx context.Context) error {
	for _, platform := range r.platforms {
		for _, name := range programsOf(platform) {
			if err := r.buildProgram(ctx, name, platform); err != nil {
				return err
			}
		}
	}
	return r.buildProgram(ctx, "kaz", thisPlatform())
}

func thisPlatform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// buildProgram builds a program reproducibly, wherever the source is. A version, a commit and a date in it are those of the release.
func (r *release) buildProgram(ctx context.Context, name, platform string) error {
	file := r.program(name, platform)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	system, arch, _ := strings.Cut(platform, "/")
	const stamps = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -buildid= -X %[1]sgitVersion=%[2]s -X %[1]sgitCommit=%[3]s -X %[1]sgitTreeState=clean "+
		"-X %[1]sbuildDate=%[4]s", stamps, r.version, r.commit, r.date.Format(time.RFC3339))
	err := r.command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=-mod=readonly", "GOWORK=off"},
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/"+name)
	if err != nil {
		return fmt.Errorf("%s for %s: %w", name, platform, err)
	}
	return nil
}

// prebuild builds what local clusters need, with the kaz of this release.
func (r *release) prebuild(ctx context.Context) error {
	for _, platform := range linuxPlatforms(r.platforms) {
		_, arch, _ := strings.Cut(platform, "/")
		if err := r.command(ctx, nil, r.program("kaz", thisPlatform()), "local", "prebuild", "--out", r.prebuilt(platform),
			"--arch", arch); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) prebuilt(platform string) string {
	return filepath.Join(r.work, "prebuilt", strings.ReplaceAll(platform, "/", "_"))
}

// writeImages writes an archive with an OCI layout for each image.
func (r *release) writeImages(ctx context.Context) error {
	platforms := linuxPlatforms(r.platforms)
	if len(platforms) == 0 {
		return nil
	}
	layouts := filepath.Join(r.work, "images")
	if err := r.command(ctx, nil, "go", "-C", "deploy/images", "run", ".", "-source", r.source, "-out", layouts, "-version", r.version,
		"-platforms", strings.Join(platforms, ","), "-programs", strings.Join(imagePrograms(), ",")); err != nil {
		return err
	}
	for _, name := range imagePrograms() {
		file := fmt.Sprintf("%s_%s_oci.tar", name, strings.TrimPrefix(r.version, "v"))
		if err := r.writeTar(filepath.Join(r.out, file), filepath.Join(layouts, name), "", false); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
