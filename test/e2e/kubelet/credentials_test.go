// Package kubelet tests what kaz ships for kubelets with the kubelet's own code.
package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
)

// TestCredentialProviders checks that the kubelet reads the configurations in deploy/kubelet, asks the acr-credential-provider for the
// images of all registries in Azure and for no others, and finds a login in its answer.
func TestCredentialProviders(t *testing.T) {
	dir := t.TempDir()
	program, calls, config := filepath.Join(dir, "program"), filepath.Join(dir, "calls"), filepath.Join(dir, "azure.json")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/acr-credential-provider")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Registries accept the login of a service principal as it is, so nothing is asked.
	write(t, config, `{"cloud":"AzurePublicCloud","tenantId":"t","aadClientId":"principal","aadClientSecret":"secret"}`)
	var providers []string
	paths := strings.NewReplacer("/etc/kubernetes/azure.json", config, `c:\k\azure.json`, config)
	for _, name := range []string{"", "-windows", "-service-accounts"} {
		providers = append(providers, register(t, dir, name, paths))
	}
	for image, isRegistry := range images() {
		if err := os.RemoveAll(calls); err != nil {
			t.Fatal(err)
		}
		logins, found := plugin.NewExternalCredentialProviderDockerKeyring("", "", "", "").Lookup(image)
		text, _ := os.ReadFile(calls) // there is none if no program was called
		asked := strings.Fields(string(text))
		slices.Sort(asked)
		var want []string
		if isRegistry {
			want = slices.Sorted(slices.Values(providers))
		}
		if !slices.Equal(asked, want) {
			t.Errorf("%s: asked were %v, want %v", image, asked, want)
		}
		if found != isRegistry || found && logins[0].Username != "principal" {
			t.Errorf("%s: there is a login %v, want %v", image, found, isRegistry)
		}
	}
}

// images are images, and whether they are in a registry in Azure.
func images() map[string]bool {
	all := map[string]bool{"docker.io/library/nginx": false, "example.azurecr.io.example.com/app": false, "geo.azurecr.io.evil.com/app": false}
	for _, domain := range []string{"azurecr.io", "azurecr.cn", "azurecr.de", "azurecr.us"} {
		all["example."+domain+"/team/app:1"] = true
		all["example.westeurope.geo."+domain+"/team/app:1"] = true
	}
	return all
}

// register registers the provider of a configuration that is shipped, under a name of its own, and returns the name.
func register(t *testing.T, dir, name string, edit *strings.Replacer) string {
	t.Helper()
	shipped := filepath.Join("..", "..", "..", "deploy", "kubelet", "credential-provider-config"+name+".yaml")
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	provider, bin := "provider"+name, filepath.Join(dir, "bin"+name)
	edited := edit.Replace(string(text))
	for _, program := range []string{"name: acr-credential-provider.exe\n", "name: acr-credential-provider\n"} {
		edited = strings.Replace(edited, program, "name: "+provider+"\n", 1)
	}
	write(t, filepath.Join(dir, provider+".yaml"), edited)
	write(t, filepath.Join(bin, provider), fmt.Sprintf("#!/bin/sh\necho %s >> %s\nexec %s \"$@\"\n", provider, filepath.Join(dir, "calls"),
		filepath.Join(dir, "program")))
	if err := plugin.RegisterCredentialProviderPlugins(filepath.Join(dir, provider+".yaml"), bin, nil, nil); err != nil {
		t.Fatalf("%s: %v", shipped, err)
	}
	return provider
}

func write(t *testing.T, file, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
