package definition

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kaz/internal/cluster/definition/fields"
)

// TestReleasedChecksums checks the form of the table: each version has each program for each architecture, once, in order.
func TestReleasedChecksums(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{64}  v(\d+\.\d+\.\d+)/bin/linux/[a-z0-9]+/[a-z]+$`)
	versions, sums := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(released) {
		match := form.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			t.Fatalf("%q is not a line of sha256sum", line)
		}
		if versions[match[1]]++; sums[line[:64]] {
			t.Errorf("%q: another program has the same checksum", line)
		}
		sums[line[:64]] = true
	}
	for version, count := range versions {
		text := ReleasedChecksums(version)
		for _, architecture := range fields.Architectures() {
			for _, program := range fields.Programs() {
				if path := ArtifactPath(version, architecture, program); !strings.Contains(text, " "+path+"\n") {
					t.Errorf("%s has no checksum", path)
				}
			}
		}
		if want := len(fields.Architectures()) * len(fields.Programs()); count != want {
			t.Errorf("version %s has %d checksums, want %d", version, count, want)
		}
	}
	if text := ReleasedChecksums("1.33"); text != "" {
		t.Errorf("version 1.33: %s", text)
	}
}

// TestChecksumsOfExamples checks that the release has the checksums of the versions in its examples, which users copy.
func TestChecksumsOfExamples(t *testing.T) {
	files, err := filepath.Glob("../../../docs/example-manifests/cluster/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`version: "?(\d+\.\d+\.\d+)\b`).FindAllStringSubmatch(string(text), -1) {
			if found++; ReleasedChecksums(match[1]) == "" {
				t.Errorf("%s: no checksums of version %s: make checksums VERSION=v%s", file, match[1], match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no example has a version")
	}
}

// TestDifferentChecksums checks that a checksum in the definition counts before that of the release, and that the difference is known.
func TestDifferentChecksums(t *testing.T) {
	path, own := ArtifactPath("1.36.3", "amd64", "kubelet"), strings.Repeat("a", 64)
	k := Kubernetes{Version: "1.36.3", ArtifactChecksums: map[string]string{path: own}}
	if got := k.DifferentChecksums(); !slices.Equal(got, []string{path}) {
		t.Errorf("got %q", got)
	}
	for line := range strings.Lines(ReleasedChecksums("1.36.3")) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		k.ArtifactChecksums[path] = sum
	}
	if got := k.DifferentChecksums(); len(got) > 0 {
		t.Errorf("got %q for the checksums of the release", got)
	}
}

// TestAddChecksums checks the script that adds a version to the table. Whatever is not a checksum from https adds nothing.
func TestAddChecksums(t *testing.T) {
	const version = "v9.1.0"
	before := strings.Repeat("a", 64) + "  v9.0.0/bin/linux/amd64/kubelet\n" + strings.Repeat("b", 64) + "  v10.0.0/bin/linux/amd64/kubelet\n"
	known := strings.Repeat("c", 64) + "  " + version + "/bin/linux/amd64/kubelet\n"
	for name, test := range map[string]struct {
		version, table, answer string
		plain                  bool
		want                   string // in the error, "" if the lines are added
	}{
		"new":              {version: version, table: before},
		"no version":       {version: "1.36", table: before, want: `version "1.36": want a version of Kubernetes such as v1.36.3`},
		"a page":           {version: version, table: before, answer: "<html>", want: "want 64 small hexadecimal digits"},
		"two lines":        {version: version, table: before, answer: strings.Repeat("a", 64) + "\nx", want: "want 64 small hexadecimal digits"},
		"http":             {version: version, table: before, plain: true, want: "curl"},
		"another checksum": {version: version, table: before + known, want: "a published program does not change"},
	} {
		t.Run(name, func(t *testing.T) {
			start := httptest.NewTLSServer
			if test.plain {
				start = httptest.NewServer
			}
			published := map[string]string{}
			server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".sha256")
				published[path] = fmt.Sprintf("%064x", len(published)+1)
				if test.answer != "" {
					published[path] = test.answer
				}
				_, _ = io.WriteString(w, published[path])
			}))
			t.Cleanup(server.Close)
			got, output, err := addChecksums(t, server, test.version, test.table)
			if test.want != "" {
				if err == nil || got != test.table || !strings.Contains(output, test.want) {
					t.Errorf("%v, table %q\n%s\nwant %s", err, got, output, test.want)
				}
				return
			}
			lines := strings.SplitAfter(test.table, "\n")
			want := lines[0]
			for _, architecture := range fields.Architectures() {
				for _, program := range []string{"kubeadm", "kubectl", "kubelet"} {
					path := ArtifactPath(version[1:], architecture, program)
					want += published[path] + "  " + path + "\n"
				}
			}
			if want += lines[1]; err != nil || got != want {
				t.Errorf("%v\n%s\ngot:\n%swant:\n%s", err, output, got, want)
			}
		})
	}
}

// addChecksums runs the script with a server and a table, and returns the table then, and the output.
func addChecksums(t *testing.T, server *httptest.Server, version, table string) (now, output string, err error) {
	t.Helper()
	dir := t.TempDir()
	file, authority := filepath.Join(dir, "checksums.txt"), filepath.Join(dir, "ca.pem")
	texts := map[string]string{file: table, authority: ""}
	if certificate := server.Certificate(); certificate != nil {
		texts[authority] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	for path, text := range texts {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", "../../../tools/checksums.sh", version)
	command.Env = append(command.Environ(), "CURL_CA_BUNDLE="+authority, "KAZ_OFFICIAL="+server.URL, "KAZ_CHECKSUMS="+file, "KAZ_RETRIES=0")
	out, err := command.CombinedOutput()
	server.Close()
	text, readErr := os.ReadFile(file)
	left, globErr := filepath.Glob(file + ".*")
	if readErr != nil || globErr != nil || len(left) > 0 {
		t.Errorf("%v %v: left %q", readErr, globErr, left)
	}
	return string(text), string(out), err
}
