package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// date is the date of the commits.
var date = time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)

// TestArchives checks which archives a release has, and that each program that make build builds is in one of them.
func TestArchives(t *testing.T) {
	var files []string
	released := map[string]bool{}
	for _, a := range archivesOf("v0.1.0-rc.1", allPlatforms()) {
		files = append(files, a.file())
		for _, name := range a.programs {
			released[name] = true
		}
	}
	want := []string{
		"kaz_0.1.0-rc.1_linux_amd64.tar.gz", "kaz-components_0.1.0-rc.1_linux_amd64.tar.gz", "kaz-local_0.1.0-rc.1_linux_amd64.tar.gz",
		"kaz_0.1.0-rc.1_linux_arm64.tar.gz", "kaz-components_0.1.0-rc.1_linux_arm64.tar.gz", "kaz-local_0.1.0-rc.1_linux_arm64.tar.gz",
		"kaz_0.1.0-rc.1_darwin_amd64.tar.gz", "kaz_0.1.0-rc.1_darwin_arm64.tar.gz", "kaz-node_0.1.0-rc.1_windows_amd64.zip",
	}
	if !slices.Equal(files, want) {
		t.Errorf("got  %q\nwant %q", files, want)
	}
	commands, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil || len(commands) == 0 {
		t.Fatal(commands, err)
	}
	for _, file := range commands {
		if name := filepath.Base(filepath.Dir(file)); !released[name] {
			t.Errorf("%s is in no archive", name)
		}
	}
}

