package node_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/plan/share"
)

// recorder is a mounter that mounts nothing.
type recorder struct {
	mounts []share.Mount
	given  []file.Credentials
}

var errRecorded = errors.New("recorded")

func (r *recorder) Mount(_ context.Context, m share.Mount, _ string, c file.Credentials) error {
	r.mounts, r.given = append(r.mounts, m), append(r.given, c)
	return errRecorded
}

// tenantNode returns a node that records mounts, with one Secret in the namespace of the pod.
func tenantNode(r *recorder, content map[string]string, keys bool) *node.Node {
	return node.New(node.Config{
		Driver: file.DefaultName, Node: "node-0", Mounter: r, Mounts: mount.New(1), InlineKeys: keys,
		Cluster: share.Cluster{Subscription: "s", ResourceGroup: "rg", Suffix: "core.windows.net"},
		Secret: func(_ context.Context, namespace, name string) (map[string]string, error) {
			if namespace == "apps" && name == "s" {
				return content, nil
			}
			return nil, errors.New("not found")
		},
		Key: func(context.Context, azure.ID, bool) (secret.Text, error) { return secret.New("key-of-azure"), nil },
	})
}

// inline publishes an inline volume of a pod.
func inline(t *testing.T, n *node.Node, attributes map[string]string) error {
	t.Helper()
	values := map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "apps",
		"csi.storage.k8s.io/serviceAccount.name": "web", "shareName": "share1", "secretName": "s"}
	maps.Copy(values, attributes)
	_, err := n.NodePublishVolume(t.Context(), &csispec.NodePublishVolumeRequest{
		VolumeId: "csi-inline", TargetPath: filepath.Join(t.TempDir(), "target"), VolumeCapability: capability(), VolumeContext: values,
	})
	return err
}

// TestTenantsChooseNoMountOptions checks what the author of a pod can write into an inline volume: nothing of it adds an option of
// another kind to root's mount, leaves the share, or sends the node's credentials to a server of the pod.
func TestTenantsChooseNoMountOptions(t *testing.T) {
	good := map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k"}
	for what, attributes := range map[string]map[string]string{
		"another way to sign in":       {"mountOptions": "sec=krb5,cruid=0,upcall_target=mount"},
		"a file of the node":           {"mountOptions": "credentials=/etc/shadow"},
		"rights on the node":           {"mountOptions": "remount,suid,dev"},
		"upper case":                   {"mountOptions": "BIND"},
		"a set-user-id mode":           {"mountOptions": "file_mode=04777"},
		"a set-user-id mode attribute": {"fileMode": "04777"},
		"a value with a newline":       {"mountOptions": "uid=1\nsuid"},
		"a value with a NUL":           {"mountOptions": "ro\x00suid"},
		"a password":                   {"mountOptions": "password=x"},
		"a prefix":                     {"mountOptions": "prefixpath=../other"},
		"an old version":               {"mountOptions": "vers=1.0"},
		"an extension of mount":        {"mountOptions": "x-mount.mkdir"},
		"long options":                 {"mountOptions": strings.Repeat("ro,", 5000)},
		"a folder after expansion":     {"folderName": "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name": "../../secret"},
		"an option in a folder":        {"folderName": "a,sec=krb5"},
		"an option after expansion":    {"folderName": "${pv.metadata.name}", "csi.storage.k8s.io/pv/name": "a,sec=krb5,cruid=0"},
		"a share after expansion":      {"shareName": "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name": "a/../../b"},
		"a path as share":              {"shareName": "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name": "share/folder"},
		"an option in a share":         {"shareName": "share1,sec=krb5"},
		"an option in a server":        {"server": "acct.file.core.windows.net,sec=krb5"},
		"an option in a suffix":        {"storageEndpointSuffix": "core.windows.net,ip=10.0.0.1"},
		"a group with a path":          {"resourceGroup": "a/providers/b", "storageAccount": "acct"},
		"a folder by the identity": {"mountWithWorkloadIdentityToken": "true", "clientID": "c", "storageAccount": "acct", "folderName": "a",
			"createFolderIfNotExist": "true", "storageEndpointSuffix": "example.org"},
	} {
		r := &recorder{}
		err := inline(t, tenantNode(r, good, false), attributes)
		if status.Code(err) != codes.InvalidArgument || len(r.mounts) != 0 {
			t.Errorf("%s: %v, mounts %v", what, err, r.mounts)
		}
	}
	r := &recorder{}
	if err := inline(t, tenantNode(r, good, false), map[string]string{"mountOptions": "ro,dir_mode=0700,vers=3.1.1,actimeo=30"}); len(r.mounts) != 1 {
		t.Fatalf("an allowed volume is not mounted: %v", err)
	}
	for _, want := range []string{"ro", "dir_mode=0700", "vers=3.1.1", "actimeo=30", "nosuid", "nodev"} {
		if !slices.Contains(r.mounts[0].Options, want) {
			t.Errorf("options %v: want %s", r.mounts[0].Options, want)
		}
	}
}

