package cluster

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const examples = "../../docs/example-manifests/cluster"

// example is the definition of example files.
func example(t testing.TB, names ...string) definition.Definition {
	t.Helper()
	var layers []definition.Layer
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(examples, name))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, definition.Layer{Name: name, Text: text})
	}
	d, err := definition.Load(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func plan(t testing.TB, d definition.Definition) Plan {
	t.Helper()
	p, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGolden shows the whole template of each example.
func TestGolden(t *testing.T) {
	for name, files := range planExamples() {
		got := emit.JSON(plan(t, example(t, files...)).Template(emit.Options{}).Main)
		again := emit.JSON(plan(t, example(t, files...)).Template(emit.Options{}).Main)
		if !bytes.Equal(got, again) {
			t.Errorf("%s: two runs differ: %s", name, cmp.Diff(string(got), string(again)))
		}
		golden(t, name+".json", got)
	}
}

// golden compares a text with a golden file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), write it anew with -update:\n%s", name, diff)
	}
}

// TestFormats shows the files of each further format, as one archive, and that two runs give the same bytes.
func TestFormats(t *testing.T) {
	for name, files := range planExamples() {
		for _, format := range []Format{Bicep, Terraform} {
			got, again := archive(plan(t, example(t, files...)), format), archive(plan(t, example(t, files...)), format)
			if !bytes.Equal(got, again) {
				t.Errorf("%s %s: two runs differ: %s", name, format, cmp.Diff(string(got), string(again)))
			}
			golden(t, name+"."+string(format)+".txtar", got)
		}
	}
}

// customData is the boot file in a template, which the golden files of the template show already.
var customData = regexp.MustCompile(`(customData\s*[:=] )(['"])[A-Za-z0-9+/=]{40,}['"]`)

// archive are the files of a format without boot files, which have tests of their own.
func archive(p Plan, f Format) []byte {
	all := &txtar.Archive{}
	files := p.Files(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "SHA256SUMS" && !strings.HasPrefix(name, "cloud-init/") && !strings.HasPrefix(name, "ignition/") {
			all.Files = append(all.Files, txtar.File{Name: name, Data: customData.ReplaceAll(files[name], []byte("${1}${2}...${2}"))})
		}
	}
	return txtar.Format(all)
}

// TestPortal checks that the portal asks for each secret, and for nothing that the template does not take.
func TestPortal(t *testing.T) {
	p := plan(t, example(t, "ha.yaml"))
	text := p.Files(ARM)["createUiDefinition.json"]
	golden(t, "ha.createUiDefinition.json", text)
	var ui struct {
		Parameters struct {
			Steps []struct {
				Name     string
				Elements []struct{ Name, Type string }
			}
			Outputs map[string]string
		}
	}
	if err := json.Unmarshal(text, &ui); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, step := range ui.Parameters.Steps {
		for _, e := range step.Elements {
			asked["steps('"+step.Name+"')."+e.Name] = true
		}
	}
	declared := p.Template(emit.Options{}).Main["parameters"].(map[string]any)
	for name := range declared {
		if _, given := ui.Parameters.Outputs[name]; given == (name == emit.DefinitionParameter) {
			t.Errorf("parameter %s: given is %v", name, given)
		}
	}
	for name, expression := range ui.Parameters.Outputs {
		if declared[name] == nil {
			t.Errorf("the template has no parameter %s", name)
		}
		for _, element := range regexp.MustCompile(`steps\('\w+'\)\.\w+`).FindAllString(expression, -1) {
			if !asked[element] {
				t.Errorf("%s: there is no element %s", name, element)
			}
		}
	}
}

// pem is a key or a certificate, and not the pattern for one in a boot file.
var pem = regexp.MustCompile(`-----BEGIN [A-Z ]+-----\s+[A-Za-z0-9+/]{20}`)

// TestSecretsInFormats checks scenario 5 for each format: no file has a key. Terraform gets secrets by variables that it
// keeps out of plans and states, and uses them only in write-only bodies.
func TestSecretsInFormats(t *testing.T) {
	for _, f := range Formats() {
		for name, text := range plan(t, example(t, "ha.yaml")).Files(f) {
			if pem.Match(text) {
				t.Errorf("%s: %s has a key", f, name)
			}
			variables := regexp.MustCompile(`(?m)^variable "`).FindAll(text, -1)
			if kept := bytes.Count(text, []byte("\n  sensitive   = true\n  ephemeral   = true\n}")); kept != len(variables) {
				t.Errorf("%s: %s has %d variables, and keeps %d secret", f, name, len(variables), kept)
			}
			written := regexp.MustCompile(`sensitive_body = \{\n    properties = \{\n      value = var\.`).FindAll(text, -1)
			if uses := bytes.Count(text, []byte("var.")); uses != len(written) {
				t.Errorf("%s: %s uses %d secrets, %d of them in write-only bodies", f, name, uses, len(written))
			}
		}
	}
}

