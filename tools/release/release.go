package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// release is the configuration of a release.
type release struct {
	source, out, tools string
	version, key       string
	platforms          []string
	log                io.Writer

	work string // a folder for what is not released
	facts
}

// stage is the folder with the content of an archive.
func (r *release) stage(a archive) string { return filepath.Join(r.work, "stage", a.folder) }

// run makes the release. After a failure the folder out has files, but no checksums.
func (r *release) run(ctx context.Context) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	if r.facts, err = readFacts(ctx, r.source); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "kaz-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"programs", r.buildPrograms},
		{"programs of local clusters", r.prebuild},
		{"archives", r.writeArchives},
		{"packages", r.writePackages},
		{"charts", r.writeCharts},
		{"images", r.writeImages},
		{"SBOMs", r.writeSBOMs},
		{"changelog", r.writeChangelog},
		{"checksums", r.writeChecksums},
		{"signatures", r.sign},
	} {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(r.log, "%s: %s\n", step.name, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// check validates the configuration and returns all problems at once.
func (r *release) check() error {
	problems := []error{checkVersion(r.version), checkPlatforms(r.platforms)}
	if r.key != "" {
		if _, err := os.Stat(r.key); err != nil {
			problems = append(problems, fmt.Errorf("-key: %w", err))
		}
	}
	if found, err := os.ReadDir(r.out); err == nil && len(found) > 0 {
		problems = append(problems, fmt.Errorf("-out %s: it has %s; want an empty folder", r.out, found[0].Name()))
	}
	for _, tool := range []string{"cosign", "helm", "syft"} {
		if _, err := os.Stat(r.tool(tool)); err != nil {
			problems = append(problems, fmt.Errorf("-tools: %w", err))
		}
	}
	return errors.Join(problems...)
}

func (r *release) tool(name string) string { return filepath.Join(r.tools, name) }

// command runs a program in the source. Its error has what the program printed.
func (r *release) command(ctx context.Context, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.source
	cmd.Env = append(cmd.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
