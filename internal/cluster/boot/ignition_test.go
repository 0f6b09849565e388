package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/cluster/definition"
)

var update = flag.Bool("update", false, "write the golden files anew")

// flatcar is a definition with a pool that boots with Ignition. The control plane does so, too.
func flatcar(t *testing.T) definition.Definition {
	t.Helper()
	d := example(t, "dev.yaml", "flatcar.yaml")
	d.Cluster.Spec.ControlPlane.BootFormat = definition.Ignition
	return d
}

// ignited are the files of an Ignition config, by path, and the config.
func ignited(t *testing.T, text []byte) (map[string]file, ignitionConfig) {
	t.Helper()
	var c ignitionConfig
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	all := map[string]file{}
	add := func(path string, mode int, content string) {
		if _, twice := all[path]; twice {
			t.Errorf("%s is written twice", path)
		}
		all[path] = file{path, fmt.Sprintf("%04o", mode), content}
	}
	for _, f := range c.Storage.Files {
		content, err := url.PathUnescape(strings.TrimPrefix(f.Contents.Source, "data:,"))
		if err != nil || !strings.HasPrefix(f.Contents.Source, "data:,") || !f.Overwrite {
			t.Errorf("%s: %v, overwrite %v", f.Path, err, f.Overwrite)
		}
		add(f.Path, f.Mode, content)
	}
	for _, u := range c.Systemd.Units {
		if u.Contents != "" {
			add(unitDir+u.Name, 0o644, u.Contents)
		}
		for _, d := range u.Dropins {
			add(unitDir+u.Name+".d/"+d.Name, 0o644, d.Contents)
		}
	}
	return all, c
}

// TestIgnitionGolden shows the whole boot file of a pool.
func TestIgnitionGolden(t *testing.T) {
	files, err := Build(flatcar(t))
	if err != nil {
		t.Fatal(err)
	}
	const name = "testdata/flatcar.json"
	got := files.Pools["flatcar"]
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), write it anew with -update:\n%s", name, diff)
	}
}

// TestIgnitionFiles checks that a boot file has the same files in both formats, but for the paths that differ.
func TestIgnitionFiles(t *testing.T) {
	d := flatcar(t)
	files, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Cluster.Spec.ControlPlane.BootFormat = "CloudInit"
	for i := range d.Pools {
		d.Pools[i].Spec.BootFormat = "CloudInit"
	}
	others, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("/usr/local/lib/kaz", "/opt/kaz", "/usr/local/bin", "/opt/bin", "/usr/lib/cni", "/opt/cni/bin",
		"KAZ_SET_NAME=''", "KAZ_SET_NAME='true'")
	const volumes = "    - name: flex-volume-plugin-dir\n      value: " + flexVolumes + "\n"
	for role, pair := range map[string][2][]byte{
		"control plane": {files.ControlPlane, others.ControlPlane}, "pool": {files.Pools["flatcar"], others.Pools["flatcar"]},
	} {
		got, c := ignited(t, pair[0])
		for _, path := range []string{unitDir + "containerd.service.d/10-kaz.conf", "/etc/sudoers.d/90-kaz"} {
			if _, has := got[path]; !has {
				t.Errorf("%s: has no file %s", role, path)
			}
			delete(got, path)
		}
		want := map[string]file{}
		for path, f := range written(t, pair[1]) {
			path = moved.Replace(path)
			if path != "/opt/kaz/bootstrap.sh" && !strings.HasPrefix(path, "/etc/kaz/manifests/") {
				f.Content = moved.Replace(f.Content)
			}
			want[path] = file{path, f.Permissions, f.Content}
		}
		if init := got["/etc/kaz/kubeadm-init.yaml"]; role == "control plane" {
			if !strings.Contains(init.Content, volumes) {
				t.Errorf("the controller manager has no directory of volume plugins outside of /usr:\n%s", init.Content)
			}
			init.Content = strings.Replace(init.Content, volumes, "", 1)
			got[init.Path] = init
		}
		label := strings.NewReplacer(definition.Revision(d, "flatcar"), definition.Revision(flatcar(t), "flatcar"))
		const join = "/etc/kaz/kubeadm-join.yaml"
		want[join] = file{join, "0600", label.Replace(want[join].Content)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", role, diff)
		}
		user := c.Passwd.Users[0]
		if user.Name != "azureuser" || !slices.Equal(user.Keys, d.Cluster.Spec.Access.SSHPublicKeys) {
			t.Errorf("%s: the user %+v", role, user)
		}
		if has := len(c.Storage.Filesystems) == 1; has != (role == "control plane") {
			t.Errorf("%s: the file systems %+v", role, c.Storage.Filesystems)
		}
	}
}

// TestIgnitionUnits checks which units start, and that the machine does not update itself.
func TestIgnitionUnits(t *testing.T) {
	files, err := Build(flatcar(t))
	if err != nil {
		t.Fatal(err)
	}
	_, c := ignited(t, files.ControlPlane)
	var enabled, masked []string
	for _, u := range c.Systemd.Units {
		if u.Enabled != nil && *u.Enabled {
			enabled = append(enabled, u.Name)
		}
		if u.Mask {
			masked = append(masked, u.Name)
		}
	}
	if want := []string{"kaz-backup.timer", "kaz-bootstrap.service", "kaz-join-token.timer", "kaz-renew.timer"}; !slices.Equal(enabled, want) {
		t.Errorf("enabled are %v, want %v", enabled, want)
	}
	if want := []string{"locksmithd.service", "update-engine.service"}; !slices.Equal(masked, want) {
		t.Errorf("masked are %v, want %v", masked, want)
	}
}

