package cluster_test

import (
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
