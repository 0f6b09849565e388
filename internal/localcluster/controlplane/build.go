package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"kaz/internal/host/process"
)

// State is the state of a program in a build.
type State int

// The states of a program, in their order.
const (
	Waiting   State = iota // another process is building
	Compiling              // the go command compiles packages of this program and of those after it
	Building               // the go command links the program
	Built                  // the go command has ended
	Cached                 // an earlier build is in the cache
)

// String returns the state in one word.
func (s State) String() string {
	return [...]string{"waiting", "compiling", "building", "built", "cached"}[s]
}

// Step reports the state of a program.
type Step struct {
	Program string
	Version string
	State   State
	Took    time.Duration // duration so far for Compiling, of the build for Built
	// Done and Total count the packages that had to be compiled, for Compiling. Total is 0 if it is not known.
	Done, Total int
	// Programs is the number of programs that are compiled together, for Compiling.
	Programs int
}

// BuildOptions are the options of [Build]. The zero value builds everything into the user's cache directory with the go
// command in PATH.
type BuildOptions struct {
	CacheDir string // kaz/controlplane in the user's cache directory if empty
	Go       string // path of the go command; looked up in PATH if empty
	Without  []string
	// Release is the release of Kubernetes, one of [Releases], the default if empty.
	Release  string
	Progress func(Step)
}

// Binaries holds the path of each program by its name ([Etcd], [APIServer], ...).
type Binaries map[string]string

