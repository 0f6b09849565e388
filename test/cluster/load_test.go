package cluster_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/localcluster/image"
)

// loadedImage loads an image into the running nodes, and a pod of each node runs it.
func loadedImage(c *cluster) {
	const reference = "kaz.local/loaded:1"
	archive, err := image.Wrap(c.t.TempDir(), reference, filepath.Join(programs, "acr-credential-provider"))
	if err != nil {
		c.t.Fatal(err)
	}
	nodes := strings.Fields(c.must("", "get", "nodes", "-o", "name"))
	said := runKaz(c.t, "local", "load", "--dir", c.dir, archive)
	for i, node := range nodes {
		node = strings.TrimPrefix(node, "node/")
		if !strings.Contains(said, node) {
			c.t.Errorf("node %s is missing in: %s", node, said)
		}
		nodes[i] = "loaded-" + node
		c.must("", "run", nodes[i], "--image="+reference, "--image-pull-policy=Never", "--restart=Never",
			`--overrides={"spec":{"nodeName":"`+node+`"}}`, "--", "--help")
	}
	for _, pod := range nodes {
		c.must("", "wait", "pod/"+pod, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=1m")
		c.must("", "delete", "pod", pod, "--now")
	}
	broken := filepath.Join(c.t.TempDir(), "broken.tar")
	writeArchive(c.t, broken, "manifest.json", "nonsense")
	refuses(c.t, exec.CommandContext(c.t.Context(), kaz(), "local", "load", "--dir", c.dir, broken), "machine ", "import "+broken)
	if kept, _ := filepath.Glob(filepath.Join(c.dir, "loaded-images", "*")); len(kept) != 1 { // a machine would not boot with it
		c.t.Errorf("kept for later machines: %q", kept)
	}
}

// writeArchive writes an archive (tar) with one file.
func writeArchive(t *testing.T, file, name, content string) {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644})
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err := errors.Join(err, w.Close(), os.WriteFile(file, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestLoadRefused checks what a load of images says that cannot be.
func TestRefusedLoad(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.tar")
	if err := os.WriteFile(text, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := image.Wrap(t.TempDir(), "kaz.local/loaded:1", text)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		text:               "not an archive",
		"/nonexistent.tar": "no such file",
		archive:            "no cluster is up in ",
	} {
		refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "load", "--dir", newDir(t), file), want)
	}
}
