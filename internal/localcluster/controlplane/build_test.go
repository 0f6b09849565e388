package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeGo writes a go command of a version with a build that runs a script. In the script, $out is the file to write and $pkg is
// the package. The command says nothing of stale packages, and compiles packages without linking them in no time.
func fakeGo(t *testing.T, version, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "go")
	text := `#!/bin/sh
if [ "$1" = env ]; then echo "` + version + `"; exit; fi
while [ $# -gt 1 ]; do [ "$1" = -o ] && out="$2"; shift; done
pkg="$1"
if [ -z "$out" ]; then echo compiled "$pkg" >&2; exit; fi
` + script + "\n"
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// news records the steps of a build.
type news struct {
	mu    sync.Mutex
	lines []string
}

func (n *news) hear(s Step) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprint(s.Program, " ", s.State))
}

// leftIn lists the files below dir without the locks.
func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" {
			names = append(names, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestBuildMakesEachProgramOnce(t *testing.T) {
	cache := t.TempDir()
	goCommand := fakeGo(t, "go1.26.8", `echo "$pkg" > "$out"`)
	var first, second news
	made, err := Build(t.Context(), BuildOptions{CacheDir: cache, Go: goCommand, Progress: first.hear})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs() {
		if _, err := os.Stat(made[name]); err != nil || filepath.Base(made[name]) != name {
			t.Errorf("%s is at %q: %v", name, made[name], err)
		}
	}
	var want []string
	for _, m := range modules() {
		if names := m.names(); len(names) > 1 {
			want = append(want, names[0]+" compiling")
		}
		for _, name := range m.names() {
			want = append(want, name+" building", name+" built")
		}
	}
	if diff := cmp.Diff(want, first.lines); diff != "" {
		t.Error(diff)
	}
	again, err := Build(t.Context(), BuildOptions{CacheDir: cache, Go: goCommand, Progress: second.hear})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, again); diff != "" {
		t.Error(diff)
	}
	for _, line := range second.lines {
		if !strings.HasSuffix(line, " cached") {
			t.Errorf("the second build: %s", line)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(programs())), leftIn(t, cache)); diff != "" {
		t.Error(diff)
	}
}

func TestBuildLeavesOutWhatIsNotWanted(t *testing.T) {
	cache := t.TempDir()
	made, err := Build(t.Context(), BuildOptions{
		CacheDir: cache, Go: fakeGo(t, "go1.26.8", `: > "$out"`), Without: []string{KWOK, Scheduler},
	})
	if err != nil {
		t.Fatal(err)
	}
	if made[KWOK] != "" || made[Scheduler] != "" || len(made) != len(programs())-2 {
		t.Errorf("made %v", made)
	}
}

