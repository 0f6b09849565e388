package cloudconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentNamed(t *testing.T) {
	for name, want := range map[string]string{
		"": PublicCloud, "AzurePublicCloud": PublicCloud, "azurecloud": PublicCloud,
		"AZURECHINACLOUD": ChinaCloud, "AzureUSGovernment": USGovernmentCloud, "azureUSGovernmentCloud": USGovernmentCloud,
	} {
		if env, known := EnvironmentNamed(name); env.Name != want || !known || env.check() != nil {
			t.Errorf("%q: %+v", name, env)
		}
	}
	if env, _ := EnvironmentNamed(""); env.Scope() != "https://management.core.windows.net//.default" {
		t.Error(env.Scope())
	}
	for _, name := range []string{"AzureStackCloud", "Mine"} {
		if env, known := EnvironmentNamed(name); known {
			t.Errorf("%q: %+v", name, env)
		}
	}
}

const ownCloud = `[
  {"name":"Other","resourceManager":"https://other","authentication":{"loginEndpoint":"https://login.other/","audiences":["https://aud.other"]}},
  {"name":"AzureCloud","resourceManager":"https://127.0.0.1:18443/","authentication":{"loginEndpoint":"https://127.0.0.1:18443/","audiences":["https://127.0.0.1:18443","x"]},
   "suffixes":{"acrLoginServer":"registry.local","storage":"storage.local"}}]`

func TestEnvironmentFromMetadata(t *testing.T) {
	local := Environment{
		Name: PublicCloud, ResourceManager: "https://127.0.0.1:18443", Audience: "https://127.0.0.1:18443",
		Authority: "https://127.0.0.1:18443/", StorageSuffix: "storage.local", RegistrySuffix: "registry.local",
	}
	other := Environment{Name: "Other", ResourceManager: "https://other", Audience: "https://aud.other", Authority: "https://login.other/"}
	for _, test := range []struct {
		name, doc, cloud string
		want             Environment
		err              string
	}{
		{"by another of its names", ownCloud, "azurepubliccloud", local, ""},
		{"by its name", ownCloud, "AzureCloud", local, ""},
		{"the first", ownCloud, "", other, ""},
		{"unknown", ownCloud, "AzureChinaCloud", Environment{}, `no cloud "AzureChinaCloud", only Other, AzureCloud`},
		{"a stack that describes only itself", `[{"name":"AzureStack-User-1","authentication":{"audiences":["a"]}}]`, StackCloud,
			Environment{Name: "AzureStack-User-1", Audience: "a"}, ""},
		{"the rest as usual", `[{"name":"AzureChinaCloud","authentication":{"audiences":["a"]}}]`, "", Environment{
			Name: ChinaCloud, Audience: "a", Authority: "https://login.chinacloudapi.cn/", StorageSuffix: "core.chinacloudapi.cn",
			RegistrySuffix: "azurecr.cn",
		}, ""},
		{"no audiences", `[{"name":"A","authentication":{"audiences":[]}}]`, "", Environment{}, `cloud "A" has no audiences`},
		{"no clouds", `[]`, "", Environment{}, "the list of clouds is empty"},
		{"not a list", `{"value":[]}`, "", Environment{}, "want a list of clouds in JSON"},
		{"not JSON", `<html>`, "", Environment{}, "want a list of clouds in JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := EnvironmentFromMetadata([]byte(test.doc), test.cloud)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestEnvironmentOfAConfig(t *testing.T) {
	const stack = `{"name":"StackLand","resourceManagerEndpoint":"https://management.stack/","tokenAudience":"https://aud.stack","activeDirectoryEndpoint":"https://login.stack/","storageEndpointSuffix":"stack","galleryEndpoint":"x"}`
	config := func(cloud, endpoint string) Config {
		c := Default()
		c.Cloud, c.ResourceManagerEndpoint = cloud, endpoint
		return c
	}
	for _, test := range []struct {
		name           string
		config         Config
		metadata, file string
		want           Environment
		err            string
	}{
		{"public", config("", ""), "", "", environments()[0], ""},
		{"the file is for stacks only", config("AzureCloud", ""), "", stack, environments()[0], ""},
		{"described without an endpoint", config("X", "http://127.0.0.1:1/"),
			`[{"name":"x","authentication":{"audiences":["a"],"loginEndpoint":"http://l"}}]`, "",
			Environment{Name: "x", ResourceManager: "http://127.0.0.1:1", Audience: "a", Authority: "http://l"}, ""},
		{"stack by file", config(StackCloud, ""), "", stack,
			Environment{Name: "StackLand", ResourceManager: "https://management.stack", Audience: "https://aud.stack",
				Authority: "https://login.stack/", StorageSuffix: "stack"}, ""},
		{"stack: the file wins", config(StackCloud, "https://m"),
			`[{"name":"s","resourceManager":"https://m","authentication":{"audiences":["a"],"loginEndpoint":"https://l"}}]`, stack,
			Environment{Name: "StackLand", ResourceManager: "https://management.stack", Audience: "https://aud.stack",
				Authority: "https://login.stack/", StorageSuffix: "stack"}, ""},
		{"endpoint and audience only together", config(StackCloud, "https://m"),
			`[{"name":"s","authentication":{"audiences":["a"],"loginEndpoint":"https://l"}}]`, `{"tokenAudience":"b"}`,
			Environment{Name: "s", ResourceManager: "https://m", Audience: "a", Authority: "https://l"}, ""},
		{"nothing describes it", config("Mine", ""), "", "", Environment{}, `cloud "Mine": unknown`},
		{"stack file without an authority", config(StackCloud, ""), "", `{"resourceManagerEndpoint":"https://m","tokenAudience":"a"}`,
			Environment{Name: StackCloud, ResourceManager: "https://m", Audience: "a"}, `authority "": must be an address`},
		{"bad file", config(StackCloud, ""), "", `{`, Environment{}, "azure stack environment file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.config.Environment(orNil(test.metadata), orNil(test.file))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
	if !config("azurestackcloud", "").Stack() || config("", "").Stack() {
		t.Error("stack")
	}
	own := config(StackCloud, "https://m")
	if own.DisableAzureStackCloud = true; own.Stack() {
		t.Error("a stack in name only")
	}
}

func orNil(doc string) []byte {
	if doc == "" {
		return nil
	}
	return []byte(doc)
}