// order is the nested deployments of a template, each with what it waits for.
func order(t *testing.T, p Plan) []string {
	t.Helper()
	var template struct {
		Resources []struct {
			Name      string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(emit.JSON(p.Template(emit.Options{}).Main), &template); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range template.Resources {
		var after []string
		for _, id := range r.DependsOn {
			parts := strings.Split(id, "'")
			after = append(after, parts[len(parts)-2])
		}
		all = append(all, r.Name+" <- "+strings.Join(after, " "))
	}
	return all
}

func TestOrderOfUnits(t *testing.T) {
	got := order(t, plan(t, example(t, "ha.yaml")))
	want := []string{
		"prod-identity <- ", "prod-storage <- ", "prod-vault <- ", "prod-access <- prod-identity prod-storage prod-vault",
		"prod-outbound <- ", "prod-network <- prod-outbound", "prod-api <- prod-network",
		"prod-cp-0 <- prod-access prod-api prod-identity prod-network prod-vault",
		"prod-cp-1 <- prod-access prod-api prod-cp-0 prod-identity prod-network prod-vault",
		"prod-cp-2 <- prod-access prod-api prod-cp-1 prod-identity prod-network prod-vault",
		"prod-pool-general <- prod-access prod-cp-2 prod-identity prod-network",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestExistingResources checks that a unit disappears when its resource exists, and that the port is then its id.
func TestExistingResources(t *testing.T) {
	d := example(t, "ha.yaml")
	const other = "/subscriptions/00000000-0000-0000-0000-000000000002/resourceGroups/shared/providers/"
	s := &d.Cluster.Spec
	s.Network.Subnets.ControlPlane.ID = other + "Microsoft.Network/virtualNetworks/hub/subnets/cp"
	s.Network.Subnets.Nodes.ID = other + "Microsoft.Network/virtualNetworks/hub/subnets/nodes"
	s.Network.RouteTableID = other + "Microsoft.Network/routeTables/pods"
	s.Network.Outbound.Type = "UserDefinedRouting"
	s.Identity.ControlPlane.ID = other + "Microsoft.ManagedIdentity/userAssignedIdentities/cp"
	s.Identity.Nodes.ID = other + "Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
	s.KeyVault.ID = other + "Microsoft.KeyVault/vaults/secrets"
	s.Storage.ID = other + "Microsoft.Storage/storageAccounts/state"
	p := plan(t, d)
	template := p.Template(emit.Options{})
	for _, name := range []string{"identity", "network", "outbound"} {
		if _, has := template.Units[name]; has {
			t.Errorf("the unit %s makes what exists", name)
		}
	}
	text := string(emit.JSON(template.Main))
	for _, want := range []string{
		`"id": "` + s.Network.Subnets.ControlPlane.ID + `"`,
		`"` + s.Identity.Nodes.ID + `": {}`,
		`"resourceGroup": "shared"`, `"subscriptionId": "00000000-0000-0000-0000-000000000002"`,
		`"principalId": "[reference('` + s.Identity.ControlPlane.ID + `', '2024-11-30').principalId]"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the template has no %s", want)
		}
	}
	for unit, body := range template.Units {
		if strings.HasPrefix(unit, "access") && strings.Contains(string(emit.JSON(body)), "virtualNetworks/hub/subnets") {
			t.Errorf("%s: the role is at a subnet, want the virtual network", unit)
		}
	}
}

func TestExtensionsAndPatches(t *testing.T) {
	d := example(t, "ha.yaml", "team-b.yaml")
	d.Extensions[0].Spec.Resources[0]["properties"] = map[string]any{"subnet": map[string]any{"id": "${subnet.dd}"}}
	_, err := New(d)
	want := `Extension team-b: spec.resources[0].properties: "${subnet.dd}": there is no port "subnet.dd": want one of api, identity.control-plane, ` +
		`identity.nodes, key-vault, pool.general, storage, subnet.control-plane, subnet.db, subnet.general, subnet.nodes, virtual-network`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	d = example(t, "ha.yaml", "team-b.yaml")
	d.Patches[0].Spec.Target.Unit = "pool-dd"
	if _, err := New(d); err == nil || !strings.Contains(err.Error(),
		`TemplatePatch team-b-hostname: spec.target: no resource has unit "pool-dd"`) {
		t.Errorf("got %v", err)
	}
	d = example(t, "ha.yaml", "team-b.yaml")
	d.Patches[0].Spec.Merge["tags"] = map[string]any{"a": strings.Repeat("x", 300)}
	if _, err := New(d); err == nil || !strings.Contains(err.Error(), "tag a: has 300 characters in its value, want at most 256") {
		t.Errorf("got %v", err)
	}
}

// TestTooLarge checks scenario 4: what Azure would refuse is found before it is sent.
func TestTooLarge(t *testing.T) {
	d := example(t, "ha.yaml")
	for i := range 101 {
		d.Extensions = append(d.Extensions, definition.Extension{Metadata: definition.Metadata{Name: "e" + strings.Repeat("x", i)},
			Spec: definition.ExtensionSpec{
				Resources: []map[string]any{{"type": "Microsoft.Network/routeTables", "apiVersion": "2024-05-01",
					"name": strings.Repeat("r", i+1)}},
			}})
	}
	if _, err := New(d); err == nil || !strings.Contains(err.Error(), "characters in its name, want at most 64") ||
		!strings.Contains(err.Error(), "is not valid: want 1 to 80 letters") {
		t.Errorf("got %v", err)
	}
}

// TestLargeCharts checks that a boot file which is too large is refused. The error names the manifests that make it too
// large. A chart that the first member does not apply takes no room in the boot file.
func TestLargeCharts(t *testing.T) {
	d := example(t, "dev.yaml")
	d.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "web"}}}
	r := rand.New(rand.NewPCG(1, 2)) // what is random cannot be compressed
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: ")
	for range 20000 {
		fmt.Fprintf(&text, "%x", r.Uint64())
	}
	d.Rendered = []definition.Rendered{{Extension: "web", Release: "shop", AtBoot: true,
		Manifests: []definition.Packed{definition.Packed(text.String())}}}
	_, err := New(d)
	if err == nil || !strings.Contains(err.Error(), "characters as Azure takes it, compressed and in base64, want at most 87380: manif") ||
		!strings.Contains(err.Error(), ", web-000 2") || !strings.Contains(err.Error(), "set atBoot: false at large charts") {
		t.Errorf("got %.400v", err)
	}
	d.Rendered[0].AtBoot = false
	p, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Files(ARM)["template.json"]); n > 500<<10 {
		t.Errorf("the template has %d bytes", n)
	}
}

// large is a definition with 12 pools and 1,008 nodes.
func large(t testing.TB) definition.Definition {
	d := example(t, "ha.yaml")
	general := d.Pools[0]
	d.Pools = nil
	for i := range 12 {
		general.Metadata.Name, general.Spec.Replicas = "pool"+string(rune('a'+i)), 84
		d.Pools = append(d.Pools, general)
	}
	return d
}

// TestLarge checks scenario 52: a cluster of 12 pools and 1,008 nodes is far below the limits of Azure, in one template.
func TestLarge(t *testing.T) {
	p := plan(t, large(t))
	if n := len(p.Files(ARM)["template.json"]); n > 2<<20 {
		t.Errorf("the template has %d bytes, want at most half of Azure's 4 MiB", n)
	}
	if n := len(p.Template(emit.Options{}).Main["resources"].([]any)); n != 22 {
		t.Errorf("%d nested deployments, want 10 and one for each of 12 pools", n)
	}
}

// TestClouds checks scenario 50: what is generated for another cloud names no host of the public one.
func TestClouds(t *testing.T) {
	for cloud, suffix := range map[string]string{"AzureUSGovernmentCloud": "usgovcloudapi.net", "AzureChinaCloud": "chinacloudapi.cn"} {
		d := example(t, "ha.yaml")
		d.Cluster.Spec.Azure.Cloud = cloud
		p := plan(t, d)
		for _, f := range Formats() {
			files := p.Files(f)
			if !bytes.Contains(files["cloud-init/control-plane.yaml"], []byte(suffix)) {
				t.Errorf("%s: the boot files have no host of the cloud", cloud)
			}
			for name, text := range files {
				for _, host := range []string{"windows.net", "vault.azure.net", "cloudapp.azure.com", "login.microsoftonline.com"} {
					if bytes.Contains(text, []byte(host)) {
						t.Errorf("%s: %s names a host of the public cloud: %s", cloud, name, host)
					}
				}
			}
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	d := large(b)
	for b.Loop() {
		plan(b, d).Template(emit.Options{})
	}
}
