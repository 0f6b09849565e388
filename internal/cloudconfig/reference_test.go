package cloudconfig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the pages and golden files anew")

const referencePage = "../../docs/reference/azure-json.md"

// TestReference compares docs/reference/azure-json.md with the table. Update it with: go test
// ./internal/cloudconfig -run TestReference -update
func TestReference(t *testing.T) {
	want := reference()
	if *update {
		if err := os.MkdirAll(filepath.Dir(referencePage), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is out of date; run: go test ./internal/cloudconfig -run TestReference -update\n%s", diff)
	}
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range allKeys() {
		folded := strings.ToLower(k.name)
		if seen[folded] {
			t.Errorf("%s stands in the table twice", k.name)
		}
		seen[folded] = true
		if (k.ref == nil) != (k.inert != "") || (k.doc == "") != (k.inert != "") {
			t.Errorf("%s: a key has a meaning, or a reason for having none", k.name)
		}
		if k.initial != "" && len(k.allowed) > 0 && !slices.Contains(k.allowed, k.initial) {
			t.Errorf("%s: default %s is not allowed", k.name, k.initial)
		}
	}
	for _, k := range allKeys() {
		c := unread()
		r := &reading{config: c}
		if k.ref == nil {
			continue
		}
		r.readKey(k, nil)
		if diff := cmp.Diff(c, r.config); diff != "" || len(r.problems) > 0 {
			t.Errorf("%s: null changes something: %s%v", k.name, diff, r.problems)
		}
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | holds | default | meaning |\n|---|---|---|---|\n", s.title)
		var inert []key
		for _, k := range s.keys {
			if k.inert != "" {
				inert = append(inert, k)
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, holds(k), initial(k), k.doc)
		}
		for _, k := range inert {
			fmt.Fprintf(&b, "| `%s` | anything | | No effect, gives a warning: %s. |\n", k.name, k.inert)
		}
	}
	b.WriteString("\n## Clouds\n\n| `cloud` | Azure Resource Manager | token audience | authority | storage | registries " +
		"|\n|---|---|---|---|---|---|\n")
	for _, e := range environments() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, e.ResourceManager, e.Audience, e.Authority, e.StorageSuffix,
			e.RegistrySuffix)
	}
	b.WriteString(conclusion)
	return b.String()
}

func holds(k key) string {
	if len(k.allowed) > 0 {
		text := "`" + strings.Join(k.allowed, "`, `") + "`"
		if k.exact {
			text += ", spelled so"
		}
		return text
	}
	text := k.kind()
	if k.secret() {
		text = "text (secret)"
	}
	if k.min > 0 {
		text += fmt.Sprintf(" from %v to %v", k.min, k.max)
	}
	return text
}

func initial(k key) string {
	if k.shown != "" {
		return k.shown
	}
	if k.initial == "" {
		return ""
	}
	return "`" + k.initial + "`"
}

var introduction = strings.ReplaceAll(`<!-- Written by go test ./internal/cloudconfig -run TestReference -update. Do not edit. -->

# azure.json

azure.json is the cloud configuration. It comes from a file ('--cloud-config', usually '/etc/kubernetes/azure.json'), from
the key 'cloud-config' of the Secret 'kube-system/azure-cloud-provider', or from both. Existing files of the Azure
components work unchanged. A key has an effect only in the programs that have its feature; the README lists the programs.

* The format is JSON or YAML. The case of keys does not matter.
* An unknown key is ignored with a warning, which suggests the nearest known key.
* A key without effect is accepted with a warning.
* A key that is set twice gives a warning. The last value is used; of spellings that differ only in case, the last in
  byte order (small letters come after capitals).
* 'null' means that the key is not set. So does '""' for a text and '0' for a number: the default applies.
* A number or a boolean is accepted where a text is wanted, but not the reverse.
* Numbers must not be negative, unless the table says otherwise.
* A program reports all problems at once, each with key, value and what is allowed, and does not start.
* Secrets never appear in logs or messages.

Some rules are stricter than in earlier components:

* 'subscriptionId', 'resourceGroup' and 'location' are required, unless only the instance metadata service is used.
* The keys that a kind of credential needs are required.
* Unknown values of 'cloud', 'vmType', 'loadBalancerSku', 'extendedLocationType' and
  'preConfiguredBackendPoolLoadBalancerTypes' are errors.
* The name and the type of an extended location require each other.

Environment variables override the file: 'AZURE_TENANT_ID', 'AZURE_CLIENT_ID', 'AZURE_CLIENT_SECRET', and
'AZURE_FEDERATED_TOKEN_FILE', which also enables workload identity. 'AZURE_ENVIRONMENT_FILEPATH' names the file that
describes an Azure Stack.

If several credentials are set, the first of this list is used: workload identity, managed identity, client secret, client
certificate, managed identity file.
`, "'", "`")

var conclusion = strings.ReplaceAll(`
AzureCloud is an alias of AzurePublicCloud, AzureUSGovernment of AzureUSGovernmentCloud. AzureStackCloud gets everything
from 'resourceManagerEndpoint' or from the file that 'AZURE_ENVIRONMENT_FILEPATH' names. The file takes precedence.
`, "'", "`")
