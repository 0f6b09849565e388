package app

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/cloudconfig"
)

// azureJSON returns a valid configuration with additional keys.
func azureJSON(t *testing.T, own object) []byte {
	t.Helper()
	all := object{
		"tenantId": "t", "subscriptionId": "s", "resourceGroup": "RG1", "location": "eastus",
		"aadClientId": "c", "aadClientSecret": "from-the-file", "vnetName": "v",
	}
	maps.Copy(all, own)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func secretOf(name string, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cloudconfig.SecretNamespace, Name: name},
		Data:       map[string][]byte{cloudconfig.SecretKey: data},
	}
}

// TestSource checks whether the file, the Secret or both are used.
func TestSource(t *testing.T) {
	inSecret := func(own object) *corev1.Secret {
		return secretOf(cloudconfig.SecretName, azureJSON(t, own))
	}
	fromSecret := object{"aadClientSecret": "from-the-secret", "vnetName": nil}
	for name, c := range map[string]struct {
		file      object // nil for no file
		secret    *corev1.Secret
		named     string // --cloud-config-secret-name
		reloading bool
		want      [2]string // aadClientSecret, vnetName
		refused   string
	}{
		"neither":                               {refused: "--cloud-config is missing"},
		"neither, and a Secret that lies about": {secret: inSecret(nil), refused: "--cloud-config is missing"},
		"a file":                                {file: object{}, want: [2]string{"from-the-file", "v"}},
		"a file, and a Secret that lies about":  {file: object{}, secret: inSecret(fromSecret), want: [2]string{"from-the-file", "v"}},
		"a Secret that is named": {secret: secretOf("mine", azureJSON(t, fromSecret)), named: "mine",
			want: [2]string{"from-the-secret", ""}},
		"a Secret of the usual name": {secret: inSecret(fromSecret), reloading: true, want: [2]string{"from-the-secret", ""}},
		"both": {file: object{}, secret: inSecret(fromSecret), named: cloudconfig.SecretName,
			want: [2]string{"from-the-secret", "v"}},
		"both, said in the file": {file: object{"cloudConfigType": "merge"}, secret: inSecret(fromSecret),
			named: cloudconfig.SecretName, want: [2]string{"from-the-secret", "v"}},
		"both, but the file wants itself": {file: object{"cloudConfigType": "file"}, secret: inSecret(fromSecret),
			named: cloudconfig.SecretName, want: [2]string{"from-the-file", "v"}},
		"the file wants the Secret": {file: object{"cloudConfigType": "secret"}, secret: inSecret(fromSecret),
			want: [2]string{"from-the-secret", ""}},
		"a Secret that is not there": {file: object{}, named: "none",
			refused: `secret kube-system/none: secrets "none" not found`},
		"a Secret without the key": {secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "mine"},
			Data: map[string][]byte{"other": nil}},
			named: "mine", refused: "no data in secret"},
		"no such type":      {file: object{"cloudConfigType": "foo"}, refused: "file, secret, merge"},
		"a Secret of words": {secret: secretOf("mine", []byte("{words")), named: "mine", refused: "secret kube-system/mine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source{
				cluster: "kubernetes", lookup: func(string) (string, bool) { return "", false }, reloading: c.reloading,
				secretName: c.named, secretNamespace: cloudconfig.SecretNamespace, secretKey: cloudconfig.SecretKey,
			}
			if c.file != nil {
				s.path = writeFile(t, azureJSON(t, c.file))
			}
			client := fake.NewClientset()
			if c.secret != nil {
				if err := client.Tracker().Add(c.secret); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.read(t.Context(), client)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "from-the-") {
					t.Errorf("%v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if values := [2]string{got.AADClientSecret.Reveal(), got.VnetName}; values != c.want || got.ResourceGroup != "rg1" {
				t.Errorf("%q in %s, want %q", values, got.ResourceGroup, c.want)
			}
		})
	}
}

// TestServed checks that SKU Basic is read as Standard, with the checks of Standard, and that
// unsupported settings are rejected.
func TestServed(t *testing.T) {
	read := func(own object) (cloudconfig.Config, error) {
		return source{cluster: "kubernetes"}.parse(azureJSON(t, own))
	}
	for _, sku := range []string{"basic", "Basic", "standard", ""} {
		c, err := read(object{"loadBalancerSku": sku})
		if err != nil || c.LoadBalancerSKU != cloudconfig.SKUStandard {
			t.Errorf("%q is %q, %v", sku, c.LoadBalancerSKU, err)
		}
	}
	for name, c := range map[string]struct {
		keys object
		says []string
	}{
		"several load balancers with the retired SKU": {object{"loadBalancerSku": "basic",
			"multipleStandardLoadBalancerConfigurations": []object{{"name": "kubernetes", "primaryVMSet": "a"}}},
			[]string{"loadBalancerBackendPoolConfigurationType", "must be nodeIP"}},
		"outbound rules with the retired SKU": {object{"loadBalancerSku": "basic", "disableOutboundSNAT": true},
			[]string{"disableOutboundSNAT", "standard"}},
		"pods in backend pools": {object{"loadBalancerSku": "service", "serviceGatewayEnabled": true,
			"loadBalancerBackendPoolConfigurationType": "podIP"},
			[]string{"loadBalancerSku: service", "loadBalancerBackendPoolConfigurationType: podIP",
				"allowed: nodeIPConfiguration or nodeIP"}},
	} {
		_, err := read(c.keys)
		for _, words := range c.says {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v does not say %q", name, err, words)
			}
		}
	}
}