// TestServersOfTenants checks that a server that a pod names gets no key that Azure gave to the node.
func TestServersOfTenants(t *testing.T) {
	for _, attributes := range []map[string]string{{"server": "example.org"}, {"storageEndpointSuffix": "example.org"}} {
		attributes["secretName"], attributes["storageAccount"] = "", "acct"
		r := &recorder{}
		if err := inline(t, tenantNode(r, nil, true), attributes); status.Code(err) != codes.InvalidArgument || len(r.mounts) != 0 {
			t.Errorf("%v: %v, mounts %v", attributes, err, r.mounts)
		}
	}
	r := &recorder{}
	_ = inline(t, tenantNode(r, nil, true), map[string]string{"secretName": "", "storageAccount": "acct"})
	if len(r.given) != 1 || r.given[0].Key != secret.New("key-of-azure") {
		t.Errorf("the server of Azure: %d mounts", len(r.given))
	}
}

// TestSecretsOfTenants checks the limits of Secrets: a name or key that is no name or key of an account reaches no mount program.
func TestSecretsOfTenants(t *testing.T) {
	for what, c := range map[string]struct {
		secret map[string]string
		want   []string // in the error
	}{
		"options in the name": {map[string]string{"azurestorageaccountname": "acct,sec=krb5,cruid=0", "azurestorageaccountkey": "k"},
			[]string{"azurestorageaccountname", "24 letters"}},
		"a path in the name": {map[string]string{"azurestorageaccountname": "a/../acct", "azurestorageaccountkey": "k"},
			[]string{"azurestorageaccountname"}},
		"a long key": {map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": strings.Repeat("k", 70_000)},
			[]string{"azurestorageaccountkey", "70000 bytes", "at most 512"}},
		"a long name": {map[string]string{"accountname": strings.Repeat("a", 70_000), "accountkey": "k"},
			[]string{"accountname", "70000 bytes"}},
		"a key with a newline": {map[string]string{"accountname": "acct", "accountkey": "k\nusername=root"}, []string{"accountkey"}},
		"a key with a NUL":     {map[string]string{"accountname": "acct", "accountkey": "k\x00k"}, []string{"accountkey"}},
	} {
		r := &recorder{}
		n := tenantNode(r, c.secret, false)
		err := inline(t, n, nil)
		_, staged := n.NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{
			VolumeId: "v", StagingTargetPath: filepath.Join(t.TempDir(), "s"), VolumeCapability: capability(), Secrets: c.secret,
			VolumeContext: map[string]string{"shareName": "share1"},
		})
		for _, err := range []error{err, staged} {
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "username=root") {
					t.Errorf("%s: %.300v: want %s", what, err, want)
				}
			}
		}
		if len(r.mounts) != 0 {
			t.Errorf("%s: mounts %v", what, r.mounts)
		}
	}
}

// TestLongKeyEndsInTime checks that a key that does not fit into a pipe ends the mount with its context.
func TestLongKeyEndsInTime(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	m := share.Mount{Source: "//acct.file.core.windows.net/share1", Type: "cifs"}
	err := node.Kernel{}.Mount(ctx, m, t.TempDir(), file.Credentials{Account: "acct", Key: secret.New(strings.Repeat("k", 70_000))})
	if err == nil || !strings.Contains(err.Error(), "70000 bytes") || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.300v", err)
	}
}

