package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

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
			if err := c.Put(t.Context(), "apps", name, file.SecretOf(file.Credentials{Account: "acct", Key: key})); err != nil {
				t.Fatal(err)
			}
			values, err := c.Secret(t.Context(), "apps", name)
			if got, ok := file.ReadSecret(values); err != nil || !ok || got.Key != key {
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