func TestFindTellsWhetherAllIsBuilt(t *testing.T) {
	o := BuildOptions{CacheDir: t.TempDir(), Go: fakeGo(t, "go1.26.8", `: > "$out"`), Without: []string{KWOK}}
	if _, complete, err := Find(t.Context(), o); err != nil || complete {
		t.Errorf("nothing is built: complete %v, %v", complete, err)
	}
	made, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found, complete, err := Find(t.Context(), o)
	if err != nil || !complete {
		t.Errorf("all is built: complete %v, %v", complete, err)
	}
	if diff := cmp.Diff(made, found); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedBuildShowsWhatTheCompilerSaid(t *testing.T) {
	cache := t.TempDir()
	goCommand := fakeGo(t, "go1.26.8", `case "$pkg" in */kubectl) : > "$out.half"; echo "kubectl.go:1: no" >&2; exit 2;; esac; : > "$out"`)
	_, err := Build(t.Context(), BuildOptions{CacheDir: cache, Go: goCommand})
	want := "build kubectl v1.36.3: exit status 2; output of " + goCommand + ":\nkubectl.go:1: no"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if diff := cmp.Diff([]string{Etcd, Etcdctl, Etcdutl, APIServer}, leftIn(t, cache)); diff != "" {
		t.Errorf("finished programs stay, and nothing else:\n%s", diff)
	}
}

func TestACancelledBuildLeavesNothing(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	// The child of the script would keep the output open for ten minutes.
	goCommand := fakeGo(t, "go1.26.8", `: > "$out"; : > "`+dir+`/running"; sleep 600; true`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := Build(ctx, BuildOptions{CacheDir: cache, Go: goCommand})
		failed <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(dir, "running")); err == nil {
			break
		}
		<-tick.C
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := leftIn(t, cache); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTwoBuildsAtOnceShareTheWork(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	goCommand := fakeGo(t, "go1.26.8", `echo "$pkg" >> "`+dir+`/log"; : > "$out"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Build(t.Context(), BuildOptions{CacheDir: cache, Go: goCommand}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "\n"); n != len(programs()) {
		t.Errorf("%d builds of %d programs:\n%s", n, len(programs()), log)
	}
}

func TestTheUsersFlagsDoNotReachTheBuild(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOWORK", "/some/go.work")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOPROXY", "https://proxy.example")
	goCommand := fakeGo(t, "go1.26.8", `echo "$GOFLAGS $GOWORK $CGO_ENABLED $GOTOOLCHAIN $GOPROXY" > "`+dir+`/env"; : > "$out"`)
	if _, err := Build(t.Context(), BuildOptions{CacheDir: t.TempDir(), Go: goCommand}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("-mod=readonly off 0 local https://proxy.example\n", string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestNoGoToBuildWith(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for what, o := range map[string]BuildOptions{
		"none in PATH": {},
		"no such file": {Go: "/no/such/go"},
		"too old":      {Go: fakeGo(t, "go1.25.3", "exit 1")},
	} {
		o.CacheDir = t.TempDir()
		if _, err := Build(t.Context(), o); !errors.Is(err, ErrNoGo) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAnUnknownProgramIsNamed(t *testing.T) {
	_, err := Build(t.Context(), BuildOptions{Without: []string{"calico"}})
	want := `build the control plane: no component "calico": want one of ` + strings.Join(programs(), ", ")
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestTheCacheKeepsBuildsOfDifferentToolchainsApart(t *testing.T) {
	for _, m := range modules() {
		one, err := m.folder(toolchain{version: "go1.26.8"})
		if err != nil {
			t.Fatal(err)
		}
		same, err := m.folder(toolchain{version: "go1.26.8", path: "/elsewhere/go"})
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.folder(toolchain{version: "go1.26.9"})
		if err != nil {
			t.Fatal(err)
		}
		if one != same || one == other {
			t.Errorf("%s: %s, %s, %s", m.name, one, same, other)
		}
	}
}

// TestVersionsOfPrograms checks that a program has the version of its own module.
func TestVersionsOfPrograms(t *testing.T) {
	want := map[string]string{
		Etcd: "v3.7.3", APIServer: "v1.36.3", CoreDNS: "v1.14.7", Provisioner: "v6.3.0", Attacher: "v4.12.0", Resizer: "v2.2.0",
		Snapshotter: "v8.6.0", SnapshotController: "v8.6.0",
	}
	for _, m := range modules() {
		for _, name := range m.names() {
			v, err := m.versionOf(name)
			if err != nil || want[name] != "" && v != want[name] {
				t.Errorf("%s is %s, %v, want %s", name, v, err, want[name])
			}
		}
	}
}

// TestReleases checks the releases of Kubernetes: the default comes first. The error for an unknown release lists the known releases.
func TestReleases(t *testing.T) {
	all, err := Releases()
	if err != nil || !slices.Equal(all, []string{"1.36.3", "1.35.4", "1.34.4", "1.37.2"}) {
		t.Errorf("%v, %v", all, err)
	}
	for release, want := range map[string]string{"": "v1.36.3", "1.36.3": "v1.36.3", "1.35.4": "v1.35.4", "1.34.4": "v1.34.4", "1.37.2": "v1.37.2"} {
		chosen, err := modulesOf(release)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := chosen[1].versionOf(Kubelet); err != nil || v != want {
			t.Errorf("release %q has a kubelet %s, want %s: %v", release, v, want, err)
		}
	}
	if _, err := modulesOf("1.34.0"); err == nil || err.Error() != "kubernetes 1.34.0: want one of the releases 1.36.3, 1.35.4, 1.34.4, 1.37.2" {
		t.Error(err)
	}
}

// TestVersions checks that the modules are of one Kubernetes release: k8s.io/kubernetes v1.X.Y needs libraries v0.X.Y.
func TestVersions(t *testing.T) {
	for _, m := range modules() {
		v, err := m.version()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"etcd": "v3.7.3", "kubernetes": "v1.36.3", "kwok": "v0.8.0", "coredns": "v1.14.7", "csi": "v6.3.0"}[m.name]
		if v != want {
			t.Errorf("%s is %s, want %s", m.name, v, want)
		}
		files, err := m.files()
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]string{} // a replacement comes after the requirement
		for line := range strings.Lines(string(files["go.mod"])) {
			f := strings.Fields(line)
			if len(f) == 5 && f[0] == "replace" { // replace PATH => PATH VERSION
				used[f[1]] = f[4]
			} else if len(f) > 1 && strings.HasPrefix(f[0], "k8s.io/") {
				used[f[0]] = f[1]
			}
		}
		for path, v := range used {
			if strings.HasPrefix(path, "k8s.io/") && strings.HasPrefix(v, "v0.3") && v != "v0.36.3" {
				t.Errorf("%s uses %s %s, want v0.36.3", m.name, path, v)
			}
		}
	}
}