// Build builds the programs and returns their paths. It compiles the packages of all programs of a module at once, so that no
// core waits, and links the programs one after the other. It reuses programs that the same toolchain built from the same modules.
// Concurrent builds wait for each other. A failed or cancelled build leaves only finished programs in the cache.
func Build(ctx context.Context, o BuildOptions) (Binaries, error) {
	builds, err := newBuilds(ctx, o)
	if err != nil {
		return nil, err
	}
	made := Binaries{}
	for _, b := range builds {
		if err := b.all(ctx, made); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// Find returns the paths of the programs that [Build] would build, and whether all of them are in the cache.
func Find(ctx context.Context, o BuildOptions) (found Binaries, complete bool, err error) {
	builds, err := newBuilds(ctx, o)
	found, complete = Binaries{}, err == nil
	for _, b := range builds {
		for _, name := range b.wanted {
			found[name] = filepath.Join(b.dir, name)
			complete = complete && b.exists(name)
		}
	}
	return found, complete, err
}

// newBuilds returns the builds of the modules that have the wanted programs.
func newBuilds(ctx context.Context, o BuildOptions) ([]*build, error) {
	if err := checkNames(o.Without); err != nil {
		return nil, fmt.Errorf("build the control plane: %w", err)
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	if o.CacheDir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("build the control plane: find the user's cache directory: %w", err)
		}
		o.CacheDir = filepath.Join(user, "kaz", "controlplane")
	}
	tc, err := findToolchain(ctx, o.Go)
	if err != nil {
		return nil, err
	}
	wanted, err := modulesOf(o.Release)
	if err != nil {
		return nil, err
	}
	var all []*build
	for _, m := range wanted {
		b, err := newBuild(m, tc, o)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// build builds the programs of one module.
type build struct {
	module
	version  string            // of the folder
	versions map[string]string // by program
	dir      string
	tc       toolchain
	wanted   []string
	progress func(Step)
}

func newBuild(m module, tc toolchain, o BuildOptions) (*build, error) {
	v, err := m.version()
	if err != nil {
		return nil, err
	}
	folder, err := m.folder(tc)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, name := range m.names() {
		if versions[name], err = m.versionOf(name); err != nil {
			return nil, err
		}
	}
	wanted := slices.DeleteFunc(m.names(), func(name string) bool { return slices.Contains(o.Without, name) })
	return &build{
		module: m, version: v, versions: versions, dir: filepath.Join(o.CacheDir, folder), tc: tc, wanted: wanted, progress: o.Progress,
	}, nil
}

func (b *build) all(ctx context.Context, made Binaries) error {
	var missing []string
	for _, name := range b.wanted {
		made[name] = filepath.Join(b.dir, name)
		if b.exists(name) {
			b.progress(Step{Program: name, Version: b.versions[name], State: Cached})
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	lock, err := process.WaitLock(ctx, filepath.Join(b.dir, ".lock"), func() {
		b.progress(Step{Program: missing[0], Version: b.versions[missing[0]], State: Waiting})
	})
	if err != nil {
		return fmt.Errorf("build %s: %w", missing[0], err)
	}
	defer lock.Release()
	return b.locked(ctx, missing)
}

// locked builds the missing programs. The caller holds the lock of the module.
func (b *build) locked(ctx context.Context, missing []string) error {
	work, err := b.workspace()
	if err != nil {
		return fmt.Errorf("build %s: %w", b.name, err)
	}
	defer os.RemoveAll(work)
	missing, found := b.split(missing) // the process that held the lock has built some
	for _, name := range found {
		b.progress(Step{Program: name, Version: b.versions[name], State: Cached})
	}
	if err := b.compile(ctx, work, missing); err != nil {
		return err
	}
	for _, name := range missing {
		b.progress(Step{Program: name, Version: b.versions[name], State: Building})
		began := time.Now()
		if err := b.one(ctx, work, name); err != nil {
			return err
		}
		b.progress(Step{Program: name, Version: b.versions[name], State: Built, Took: time.Since(began)})
	}
	return nil
}

func (b *build) exists(name string) bool {
	info, err := os.Stat(filepath.Join(b.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// workspace creates a directory with the files of the module, and removes the directories of killed builds.
func (b *build) workspace() (string, error) {
	old, err := filepath.Glob(filepath.Join(b.dir, ".build-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	work, err := os.MkdirTemp(b.dir, ".build-")
	if err != nil {
		return "", err
	}
	files, err := b.files()
	if err != nil {
		return work, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return work, err
		}
	}
	return work, nil
}

// split divides programs into those that the cache lacks and those that it has.
func (b *build) split(names []string) (missing, found []string) {
	for _, name := range names {
		if b.exists(name) {
			found = append(found, name)
		} else {
			missing = append(missing, name)
		}
	}
	return missing, found
}

// compile compiles the packages of several programs, and links none.
func (b *build) compile(ctx context.Context, work string, names []string) error {
	if len(names) < 2 {
		return nil
	}
	step := Step{Program: names[0], Version: b.versions[names[0]], State: Compiling, Programs: len(names)}
	step.Total = b.stale(ctx, work, names)
	began := time.Now()
	args := []string{"build", "-v", "-buildvcs=false", "-ldflags", b.linkerFlags(b.version)}
	cmd := b.command(ctx, work, append(args, b.packages(names)...))
	output := &counter{each: func(n int) {
		step.Done, step.Took = n, time.Since(began)
		b.progress(step)
	}}
	cmd.Stdout, cmd.Stderr = output, output
	if err := process.Run(cmd); err != nil {
		return b.failed(ctx, b.name+" "+b.version, err, output.text.String())
	}
	return nil
}

// counter is the output of go build -v, which has a line for each package that it begins.
type counter struct {
	text bytes.Buffer
	n    int
	each func(n int)
}

// Write implements [io.Writer].
func (c *counter) Write(text []byte) (int, error) {
	c.n += bytes.Count(text, []byte("\n"))
	c.each(c.n)
	return c.text.Write(text)
}

// stale counts the packages that must be compiled, 0 if the go command cannot tell.
func (b *build) stale(ctx context.Context, work string, names []string) int {
	cmd := b.command(ctx, work, append([]string{"list", "-deps", "-f", "{{.StaleReason}}"}, b.packages(names)...))
	text, err := cmd.Output()
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if reason := strings.TrimSpace(line); reason != "" && reason != "not installed but available in build cache" {
			n++
		}
	}
	return n
}

func (b *build) packages(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, b.programs[name])
	}
	return all
}

// command is a go command in the workspace.
func (b *build) command(ctx context.Context, work string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.tc.path, args...)
	cmd.Dir = work
	// The user's flags could change the module mode or enable the race detector or a workspace. The user's build cache,
	// module proxy and credentials stay in effect. Without -trimpath the build shares compiled packages with kaz.
	cmd.Env = append(cmd.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on", "GOTOOLCHAIN=local",
		"CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+work)
	return cmd
}

// one builds a program in the workspace and moves it into the cache in one step.
func (b *build) one(ctx context.Context, work, name string) error {
	cmd := b.command(ctx, work, []string{
		"build", "-buildvcs=false", "-ldflags", b.linkerFlags(b.version), "-o", filepath.Join(work, name), b.programs[name],
	})
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := process.Run(cmd); err != nil {
		return b.failed(ctx, name+" "+b.versions[name], err, output.String())
	}
	if err := os.Rename(filepath.Join(work, name), filepath.Join(b.dir, name)); err != nil {
		return fmt.Errorf("build %s %s: %w", name, b.versions[name], err)
	}
	return nil
}

// failed is the error of a go command that built something.
func (b *build) failed(ctx context.Context, what string, err error, output string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", what, context.Cause(ctx))
	}
	return fmt.Errorf("build %s: %w; output of %s:\n%s", what, err, b.tc.path, lastLines(output, 30))
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// checkNames returns an error for a name that is not a program of the control plane.
func checkNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(programs(), name) {
			return fmt.Errorf("no component %q: want one of %s", name, strings.Join(programs(), ", "))
		}
	}
	return nil
}
