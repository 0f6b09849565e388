package apimodel

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
)

var update = flag.Bool("update", false, "write the golden files anew")

func options() Options {
	return Options{Subscription: "00000000-0000-0000-0000-000000000001", Tenant: "00000000-0000-0000-0000-0000000000aa", Version: "1.36.3"}
}

// TestImport checks scenario 53: it shows what becomes of models. A definition without problems gives a template.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d models: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			model := archive.Files[0].Data
			r, err := Import(model, options())
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{{Name: "model.json", Data: model},
				{Name: "definition.yaml", Data: r.Definition}, {Name: "dropped", Data: lines(r.Dropped)}, {Name: "problems", Data: lines(r.Problems)}}}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" && !*update {
				t.Errorf("(-want +got), write it anew with -update:\n%s", diff)
			}
			complete(t, model, r)
			if len(r.Problems) > 0 {
				return
			}
			d, err := definition.Load(definition.Layer{Name: "definition.yaml", Text: r.Definition})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cluster.New(d); err != nil {
				t.Error(err)
			}
		})
	}
}

func lines[T fmt.Stringer](all []T) []byte {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(one.String() + "\n")
	}
	return []byte(b.String())
}

// complete checks that each value of a model is in the definition or is dropped, and that no secret is in what is written.
func complete(t *testing.T, text []byte, r Result) {
	t.Helper()
	if written := string(r.Definition) + string(lines(r.Dropped)) + string(lines(r.Problems)); strings.Contains(written, "SECRET") {
		t.Errorf("a secret of the model is in what was written:\n%s", written)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	dropped := func(path string) bool {
		return slices.ContainsFunc(r.Dropped, func(d Dropped) bool {
			return d.Path == path || strings.HasPrefix(path, d.Path+".") || strings.HasPrefix(path, d.Path+"[")
		})
	}
	var walk func(string, any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				walk(join(path, key), item)
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case string:
			if v != "" && !dropped(path) && !strings.Contains(strings.ToLower(string(r.Definition)), strings.ToLower(shortest(v))) && !silent(path) {
				t.Errorf("%s: %q is neither in the definition nor dropped", path, v)
			}
		}
	}
	walk("", tree)
}

// shortest is the part of a text that the definition has.
func shortest(s string) string {
	first, _, _ := strings.Cut(s, ",")
	return first[strings.LastIndexByte(first, '/')+1:]
}

// silent are fields whose value decides what the definition has, in words of its own.
func silent(path string) bool {
	return slices.Contains([]string{"apiVersion", "properties.orchestratorProfile.orchestratorType",
		"properties.orchestratorProfile.kubernetesConfig.networkPlugin", "properties.orchestratorProfile.kubernetesConfig.dnsServiceIP"}, path) ||
		strings.HasSuffix(path, ".availabilityProfile") || strings.HasSuffix(path, ".storageProfile") || strings.HasSuffix(path, ".osType")
}

