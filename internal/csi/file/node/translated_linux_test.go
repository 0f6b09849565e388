package node_test

import (
	"errors"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"kaz/internal/azure/secret"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
)

// TestVolumesOfTheInTreeDriver checks that volumes mount as Kubernetes translates them. The kubelet sends the values of their Secret.
func TestVolumesOfTheInTreeDriver(t *testing.T) {
	w := newMachine(t, nil)
	translator := translation.New()
	persistent := func(name, secret, share, group string) *corev1.PersistentVolume {
		v, err := translator.TranslateInTreePVToCSI(klog.Background(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kubernetes.io/azure-file-resource-group": group}},
			Spec: corev1.PersistentVolumeSpec{
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: secret, ShareName: share}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	inline, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), &corev1.Volume{Name: "web-data", VolumeSource: corev1.VolumeSource{
		AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure-storage-account-acct-secret", ShareName: "share2"}}}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		what   string
		volume *corev1.PersistentVolume
		source string
	}{
		{"inline", inline, "//acct.file.core.windows.net/share2"},
		{"persistent", persistent("web-data", "azure-storage-account-acct-secret", "share1", ""), "//acct.file.core.windows.net/share1"},
		{"a name like a VHD file", persistent("a.vhd", "azure-storage-account-acct-secret", "share1", ""), "//acct.file.core.windows.net/share1"},
		{"a group", persistent("web", "azure-storage-account-acct-secret", "share1", "other"), "//acct.file.core.windows.net/share1"},
		{"a Secret with its own name", persistent("web", "my-key", "share1", ""), "//acct.file.core.windows.net/share1"},
		{"a folder", persistent("web", "my-key", "share1/folder", ""), "//acct.file.core.windows.net/share1/folder"},
	} {
		source := c.volume.Spec.CSI
		_, err := w.NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{
			VolumeId: source.VolumeHandle, StagingTargetPath: w.path("stage-" + string(rune('a'+i))), VolumeCapability: capability(),
			VolumeContext: source.VolumeAttributes,
			Secrets:       map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k"},
		})
		if err != nil {
			t.Errorf("%s, %s: %v", c.what, source.VolumeHandle, err)
			continue
		}
		if m := w.shares.mounts[len(w.shares.mounts)-1]; m.Source != c.source {
			t.Errorf("%s: %s, want %s", c.what, m.Source, c.source)
		}
	}
}

// TestUnneededAttributes checks that a node does not judge attributes of the controller, and still judges its own.
func TestUnneededAttributes(t *testing.T) {
	w := newMachine(t, nil)
	attributes := []string{"skuName", "Premium", "location", "West Europe", "accountQuota", "x", "shareAccessTier", "hot", "tags", "x",
		"provisionedIOPS", "many", "networkEndpointType", "none", "useDataPlaneAPI", "maybe", "rootSquashType", "x", "enableMultichannel", "x"}
	if err := w.stage(id, w.path("stage"), capability(), attributes...); err != nil {
		t.Error(err)
	}
	err := w.stage(id, w.path("other"), capability(), "protocol", "none")
	wantCode(t, "protocol none", err, codes.InvalidArgument)
}

// unreachable is a file service that creates no folder.
func unreachable(string, file.Credentials) (file.FileService, error) {
	return nil, errors.New("KeyBasedAuthenticationNotPermitted")
}

// TestFolderThatCannotBeCreated checks that a folder which cannot be created does not stop the mount: it may exist. If the mount
// fails, the error says both.
func TestFolderThatCannotBeCreated(t *testing.T) {
	w := newMachine(t, func(c *node.Config) { c.Files, c.Key = unreachable, nil })
	for i, protocol := range []string{"smb", "nfs"} {
		path := w.path("stage-" + protocol)
		w.secrets["apps/azure-storage-account-acct-secret"] = map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k"}
		if protocol == "nfs" {
			clear(w.secrets)
		}
		attributes := []string{"protocol", protocol, "folderName", "a/b", "createFolderIfNotExist", "true"}
		if err := w.stage(id, path, capability(), attributes...); err != nil || len(w.shares.mounts) != i+1 {
			t.Errorf("%s: %v, %d mounts", protocol, err, len(w.shares.mounts))
		}
	}
	w.secrets["apps/azure-storage-account-acct-secret"] = map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k"}
	w.shares.fail = &node.MountError{Program: "mount.cifs", Output: "mount error(2): No such file or directory", Cause: errors.New("exit status 32")}
	err := w.stage(id, w.path("none"), capability(), "folderName", "a/b", "createFolderIfNotExist", "true")
	wantCode(t, "no folder", err, codes.NotFound)
	if err == nil || !strings.Contains(err.Error(), "folder a/b cannot be created: KeyBasedAuthenticationNotPermitted") {
		t.Errorf("%v does not say why there is no folder", err)
	}
}

// TestSecretOfAnotherAccount checks that the key of another account is not used.
func TestSecretOfAnotherAccount(t *testing.T) {
	w := newMachine(t, nil)
	other := map[string]string{"azurestorageaccountname": "acct2", "azurestorageaccountkey": "k"}
	w.secrets["apps/mine"] = other
	if err := w.stage(id, w.path("stage"), capability(), "secretName", "mine"); err != nil || w.shares.given[0].Key != secret.New("key-of-azure") {
		t.Errorf("%v, a key of %s", err, w.shares.given[0].Account)
	}
	err := w.stage(id, w.path("only"), capability(), "secretName", "mine", "getAccountKeyFromSecret", "true")
	wantCode(t, "only the Secret", err, codes.FailedPrecondition)
	if err == nil || !strings.Contains(err.Error(), "acct2") || !strings.Contains(err.Error(), "apps/mine") {
		t.Errorf("%v names neither the Secret nor its account", err)
	}
	_, err = w.NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: w.path("request"), VolumeCapability: capability(), Secrets: other,
	})
	wantCode(t, "the Secret of the request", err, codes.InvalidArgument)
}
