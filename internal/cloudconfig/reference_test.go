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

// TestReference keeps docs/reference/azure-json.md in step with the table:
// go test ./internal/cloudconfig -run TestReference -update
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
	b.WriteString("\n## Clouds\n\n| `cloud` | Azure Resource Manager | token audience | authority | storage | registries |\n|---|---|---|---|---|---|\n")
	for _, e := range environments() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, e.ResourceManager, e.Audience, e.Authority, e.StorageSuffix, e.RegistrySuffix)
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
		text = "text, kept secret"
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

const introduction = `<!-- Written by go test ./internal/cloudconfig -run TestReference -update. Do not edit. -->

# azure.json

The cloud configuration: a file (` + "`--cloud-config`" + `, by custom ` + "`/etc/kubernetes/azure.json`" + `), or the Secret
` + "`kube-system/azure-cloud-provider`" + ` under the key ` + "`cloud-config`" + `, or both. It is read as the Azure components that
users run today read it. A key only has an effect in programs that have the feature it is about; the README says which
those are.

* JSON or YAML. Keys count in any case.
* A key that is not in this list is ignored and gives a warning, with the name that was perhaps meant.
* A key that has no effect any more is accepted and gives one warning.
* A key that stands there twice gives a warning. The last one counts; of spellings that differ only in case, the last in
  byte order (small letters come after capitals).
* ` + "`null`" + ` is the same as leaving the key out. For texts so is ` + "`\"\"`" + `, for numbers ` + "`0`" + `: the default counts.
* A number or a truth value is accepted where a text is wanted, not the other way round.
* No negative numbers, except where a line says otherwise.
* All problems are reported at once, each with key, value and what is allowed, and the program does not start.
* Secrets never appear in logs or messages.

Stricter than the components before: ` + "`subscriptionId`, `resourceGroup` and `location`" + ` must be there (unless only the
instance metadata service is asked); what a kind of credential needs must be there; a ` + "`cloud`, `vmType`, `loadBalancerSku`,\n`extendedLocationType`" + ` or ` + "`preConfiguredBackendPoolLoadBalancerTypes`" + ` that does not exist is an error and no longer means
something else; the name and type of an extended location go together.

The environment wins over the file: ` + "`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`, and `AZURE_FEDERATED_TOKEN_FILE`" + `,
which also switches on workload identity. ` + "`AZURE_ENVIRONMENT_FILEPATH`" + ` names the file that describes an Azure Stack.

Of several credentials the first counts: workload identity, managed identity, client secret, client certificate, managed
identity file.
`

const conclusion = `
AzureCloud is AzurePublicCloud, AzureUSGovernment is AzureUSGovernmentCloud. AzureStackCloud takes everything from
` + "`resourceManagerEndpoint`" + ` or from the file named by ` + "`AZURE_ENVIRONMENT_FILEPATH`" + `, and where both speak, from the file.
`
