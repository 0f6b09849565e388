package boot

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// mirrored answers like a mirror with programs of a content, each with the checksum of that content beside it.
func mirrored(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := content + path.Base(r.URL.Path)
		if name, isSum := strings.CutSuffix(path.Base(r.URL.Path), ".sha256"); isSum {
			text = fmt.Sprintf("%x", sha256.Sum256([]byte(content+name)))
		}
		_, _ = io.WriteString(w, text)
	}
}

// TestArtifacts checks that a machine installs only programs that the definition, the release of kaz or the project vouches for. A mirror
// that serves other programs serves their checksums, too. What the image brings as its mirror counts before the release.
func TestArtifacts(t *testing.T) {
	const genuine, planted = "#!/bin/sh\n# the project's ", "#!/bin/sh\n# another's "
	official := t.TempDir()
	sums := map[string]*strings.Builder{genuine: {}, planted: {}}
	for _, architecture := range []string{"amd64", "arm64"} {
		for _, program := range []string{"kubeadm", "kubelet", "kubectl"} {
			at := "v1.36.3/bin/linux/" + architecture + "/" + program
			for content, lines := range sums {
				fmt.Fprintf(lines, "%x %s\n", sha256.Sum256([]byte(content+program)), at)
			}
			file := filepath.Join(official, at)
			if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(genuine+program)))
			for path, text := range map[string]string{file: genuine + program, file + ".sha256": sum} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	trusted := httptest.NewTLSServer(mirrored(genuine))
	t.Cleanup(trusted.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CURL_CA_BUNDLE", authority)
	for name, test := range map[string]struct {
		tls, planted, pinned, unreached bool
		released                        string // "" without checksums of the release, or the programs that they fit
		image                           bool   // the mirror is in the image
		want                            string // "" if the programs are installed
	}{
		"https":                            {tls: true},
		"https, other programs":            {tls: true, planted: true, want: "has another checksum than"},
		"https, without the project's":     {tls: true, unreached: true},
		"https, pinned":                    {tls: true, pinned: true, unreached: true},
		"http":                             {want: "does not protect programs on their way: give the checksum of v1.36.3/bin/linux/"},
		"http, pinned":                     {pinned: true, unreached: true},
		"http, pinned, and other programs": {pinned: true, planted: true, want: "has another checksum than"},
		"http, released":                   {released: genuine, unreached: true},
		"http, released, other programs":   {released: genuine, planted: true, unreached: true, want: "has another checksum than"},
		"https, released, other programs":  {tls: true, released: genuine, planted: true, unreached: true, want: "has another checksum than"},
		"official other than released":     {tls: true, released: planted, want: "has another checksum than"},
		"pinned other than released":       {pinned: true, released: planted, unreached: true},
		"image other than released":        {image: true, released: planted},
	} {
		t.Run(name, func(t *testing.T) {
			content := genuine
			if test.planted {
				content = planted
			}
			start := httptest.NewServer
			if test.tls {
				start = httptest.NewTLSServer
			}
			mirror := start(mirrored(content))
			t.Cleanup(mirror.Close)
			from := official
			if test.unreached {
				from = filepath.Join(official, "none")
			}
			h := newHost(t, newCloud(t), "vm-a", "node")
			for _, program := range []string{"kubeadm", "kubelet", "kubectl"} {
				h.write("bin/"+program, "#!/bin/sh\necho v1.0.0\n", 0o755)
			}
			if test.pinned {
				h.write("etc/kaz/checksums", sums[genuine].String(), 0o600)
			}
			h.write("etc/kaz/released-checksums", "", 0o600)
			if test.released != "" {
				h.write("etc/kaz/released-checksums", sums[test.released].String(), 0o600)
			}
			url := mirror.URL
			if test.image {
				url = "file://" + official
			}
			h.write("etc/kaz/image.env", fmt.Sprintf("KAZ_MIRROR=%s\nKAZ_OFFICIAL=file://%s\nKAZ_RETRIES=0\n", url, from), 0o600)
			_, report, err := h.boot()
			got, _ := os.ReadFile(filepath.Join(h.root, "usr/local/bin/kubelet"))
			if test.want == "" && string(got) != genuine+"kubelet" {
				t.Errorf("%v: the kubelet is %q\n%s", err, got, report)
			}
			if test.want != "" && (err == nil || len(got) > 0 || !strings.Contains(report, test.want)) {
				t.Errorf("%v, got %s, want %s; the kubelet is %q", err, report, test.want, got)
			}
		})
	}
}