// TestRefused checks that an invalid configuration is refused with all its problems.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := release{out: dir, tools: dir, version: "0.1", key: filepath.Join(dir, "no.key"), platforms: []string{"linux/amd64", "plan9/arm", "linux/amd64"}}
	err := r.check()
	if err == nil {
		t.Fatal("it is allowed")
	}
	for _, want := range []string{`-version "0.1": want a semantic version such as v0.1.0`, `-platforms: "plan9/arm": want some of linux/amd64`,
		`-platforms: "linux/amd64"`, "-key: stat " + r.key, "-out " + dir + ": it has old; want an empty folder", "/cosign", "/helm", "/syft"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in: %v", want, err)
		}
	}
	for version, allowed := range map[string]bool{"v0.1.0": true, "v1.20.3-rc.1": true, "v1.0.0-a-b": false, "v01.0.0": false, "v1.0.0 ": false} {
		if err := checkVersion(version); (err == nil) != allowed {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// repository makes a git repository with commits of the subjects.
func repository(t *testing.T, subjects ...string) (dir string, git func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_DATE="+date.Format(time.RFC3339), "GIT_COMMITTER_DATE="+date.Format(time.RFC3339))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	for _, subject := range subjects {
		git("commit", "-q", "--allow-empty", "-m", subject)
	}
	return dir, git
}

// TestFacts checks what is read of a checkout: the commit, its date, and the commits since the last version, not since the tag of
// the release itself.
func TestFacts(t *testing.T) {
	dir, git := repository(t, "azure: first")
	f, err := readFacts(t.Context(), dir)
	if err != nil || f.previous != "" || !slices.Equal(f.subjects, []string{"azure: first"}) || !f.date.Equal(date) || len(f.commit) != 40 {
		t.Errorf("%+v, %v", f, err)
	}
	git("tag", "v0.1.0")
	git("commit", "-q", "--allow-empty", "-m", "plan: second")
	git("commit", "-q", "--allow-empty", "-m", "third")
	git("tag", "v0.2.0")
	if f, err = readFacts(t.Context(), dir); err != nil || f.previous != "v0.1.0" || !slices.Equal(f.subjects, []string{"third", "plan: second"}) {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFacts(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "?? new is not committed") {
		t.Errorf("a file that is not committed: %v", err)
	}
	if _, err := readFacts(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("no repository: %v", err)
	}
}

func TestChangelog(t *testing.T) {
	f := facts{commit: "7dd1b62f", date: date, previous: "v0.1.0", subjects: []string{
		"plan: say everything", "fix a word", "azure, plan: two areas", "plan: say more", "",
	}}
	want := `# kaz v0.2.0

Commit 7dd1b62f of 2026-11-29: the changes since v0.1.0.

## azure, plan

* two areas

## plan

* say everything
* say more

## others

* fix a word
`
	if got := changelog("v0.2.0", f); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// content is a folder with a program, a text, and a file that is not released.
func content(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"kaz": 0o700, "prebuilt/text": 0o600, "prebuilt/.lock": 0o600} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestArchivesAreReproducible checks that archives of the same files at different times and places have the same bytes, and what is
// in them.
func TestArchivesAreReproducible(t *testing.T) {
	r := release{facts: facts{date: date}}
	var tars, zips [2][]byte
	for i := range 2 {
		dir, out := content(t), t.TempDir()
		if i == 1 { // as another checkout has it
			if err := os.Chtimes(filepath.Join(dir, "kaz"), date, date); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(r.writeTar(filepath.Join(out, "a.tar.gz"), dir, "top", true), r.writeZip(filepath.Join(out, "a.zip"), dir, "top")); err != nil {
			t.Fatal(err)
		}
		var problems [2]error
		tars[i], problems[0] = os.ReadFile(filepath.Join(out, "a.tar.gz"))
		zips[i], problems[1] = os.ReadFile(filepath.Join(out, "a.zip"))
		if err := errors.Join(problems[:]...); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(tars[0], tars[1]) || !bytes.Equal(zips[0], zips[1]) {
		t.Error("the bytes differ")
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(tars[0]))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for _, want := range []tar.Header{{Name: "top/kaz", Mode: 0o755}, {Name: "top/prebuilt/text", Mode: 0o644}} {
		if h, err := archive.Next(); err != nil || h.Name != want.Name || h.Mode != want.Mode || !h.ModTime.Equal(date) {
			t.Errorf("%+v, %v, want %s with mode %o", h, err, want.Name, want.Mode)
		}
	}
	if h, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v after the last file", h, err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(zips[0]), int64(len(zips[0])))
	if err != nil || len(zipped.File) != 2 || zipped.File[0].Name != "top/kaz" || zipped.File[0].Mode().Perm() != 0o755 {
		t.Errorf("%+v, %v", zipped, err)
	}
}

// TestSBOM checks that an SBOM has the date of the commit, and a name that changes only with its content.
func TestSBOM(t *testing.T) {
	dated := func(scanned string) map[string]any {
		t.Helper()
		text, err := datedSBOM([]byte(scanned), date)
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	const first = `{"documentNamespace":"https://example.com/1","creationInfo":{"created":"2027-01-01T00:00:00Z"},"packages":["archive","x"]}`
	one, again := dated(first), dated(strings.NewReplacer("com/1", "com/2", "2027", "2028").Replace(first))
	if one["documentNamespace"] != again["documentNamespace"] || one["creationInfo"].(map[string]any)["created"] != "2026-11-29T12:00:00Z" {
		t.Errorf("%v and %v", one, again)
	}
	if other := dated(strings.Replace(first, `"x"`, `"y"`, 1)); other["documentNamespace"] == one["documentNamespace"] {
		t.Error("another content has the same name")
	}
	if _, err := datedSBOM([]byte(strings.Replace(first, `,"x"`, "", 1)), date); err == nil ||
		err.Error() != "SBOM: it has 1 packages, want those of the programs" {
		t.Error(err)
	}
	if _, err := datedSBOM([]byte(`{}`), date); err == nil || err.Error() != "SBOM: creationInfo is <nil>, want an object" {
		t.Error(err)
	}
}

// TestChart checks that charts that were packaged at different times have the same bytes, and that their layouts have the chart as
// registries have it.
func TestChart(t *testing.T) {
	r := release{facts: facts{date: date}, out: t.TempDir()}
	var dated [2][]byte
	for i := range dated {
		file := filepath.Join(t.TempDir(), "kaz-0.1.0.tgz")
		if err := os.WriteFile(file, packagedChart(t, date.Add(time.Duration(i)*time.Hour)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.writeChart(file); err != nil {
			t.Fatal(err)
		}
		var err error
		if dated[i], err = os.ReadFile(filepath.Join(r.out, "kaz-0.1.0.tgz")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(dated[0], dated[1]) {
		t.Error("the bytes differ")
	}
	layout, err := os.Open(filepath.Join(r.out, "kaz-0.1.0_oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer layout.Close()
	blobs := map[string]string{}
	for archive := tar.NewReader(layout); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		blobs[h.Name] = string(text)
	}
	var index, manifest struct {
		Manifests, Layers []struct{ Digest, MediaType string }
		Config            struct{ Digest, MediaType string }
	}
	blob := func(digest string) string { return blobs["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	if err := json.Unmarshal([]byte(blobs["index.json"]), &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%s: %v", blobs["index.json"], err)
	}
	if err := json.Unmarshal([]byte(blob(index.Manifests[0].Digest)), &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatal(manifest, err)
	}
	if blob(manifest.Layers[0].Digest) != string(dated[0]) || manifest.Layers[0].MediaType != string(chartContent) ||
		blob(manifest.Config.Digest) != `{"name":"kaz","version":"0.1.0"}` || manifest.Config.MediaType != string(chartConfig) {
		t.Errorf("%+v", manifest)
	}
}

// packagedChart returns an archive of a chart, packaged at a time.
func packagedChart(t *testing.T, at time.Time) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	const text = "name: kaz\nversion: 0.1.0\n"
	if err := w.WriteHeader(&tar.Header{Name: "kaz/Chart.yaml", Mode: 0o644, Size: int64(len(text)), ModTime: at}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPackages checks that packages of the same program have the same bytes, and that nothing in them names this machine.
func TestPackages(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "LICENSE"), []byte("license"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var made [2]map[string][]byte
	for i := range made {
		r := release{source: source, out: t.TempDir(), work: t.TempDir(), version: "v0.1.0-rc.1", platforms: []string{"linux/arm64"},
			facts: facts{date: date}}
		program := r.program("kaz", "linux/arm64")
		if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("kaz"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := r.writePackages(t.Context()); err != nil {
			t.Fatal(err)
		}
		made[i] = map[string][]byte{}
		for _, name := range []string{"kaz_0.1.0~rc.1_arm64.deb", "kaz-0.1.0~rc.1-1.aarch64.rpm"} {
			text, err := os.ReadFile(filepath.Join(r.out, name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte(host)) {
				t.Errorf("%s names this machine", name)
			}
			made[i][name] = text
		}
	}
	for name, text := range made[0] {
		if !bytes.Equal(text, made[1][name]) {
			t.Errorf("%s: the bytes differ", name)
		}
	}
}

// TestChecksums checks that the checksums are those of sha256sum, in the order of the names.
func TestChecksums(t *testing.T) {
	r := release{out: t.TempDir()}
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(r.out, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeChecksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", checksumsFile)
	cmd.Dir = r.out
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a: OK\nb: OK\n" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestPackagesRead checks what dpkg and rpm read in the packages: the program alone can be executed, and root owns all files.
func TestPackagesRead(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "LICENSE"), []byte("license"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := release{source: source, out: t.TempDir(), work: t.TempDir(), version: "v0.1.0", platforms: []string{"linux/amd64"},
		facts: facts{date: date}}
	program := r.program("kaz", "linux/amd64")
	if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("kaz"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := r.writePackages(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool string
		args []string
		want []string
	}{
		{"dpkg-deb", []string{"--field", "kaz_0.1.0_amd64.deb", "Package", "Version", "Architecture"},
			[]string{"Package: kaz\n", "Version: 0.1.0\n", "Architecture: amd64\n"}},
		{"dpkg-deb", []string{"--contents", "kaz_0.1.0_amd64.deb"},
			[]string{`-rwxr-xr-x root/root +3 .* \./usr/bin/kaz\n`, `-rw-r--r-- root/root +7 .* \./usr/share/doc/kaz/copyright\n`}},
		{"rpm", []string{"-qp", "--nosignature", "--queryformat", "%{NAME} %{VERSION} %{ARCH} %{LICENSE} %{BUILDHOST}", "kaz-0.1.0-1.x86_64.rpm"},
			[]string{"^kaz 0.1.0 x86_64 Apache-2.0 localhost$"}},
		{"rpm", []string{"-qplv", "--nosignature", "kaz-0.1.0-1.x86_64.rpm"},
			[]string{`-rwxr-xr-x .*root +root +3 .* /usr/bin/kaz\n`, `-rw-r--r-- .*root +root +7 .* /usr/share/doc/kaz/copyright\n`}},
	} {
		if _, err := exec.LookPath(c.tool); err != nil {
			t.Logf("%s %v is not run: %v", c.tool, c.args, err)
			continue
		}
		cmd := exec.CommandContext(t.Context(), c.tool, c.args...)
		cmd.Dir = r.out
		cmd.Env = append(cmd.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		for _, want := range c.want {
			if err != nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("%s %v: %v\n%s\nwant %s", c.tool, c.args, err, out, want)
			}
		}
	}
}