// TestHelperWithChild checks that a child of azfilesauthmanager that keeps its output open does not keep the volume.
func TestHelperWithChild(t *testing.T) {
	program := filepath.Join(t.TempDir(), "helper")
	pid := program + ".pid"
	script := "#!/bin/sh\nsleep 60 &\necho $! > " + pid + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killFile(t, pid) })
	began := time.Now()
	_ = node.Helper{Program: program, Dir: t.TempDir()}.Get(t.Context(), node.Ticket{Host: "acct.file.core.windows.net"})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the helper took %s", took)
	}
	err := node.Helper{Program: program}.Get(t.Context(), node.Ticket{Host: "h", ClientID: "--token-file"})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an option as clientID: %v", err)
	}
}

// FuzzPublish publishes inline volumes with any attributes and Secret. Whatever is mounted has options that tenants may choose, and
// names without separators.
func FuzzPublish(f *testing.F) {
	f.Add("ro", "a/b", "share1", "", "", "pvc", "acct", "key")
	f.Add("sec=krb5,cruid=0", "${pvc.metadata.name}", "${pv.metadata.name}", "h", "suffix", "../..", "acct,sec=krb5", "k\nx")
	f.Add("uid=1,,gid=2, ro", "${pvc.metadata.namespace}", "a", "::1", "core.windows.net", "a,b", "Acct1", strings.Repeat("k", 600))
	f.Fuzz(func(t *testing.T, options, folder, shareName, server, suffix, claim, account, key string) {
		r := &recorder{}
		n := tenantNode(r, map[string]string{"azurestorageaccountname": account, "azurestorageaccountkey": key}, false)
		_ = inline(t, n, map[string]string{"mountOptions": options, "folderName": folder, "shareName": shareName, "server": server,
			"storageEndpointSuffix": suffix, "csi.storage.k8s.io/pvc/name": claim, "csi.storage.k8s.io/pv/name": claim})
		checkMounts(t, r)
	})
}

// FuzzStage stages volumes with any id, attributes, options and Secret.
func FuzzStage(f *testing.F) {
	f.Add(id, "vers=3.0", "a", "acct", "key", "smb", "1000")
	f.Add("rg#a,b#share#x#y", "nfsvers=4", "${pv.metadata.name}", "acct,sec=krb5", strings.Repeat("k", 600), "nfs", "1,suid")
	f.Add("#my-secret#share/../x#name#ns", "ro\nsuid", "", "a", "k", "", "")
	f.Fuzz(func(t *testing.T, volume, options, folder, account, key, protocol, group string) {
		r := &recorder{}
		c := capability(options)
		c.GetMount().VolumeMountGroup = group
		_, _ = tenantNode(r, nil, false).NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{
			VolumeId: volume, StagingTargetPath: filepath.Join(t.TempDir(), "s"), VolumeCapability: c,
			Secrets:       map[string]string{"azurestorageaccountname": account, "azurestorageaccountkey": key},
			VolumeContext: map[string]string{"folderName": folder, "protocol": protocol, "csi.storage.k8s.io/pv/name": account},
		})
		for _, m := range r.mounts {
			checkSource(t, m)
		}
	})
}

func checkSource(t *testing.T, m share.Mount) {
	t.Helper()
	if strings.ContainsAny(m.Source, ",\n\x00\\") || strings.Contains(m.Source+"/", "/../") {
		t.Errorf("source %q", m.Source)
	}
	for _, option := range m.Options {
		if strings.ContainsAny(option, ",\n\x00") {
			t.Errorf("option %q", option)
		}
	}
}

func checkMounts(t *testing.T, r *recorder) {
	t.Helper()
	for i, m := range r.mounts {
		checkSource(t, m)
		for _, option := range m.Options {
			name, _, _ := strings.Cut(option, "=")
			if slices.Contains([]string{"sec", "cruid", "suid", "dev", "credentials", "bind", "remount", "user", "username", "ip"}, name) {
				t.Errorf("options %v", m.Options)
			}
		}
		if c := r.given[i]; strings.Contains(c.Account, ",") || len(c.Key.Reveal()) > 512 {
			t.Errorf("account %q, a key of %d bytes", c.Account, len(c.Key.Reveal()))
		}
	}
}

// killFile ends the process that a file names.
func killFile(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Error(err)
	}
}