// TestRefused shows the errors of texts that are no models.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                        "cannot be read as JSON",
		`[]`:                      "cannot be read as JSON",
		`{} {}`:                   "text behind its JSON",
		`{"apiVersion": "v1"}`:    `apiVersion: "v1": want vlabs`,
		`{"apiVersion": "vlabs"}`: "properties: missing",
		`{"apiVersion": "vlabs", "properties": {"orchestratorProfile": {"orchestratorType": "DCOS"}}}`:                             `"DCOS": want Kubernetes`,
		`{"apiVersion": "vlabs", "properties": {}}`:                                                                                "properties.masterProfile: missing",
		`{"apiVersion": "vlabs", "properties": {"masterProfile": {}}}`:                                                             "want a name for the cluster, with --name",
		`{"apiVersion": "vlabs", "properties": {"masterProfile": {"dnsPrefix": "a"}}}`:                                             "want a region, with --location",
		`{"apiVersion": "vlabs", "location": "x", "properties": {"masterProfile": {"dnsPrefix": "a"}, "agentPoolProfiles": [{}]}}`: "properties.agentPoolProfiles[0].name: missing",
	} {
		if _, err := Import([]byte(text), options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// modelOf is a model with a region, further properties and a pool.
func modelOf(location, properties, pool string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "vlabs", %s "properties": {%s "orchestratorProfile": {"orchestratorVersion": "1.36.3",
		"kubernetesConfig": {"networkPlugin": "kubenet"}}, "masterProfile": {"count": 3, "dnsPrefix": "a", "vmSize": "Standard_D4s_v5"},
		"agentPoolProfiles": [{"name": "work", "count": 2, "vmSize": "Standard_D4s_v5"%s}], "linuxProfile": {"adminUsername": "azureuser",
		"ssh": {"publicKeys": [{"keyData": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL1r6Kf0Kk shop"}]}}}}`,
		location, properties, pool)
}

// TestCloud checks that the cloud follows from the region, and that a model that contradicts itself is refused.
func TestCloud(t *testing.T) {
	const stack = `"customCloudProfile": {"environment": {"name": "%s"}},`
	for _, test := range []struct{ location, option, properties, cloud, refused string }{
		{`"location": "chinanorth2",`, "", "", "AzureChinaCloud", ""},
		{`"location": "China North 2",`, "", "", "AzureChinaCloud", ""},
		{`"location": "usgovvirginia",`, "usgovvirginia", "", "AzureUSGovernmentCloud", ""},
		{``, "usdodeast", "", "AzureUSGovernmentCloud", ""},
		{`"location": "westeurope",`, "", "", "AzurePublicCloud", ""},
		{`"location": "chinanorth2",`, "", fmt.Sprintf(stack, "AzureChinaCloud"), "AzureChinaCloud", ""},
		{`"location": "chinanorth2",`, "westeurope", "", "", `location: "chinanorth2": --location is westeurope: want the same region in both`},
		{`"location": "chinanorth2",`, "", fmt.Sprintf(stack, "AzurePublicCloud"), "", `properties.customCloudProfile.environment.name: "AzurePublicCloud": ` +
			"the region chinanorth2 belongs to the cloud AzureChinaCloud"},
		{`"location": "local",`, "", fmt.Sprintf(stack, "AzureStackCloud"), "", "the region local belongs to the cloud AzurePublicCloud"},
	} {
		o := options()
		o.Location = test.option
		r, err := Import(modelOf(test.location, test.properties, ""), o)
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: got %v, want %s", test.location, err, test.refused)
			}
			continue
		}
		if err != nil || len(r.Problems) > 0 {
			t.Errorf("%s: %v %v", test.location, err, r.Problems)
			continue
		}
		d, err := definition.Load(definition.Layer{Name: "definition.yaml", Text: r.Definition})
		if err != nil || d.Cluster.Spec.Azure.Cloud != test.cloud {
			t.Errorf("%s: got the cloud %s, want %s (%v)", test.location, d.Cluster.Spec.Azure.Cloud, test.cloud, err)
		}
	}
}

// TestNothingVanishes checks that each input is in the definition or is named as dropped, also one with an empty value or an odd one.
func TestNothingVanishes(t *testing.T) {
	for _, test := range []struct{ properties, pool, in, dropped string }{
		{"", `, "customNodeLabels": {"dedicated": ""}`, `dedicated: ""`, ""},
		{"", `, "customNodeLabels": {"gpu": true}`, "", "properties.agentPoolProfiles[0].customNodeLabels.gpu"},
		{"", `, "imageReference": {"name": "i"}`, "", "properties.agentPoolProfiles[0].imageReference"},
		{"", `, "scaleSetPriority": "Cheap"`, "", "properties.agentPoolProfiles[0].scaleSetPriority"},
		{"", `, "storageProfile": "Tape"`, "", "properties.agentPoolProfiles[0].storageProfile"},
		{"", `, "vnetSubnetId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n"`, "",
			"properties.agentPoolProfiles[0].vnetSubnetId"},
		{"", `, "kubernetesConfig": {"maxPods": 40, "kubeletConfig": {"--max-pods": "50"}}`, "maxPods: 50",
			"properties.agentPoolProfiles[0].kubernetesConfig.maxPods"},
		{"", `, "kubernetesConfig": {"maxPods": "many"}`, "", "properties.agentPoolProfiles[0].kubernetesConfig"},
	} {
		text := modelOf(`"location": "westeurope", "tags": {"keep": ""},`, test.properties, test.pool)
		r, err := Import(text, options())
		if err != nil || !strings.Contains(string(r.Definition), test.in) || !strings.Contains(string(r.Definition), `keep: ""`) {
			t.Errorf("%s: %v, want %s in\n%s", test.pool, err, test.in, r.Definition)
		}
		if test.dropped != "" && !slices.ContainsFunc(r.Dropped, func(d Dropped) bool { return d.Path == test.dropped }) {
			t.Errorf("%s: dropped are %v, want %s", test.pool, r.Dropped, test.dropped)
		}
	}
	flag := strings.Replace(string(modelOf(`"location": "westeurope",`, "", "")), `"networkPlugin"`, `"schedulerConfig": {"--x": ""}, "networkPlugin"`, 1)
	r, err := Import([]byte(flag), options())
	if want := "properties.orchestratorProfile.kubernetesConfig.schedulerConfig.--x"; err != nil || !slices.ContainsFunc(r.Dropped,
		func(d Dropped) bool { return d.Path == want }) {
		t.Errorf("%v: dropped are %v, want %s", err, r.Dropped, want)
	}
}

// FuzzImport checks that no model stops the program, and that what is made can be read or has problems that say why not.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Import(text, options())
		if err != nil {
			return
		}
		again, err := Import(text, options())
		if err != nil || string(again.Definition) != string(r.Definition) || len(again.Dropped) != len(r.Dropped) {
			t.Errorf("two runs differ: %v", err)
		}
		if _, err := definition.Load(definition.Layer{Name: "definition", Text: r.Definition}); (err == nil) != (len(r.Problems) == 0) {
			t.Errorf("%v, and the problems are %v", err, r.Problems)
		}
	})
}
