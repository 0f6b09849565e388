package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBootedIgnition checks that a pool that boots with Ignition joins a cluster. Debian's package of Ignition applies the
// custom data. The image has no cloud-init, python3, jq and packages, and a read-only /usr. The boot script gives the machine
// its name, and the node takes pods.
func TestBootedIgnition(t *testing.T) {
	b := startBooting(t, 1, "--ignition")
	pool, _, _ := strings.Cut(example(t, "flatcar.yaml"), "---\napiVersion: cluster.kaz/v1alpha1\nkind: Extension")
	began := time.Now()
	general := strings.Replace(example(t, "dev.yaml"), "spec: {replicas: 1, zones: []}", "spec: {replicas: 0, zones: []}", 1)
	c := b.cluster("dev", general+"---\n"+pool+ignitionExtension)
	c.whole(2, c.version)
	t.Logf("two nodes take pods after %s", short(time.Since(began)))
	root := filepath.Join(b.machines, "machines", ignitionMachine(t, b), "upper")
	for path, want := range map[string]os.FileMode{
		"opt/kaz/bootstrap.sh": 0o755, "etc/kaz/kubeadm-join.yaml": 0o600, "etc/kaz/node.env": 0o644, "etc/sudoers.d/90-kaz": 0o440,
		"opt/own/tool": 0o750, "etc/systemd/system/kaz-bootstrap.service": 0o644, "etc/.ignition-result.json": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want the mode %04o: %v", path, info, want, err)
		}
	}
	for _, path := range []string{"usr/local", "usr/lib", "usr/bin"} {
		if _, err := os.Stat(filepath.Join(root, path)); !os.IsNotExist(err) {
			t.Errorf("the machine wrote /%s: %v", path, err)
		}
	}
	if name := strings.TrimSpace(string(readFile(t, filepath.Join(root, "etc/hostname")))); !strings.HasPrefix(name, "dev-flatcar") {
		t.Errorf("the host name is %s", name)
	}
	if out := string(readFile(t, filepath.Join(root, "opt/own/done"))); out != "command\n" {
		t.Errorf("the command of the Extension: %q", out)
	}
	c.serves(2, c.version)
}

// ignitionMachine is the name of the machine of the pool.
func ignitionMachine(t *testing.T, b *booting) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(b.machines, "machines", "*flatcar*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("the machines of the pool are %v: %v", all, err)
	}
	return filepath.Base(all[0])
}

const ignitionExtension = `---
apiVersion: cluster.kaz/v1alpha1
kind: Extension
metadata: {name: own}
spec:
  appliesTo: {pools: [flatcar]}
  files:
  - {path: /opt/own/tool, mode: "0750", content: "tool"}
  commands:
  - echo command > /opt/own/done
`