// TestIgnitionExtension checks that the file of an Extension replaces one of kaz, because Ignition takes each path once.
func TestIgnitionExtension(t *testing.T) {
	d := flatcar(t)
	d.Extensions = append(d.Extensions, definition.Extension{Metadata: definition.Metadata{Name: "own"}, Spec: definition.ExtensionSpec{
		AppliesTo: definition.AppliesTo{Pools: []string{"*"}}, Files: []definition.File{
			{Path: "/etc/containerd/config.toml", Content: "own %41 + é\n", Mode: "0640"},
			{Path: unitDir + "kubelet.service.d/30-own.conf", Content: "[Service]\n", Mode: "0644"},
			{Path: unitDir + "kubelet.service.d/note", Content: "x", Mode: "644"},
			{Path: unitDir + "kubelet.service", Content: "[Service]\nExecStart=/bin/true\n", Mode: "0644"},
		}}})
	files, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := ignited(t, files.Pools["flatcar"])
	for _, f := range d.Extensions[len(d.Extensions)-1].Spec.Files {
		if want := (file{f.Path, fmt.Sprintf("%04s", f.Mode), f.Content}); got[f.Path] != want {
			t.Errorf("got %v, want %v", got[f.Path], want)
		}
	}
}

// TestIgnitionBoot boots a member and a node with their Ignition configs: their programs are below /opt, and the boot script gives them
// their computer names. A second run and an upgrade find the same files.
func TestIgnitionBoot(t *testing.T) {
	c := newCloud(t)
	c.name = "dev-flatcar000000"
	files, err := Build(flatcar(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"control-plane", "node"} {
		h := newHost(t, c, role, role)
		if err := os.RemoveAll(filepath.Join(h.root, "etc/kaz")); err != nil {
			t.Fatal(err)
		}
		text := files.Pools["flatcar"]
		if role == "control-plane" {
			text = files.ControlPlane
		}
		all, _ := ignited(t, text)
		h.bring(all)
		h.write("bin/hostname", "#!/bin/sh\n[ $# -gt 0 ] || { echo localhost; exit; }\necho \"hostname $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
		h.write("etc/kaz/downloads", "", 0o600) // nothing is read from the internet
		h.write("etc/kaz/commands/flatcar-000.sh", "echo command >> \"$KAZ_ROOT/calls\"\n", 0o755)
		calls, out, err := h.script("opt/kaz/bootstrap.sh")
		r, said := LastReport(out)
		if err != nil || !said || r.Failed || !strings.Contains(calls, "hostname dev-flatcar000000\n") {
			t.Fatalf("%s: %v\n%s\n%s", role, err, calls, out)
		}
		if name, err := os.ReadFile(filepath.Join(h.root, "etc/hostname")); err != nil || string(name) != "dev-flatcar000000\n" {
			t.Errorf("%s: the host name after a boot: %v %s", role, err, name)
		}
		for _, program := range []string{"kubelet", "kubeadm", "kubectl"} {
			if target, err := os.Readlink(filepath.Join(h.root, "opt/bin", program)); err != nil || target != filepath.Join(h.root, "bin", program) {
				t.Errorf("%s: opt/bin/%s: %v %s", role, program, err, target)
			}
		}
		if calls, _, err := h.script("opt/kaz/bootstrap.sh"); err != nil || calls != "" {
			t.Errorf("%s: the second run: %v %s", role, err, calls)
		}
		h.write("upgrade.sh", UpgradeScript(definition.Definition{}, "1.36.3"), 0o755)
		h.write("opt/kaz/bootstrap.sh", "exit 1 # of an earlier kaz\n", 0o755)
		if calls, _, err := h.script("upgrade.sh"); err != nil || !strings.Contains(calls, "kubeadm upgrade node") {
			t.Errorf("%s: the upgrade: %v\n%s", role, err, calls)
		}
	}
}

// TestNoPackages checks that an image without containerd and without packages is named as the cause.
func TestNoPackages(t *testing.T) {
	out, err := call(t, awks(t)[0], "", `root=/nowhere PATH=/nowhere; runtime 2>&1`, "runtime")
	if err == nil || !strings.Contains(out, "the image needs containerd, conntrack and nft: it has no apt-get to install them") {
		t.Errorf("%v %s", err, out)
	}
}

// TestCustomDataSize checks that the largest boot file of the examples has room in custom data.
func TestCustomDataSize(t *testing.T) {
	files, err := Build(flatcar(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := CustomData(files.ControlPlane)
	if err != nil || len(data) > 60*1024 {
		t.Errorf("%d characters of custom data, want at most 60 KiB: %v", len(data), err)
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !bytes.HasPrefix(raw, []byte(`{"ignition":{"version":"3.3.0"`)) {
		t.Errorf("%v %.100s", err, raw)
	}
}
