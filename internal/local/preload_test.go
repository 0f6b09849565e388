package local

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no archive of images is refused before anything starts, with its name.
func TestCheckImage(t *testing.T) {
	archive := func(names ...string) string {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for _, n := range names {
			if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	for content, want := range map[string]string{
		archive("blobs/sha256/0", "index.json"): "",
		archive("./oci-layout", "./index.json"): "",
		archive("layer.tar", "manifest.json"):   "",
		archive("etc/passwd"):                   "neither index.json nor manifest.json",
		"no archive at all":                     "no archive",
	} {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := UpOptions{Images: []string{file}}
		err := o.check()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)):
			t.Errorf("%q: %v, want %q and the file's name", content, err, want)
		}
	}
	o := UpOptions{NodesKind: NodesHollow, Images: []string{"nowhere.tar"}}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "nowhere.tar") || !strings.Contains(err.Error(), "simulated") {
		t.Errorf("hollow nodes with an image: %v", err)
	}
}
