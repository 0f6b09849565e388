package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/cluster/definition"
)

// encryptionKey is a key of 32 bytes in base64, as far as its form tells.
func encryptionKey(letter string) string { return strings.Repeat(letter, 43) + "=" }

const encryptionPatch = "etc/kaz/patches/kube-apiserver-kaz+json.yaml"

// TestEncryption checks the configuration with which the API server of a member encrypts Secrets: the key that encrypts comes first, then
// all other keys and Secrets in plain text can be read. Before a key encrypts, a member writes Secrets as they are.
func TestEncryption(t *testing.T) {
	line := func(use, name string) string { return use + " " + name + " " + encryptionKey(name[4:]) + "\n" }
	shown := func(names ...string) string {
		text := "  - secretbox:\n      keys:\n"
		for _, name := range names {
			text += "      - {name: " + name + ", secret: " + encryptionKey(name[4:]) + "}\n"
		}
		return text
	}
	const identity = "  - identity: {}\n"
	head := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for name, test := range map[string]struct{ vault, want string }{
		"a new cluster": {line("encrypts", "key-1") + "every Secret is encrypted with the first key since 2030-01-02T03:04:05Z\n",
			shown("key-1") + identity},
		"the first key comes": {line("next", "key-1"), identity + shown("key-1")},
		"the next key comes":  {line("encrypts", "key-1") + line("next", "key-2"), shown("key-1", "key-2") + identity},
		"former keys": {line("reads", "key-1") + line("reads", "key-3") + strings.TrimSpace(line("encrypts", "key-2")),
			shown("key-2", "key-1", "key-3") + identity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			c.encryption, c.winner = test.vault, "vm-b"
			h := newHost(t, c, "vm-a", "control-plane")
			if _, report, err := h.boot(); err != nil {
				t.Fatal(err, report)
			}
			if got := h.read("etc/kubernetes/pki/encryption.yaml"); got != head+test.want {
				t.Errorf("got\n%s\nwant\n%s", got, head+test.want)
			}
			const patch = "[{op: add, path: /spec/containers/0/command/-, value: " +
				"--encryption-provider-config=/etc/kubernetes/pki/encryption.yaml}]\n"
			if got := h.read(encryptionPatch); got != patch {
				t.Errorf("the patch of the API server: %s", got)
			}
			info, err := os.Stat(filepath.Join(h.root, "etc/kubernetes/pki/encryption.yaml"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file with the keys: %v %v", info.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(h.root, "run/kaz/encryption*")); len(left) > 0 {
				t.Errorf("%v stays on the machine", left)
			}
		})
	}
}

// TestEncryptionRefused checks that a member does not boot without keys that it can use, and that no key is in its report.
func TestEncryptionRefused(t *testing.T) {
	for name, vault := range map[string]string{
		"no key": "every Secret is encrypted with the first key since 2030-01-02T03:04:05Z\n", "a short key": "encrypts key-1 AAAA\n",
		"a key and more": "encrypts key-1 " + encryptionKey("A") + " more\n", "another use": "Reads key-1 " + encryptionKey("A") + "\n",
		"a name of YAML": "reads a:b " + encryptionKey("A") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			c.encryption = vault
			h := newHost(t, c, "vm-a", "control-plane")
			calls, report, err := h.boot()
			if err == nil || strings.Contains(calls, "kubeadm init") || !strings.Contains(report, "prod-encryption has") ||
				strings.Contains(report, encryptionKey("A")) {
				t.Errorf("%v\n%s\n%s", err, calls, report)
			}
		})
	}
}

// TestEncryptionAbsent checks that neither nodes nor members of a cluster of an earlier kaz take keys, and members with a flag of the
// definition do not either.
func TestEncryptionAbsent(t *testing.T) {
	d := example(t, "ha.yaml", "team-a.yaml")
	own := d
	own.Cluster.Spec.Kubernetes.APIServer.ExtraArgs = map[string]string{"encryption-provider-config": "/etc/own.yaml"}
	plain := d
	plain.Encrypted = false
	for _, one := range []struct {
		d     definition.Definition
		takes bool
	}{{d, true}, {own, false}, {plain, false}} {
		files, err := Build(one.d)
		if err != nil || strings.Contains(string(files.ControlPlane), "KAZ_ENCRYPTION='secretbox'") != one.takes {
			t.Errorf("members take keys: want %t, %v", one.takes, err)
		}
		if strings.Contains(string(files.Pools["general"]), "KAZ_ENCRYPTION=") {
			t.Error("nodes take keys")
		}
	}
	c := newCloud(t)
	c.encryption = ""
	h := newHost(t, c, "vm-a", "node")
	if calls, report, err := h.boot(); err != nil {
		t.Error(err, calls, report)
	}
	if _, err := os.Stat(filepath.Join(h.root, encryptionPatch)); !os.IsNotExist(err) {
		t.Errorf("a node has the patch of the API server: %v", err)
	}
}
