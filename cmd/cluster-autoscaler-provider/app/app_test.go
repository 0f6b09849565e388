package app

import (
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/cluster-autoscaler-provider.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/cluster-autoscaler-provider.md", Name: "flags",
		Hint: "go test ./cmd/cluster-autoscaler-provider/app -run TestReference -update",
	}.Check(t, page.Flags(sets["node groups"], sets["server"], sets["azure"], sets["kubernetes"]), *update)
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func execute(values map[string]string, args ...string) error {
	command := Command(environment(values))
	command.SetArgs(args)
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	command.SilenceErrors = true
	return command.Execute()
}

// TestBadFlags checks that all mistakes are named at once, before anything is opened. It has the scenario S2, and S37 as
// far as flags go.
func TestBadFlags(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(broken, []byte(`{"cloud":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"":                          {"neither --nodes nor --node-group-auto-discovery is given"},
		"--nodes=5:3:a --nodes=1:3": {`--nodes "5:3:a": the greatest size 3 is below`, `--nodes "1:3": must be MIN:MAX:NAME`},
		"--nodes=1:3:a --node-group-auto-discovery=asg:x=y": {`--node-group-auto-discovery "asg:x=y": must be label:`},
		"--nodes=1:3:a --address=0.0.0.0:8086":              {"other machines can reach it, so --cert"},
		"--nodes=1:3:a --address=8086":                      {`--address "8086": must be HOST:PORT`},
		"--nodes=1:3:a --cert=c":                            {"all three are needed, or none"},
		"--nodes=1:3:a --refresh=1ms":                       {"--refresh 1ms: must be 1s or more"},
		"check --nodes=1:3:a --cloud-config=/nowhere":       {"--cloud-config: open /nowhere", "such as ARM_SUBSCRIPTION_ID"},
		"--nodes=1:3:a --nodes=1:4:A":                       {`--nodes "1:4:A": another one gives a the limits 1 to 3`},
		"--nodes=1:3:a --prices=/nowhere":                   {"--prices: open /nowhere", "want an http(s) URL"},
		"check --nodes=1:3:a --cloud-config=" + broken:      {"cloud configuration " + broken, "not JSON: line 1, column 9"},
		"check":                      {"neither --nodes nor"},
		"check --nodes=1:2:a -o xml": {`--output "xml": must be text, json or yaml`},
		"--nodes=1:3:a more":         {"no arguments are allowed"},
	} {
		err := execute(nil, strings.Fields(args)...)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

// TestReadConfig checks the keys and variables of the in-tree provider.
func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "azure.json")
	text := `{"cloud":"AzurePublicCloud","subscriptionId":"s","resourceGroup":"g","tenantId":"t","aadClientId":"c","aadClientSecret":"x",
		"location":"westeurope","enableForceDelete":true,"enableVmssFlexNodes":true,"strictCacheUpdates":true,"vmType":"vmss"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	config, extra, err := readConfig(path, environment(map[string]string{
		"ARM_SUBSCRIPTION_ID": "s2", "ARM_TENANT_ID": "t1", "AZURE_TENANT_ID": "t2", "ARM_RESOURCE_GROUP": "",
	}), log)
	if err != nil || config.SubscriptionID != "s2" || config.TenantID != "t2" || config.ResourceGroup != "g" || !extra.EnableForceDelete {
		t.Errorf("%+v, %+v, %v", config, extra, err)
	}
	config, _, err = readConfig("/nowhere", environment(map[string]string{
		"ARM_SUBSCRIPTION_ID": "s", "ARM_RESOURCE_GROUP": "g", "LOCATION": "westeurope", "ARM_USE_MANAGED_IDENTITY_EXTENSION": "true",
	}), log)
	if err != nil || !config.UseManagedIdentityExtension {
		t.Errorf("without a file: %v", err)
	}
	_, _, err = readConfig(path, environment(map[string]string{"ARM_USE_MANAGED_IDENTITY_EXTENSION": "perhaps"}), log)
	if err == nil || !strings.Contains(err.Error(), `$ARM_USE_MANAGED_IDENTITY_EXTENSION "perhaps": must be true or false`) {
		t.Error(err)
	}
}
