package cluster_test

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"kaz/internal/azure/secret"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/cluster"
	"kaz/internal/testkit/kubeclient"
)

// TestSecretsOfTheDriver checks defect 19: a Secret that the driver creates can be found by its label, and gets the new key. One that
// exists gets the new key and keeps its labels and its type.
func TestSecretsOfTheDriver(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "theirs", Labels: map[string]string{"team": "a"}},
		Type:       "theirs.example/key", Data: map[string][]byte{"azurestorageaccountkey": []byte("old")},
	})
	c := cluster.Cluster{Client: kubeclient.Of(client), Driver: file.DefaultName}
	for _, key := range []string{"first", "second"} {
		for _, name := range []string{"ours", "theirs"} {
			if err := c.Put(t.Context(), "apps", name, file.Credentials{Account: "acct", Key: secret.New(key)}); err != nil {
				t.Fatal(err)
			}
			values, err := c.Secret(t.Context(), "apps", name)
			if got, ok, _ := file.ReadSecret(values); err != nil || !ok || got.Key.Reveal() != key {
				t.Errorf("%s: no %s key, %v", name, key, err)
			}
		}
	}
	labeled, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=file.csi.azure.com"})
	if err != nil || len(labeled.Items) != 1 || labeled.Items[0].Name != "ours" {
		t.Errorf("Secrets with the label: %v, %v, want ours", labeled, err)
	}
	theirs, err := client.CoreV1().Secrets("apps").Get(t.Context(), "theirs", metav1.GetOptions{})
	if err != nil || theirs.Labels["team"] != "a" || len(theirs.Labels) != 1 || theirs.Type != "theirs.example/key" {
		t.Errorf("the user's Secret: %+v, %v", theirs.ObjectMeta, err)
	}
	for _, a := range client.Actions() {
		if !slices.Contains([]string{"get", "create", "update", "list"}, a.GetVerb()) {
			t.Errorf("the verb %s, which the role does not have", a.GetVerb())
		}
	}
}

// TestVolumes checks that volumes of the in-tree driver have the id under which Kubernetes deletes them, and that a volume which a
// claim has is not released.
func TestVolumes(t *testing.T) {
	deleted := metav1.Now()
	of := func(name string, phase corev1.PersistentVolumePhase, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &deleted, Finalizers: []string{"kubernetes.io/pv-protection"}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: source, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"},
			},
			Status: corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	azureFile := corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{
		SecretName: "azure-storage-account-acct-secret", ShareName: "share1"}}
	named := of("old-2", corev1.VolumeReleased, corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{
		SecretName: "my-key", ShareName: "share2", SecretNamespace: new("keys")}})
	named.Annotations = map[string]string{"kubernetes.io/azure-file-resource-group": "other"}
	in := []*corev1.PersistentVolume{
		of("old-1", corev1.VolumeBound, azureFile), named,
		of("new", corev1.VolumeReleased, corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: file.DefaultName, VolumeHandle: "any", VolumeAttributes: map[string]string{"shareName": "share3"}}}),
		of("disk", corev1.VolumeBound, corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com"}}),
	}
	client := fake.NewClientset()
	for _, v := range in {
		if err := client.Tracker().Add(v); err != nil {
			t.Fatal(err)
		}
	}
	all, err := cluster.Cluster{Client: kubeclient.Of(client), Driver: file.DefaultName}.Volumes(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	translator := translation.New()
	for _, got := range all {
		v := in[slices.IndexFunc(in, func(v *corev1.PersistentVolume) bool { return v.Name == got.Name })]
		if v.Spec.AzureFile != nil {
			if v, err = translator.TranslateInTreePVToCSI(klog.Background(), v); err != nil {
				t.Fatal(err)
			}
		}
		if got.Handle != v.Spec.CSI.VolumeHandle || !maps.Equal(got.Attributes, v.Spec.CSI.VolumeAttributes) {
			t.Errorf("%s: %+v, Kubernetes has %+v", got.Name, got, v.Spec.CSI)
		}
		if got.Released != (v.Status.Phase == corev1.VolumeReleased) || got.ClaimNamespace != "shop" || got.ClaimName != "data" {
			t.Errorf("%+v", got)
		}
	}
}

// TestSecretsOfOthers checks that a Secret keeps what the driver does not write, that an immutable Secret stays, and that the key of
// another account is not replaced.
func TestSecretsOfOthers(t *testing.T) {
	object := func(name string, immutable bool, values map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name}, Immutable: &immutable, Data: map[string][]byte{}}
		for key, value := range values {
			s.Data[key] = []byte(value)
		}
		return s
	}
	type values = map[string]string
	client := fake.NewClientset(
		object("theirs", false, values{"password": "p"}),
		object("frozen", true, values{"azurestorageaccountname": "acct", "azurestorageaccountkey": "old"}),
		object("frozen-empty", true, values{"password": "p"}),
		object("other", false, values{"accountname": "acct2", "accountkey": "k2"}),
	)
	c := cluster.Cluster{Client: kubeclient.Of(client), Driver: file.DefaultName}
	for name, want := range map[string]struct {
		code   codes.Code
		values values
	}{
		"theirs":       {codes.OK, values{"password": "p", "azurestorageaccountname": "acct", "azurestorageaccountkey": "new"}},
		"frozen":       {codes.OK, values{"azurestorageaccountname": "acct", "azurestorageaccountkey": "old"}},
		"frozen-empty": {codes.FailedPrecondition, values{"password": "p"}},
		"other":        {codes.FailedPrecondition, values{"accountname": "acct2", "accountkey": "k2"}},
		"none":         {codes.OK, values{"azurestorageaccountname": "acct", "azurestorageaccountkey": "new"}},
	} {
		checked := c.Check(t.Context(), "apps", name, "acct")
		put := c.Put(t.Context(), "apps", name, file.Credentials{Account: "acct", Key: secret.New("new")})
		if status.Code(checked) != want.code || status.Code(put) != want.code {
			t.Errorf("%s: %v and %v, want %s", name, checked, put, want.code)
		}
		if got, err := c.Secret(t.Context(), "apps", name); err != nil || !maps.Equal(got, want.values) {
			t.Errorf("%s: %d values, %v", name, len(got), err)
		}
	}
}
