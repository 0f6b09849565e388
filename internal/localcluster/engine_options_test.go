package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterplan "kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/host/process"
	"kaz/internal/localcluster/controlplane"
)

// exampleDefinition is the definition that the definition of --engine resembles.
const exampleDefinition = "../../docs/example-manifests/cluster/dev.yaml"

// TestEngineOptions checks that options that do not fit are refused with their value and what is allowed.
func TestEngineOptions(t *testing.T) {
	example, err := os.ReadFile(exampleDefinition)
	if err != nil {
		t.Fatal(err)
	}
	write := func(old, changed string) string {
		t.Helper()
		if !strings.Contains(string(example), old) {
			t.Fatalf("%s has no %q", exampleDefinition, old)
		}
		file := filepath.Join(t.TempDir(), "dev.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(example), old, changed, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	archive := filepath.Join(t.TempDir(), "web.tar")
	for _, test := range []struct {
		name    string
		options UpOptions
		refused string // "" for accepted
	}{
		{"defaults", UpOptions{}, ""},
		{"nodes", UpOptions{Nodes: 2}, ""},
		{"IPv4", UpOptions{IPFamilies: []string{"IPv4"}}, ""},
		{"definition", UpOptions{Definitions: []string{exampleDefinition}}, ""},
		{"layers", UpOptions{Definitions: []string{exampleDefinition, exampleDefinition}}, ""},
		{"kind", UpOptions{NodesKind: NodesReal}, "--nodes-kind real: the machines of --engine boot"},
		{"booted", UpOptions{NodesKind: NodesBooted}, "--nodes-kind booted: want real or hollow"},
		{"scale sets", UpOptions{ScaleSets: 2}, "--scale-sets 2: the scale sets of --engine are the node pools"},
		{"dual stack", UpOptions{IPFamilies: []string{"IPv4", "IPv6"}}, "--ip-families IPv4,IPv6: the cluster engine makes no IPv6"},
		{"example", UpOptions{Example: true}, "--example: --engine has no example"},
		{"component", UpOptions{Without: []string{CloudControllerManager}}, "--without cloud-controller-manager: the components of --engine"},
		{"image", UpOptions{Images: []string{archive}}, "--image " + archive + ": machines of --engine import no archives"},
		{"nodes and definition", UpOptions{Nodes: 2, Definitions: []string{exampleDefinition}}, "--nodes 2: the definition has the numbers"},
		{"release", UpOptions{Releases: []string{"1.30.0"}}, "--kubernetes 1.30.0: want some of 1."},
		{"missing file", UpOptions{Definitions: []string{"no-such.yaml"}}, "--definition: definition: open no-such.yaml"},
		{"standard input", UpOptions{Definitions: []string{"-"}}, "--definition -: want files"},
		{"mistake", UpOptions{Definitions: []string{write("location: westeurope", "location: West Europe")}}, `location: "West Europe": want`},
		{"version", UpOptions{Definitions: []string{write("1.36.3", "1.34.0")}},
			"spec.kubernetes.version: 1.34.0: local machines want one of 1."},
		{"internal", UpOptions{Definitions: []string{write("  kubernetes: ", "  network: {apiServer: {access: Internal}}\n  kubernetes: ")}},
			"spec.network.apiServer.access: Internal: this machine reaches only"},
	} {
		test.options.Engine = true
		err := test.options.check()
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v, want %q", test.name, err, test.refused)
		}
	}
	o := UpOptions{Definitions: []string{"dev.yaml"}, Releases: []string{"1.36.3", "1.2.3"}}
	err = o.check()
	for _, want := range []string{"--definition dev.yaml: only", "--kubernetes 1.36.3,1.2.3: only", "--kubernetes 1.2.3: want some of 1.36.3", "add --engine"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without --engine: %v, want %q", err, want)
		}
	}
}

// TestEngineDefinition checks the definition without files: it is the example with other names, the default or the given release, and
// the given number of nodes.
func TestEngineDefinition(t *testing.T) {
	releases, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exampleDefinition)
	if err != nil {
		t.Fatal(err)
	}
	example, err := definition.Load(definition.Layer{Name: exampleDefinition, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		options UpOptions
		nodes   int
		version string
	}{
		{UpOptions{}, defaultNodes, releases[0]},
		{UpOptions{Nodes: 7, Releases: []string{releases[1], releases[0]}}, 7, releases[1]},
	} {
		d, err := test.options.definition()
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Pools) != 1 || d.Pools[0].Spec.Replicas != test.nodes || d.Cluster.Spec.Kubernetes.Version != test.version {
			t.Errorf("%+v: version %s, pools %+v", test.options, d.Cluster.Spec.Kubernetes.Version, d.Pools)
		}
		d.Cluster.Metadata, d.Cluster.Spec.Azure.ResourceGroup = example.Cluster.Metadata, example.Cluster.Spec.Azure.ResourceGroup
		d.Cluster.Spec.Access, d.Cluster.Spec.Kubernetes.Version = example.Cluster.Spec.Access, example.Cluster.Spec.Kubernetes.Version
		d.Pools[0].Spec.Replicas = example.Pools[0].Spec.Replicas
		for _, difference := range definition.Compare(example, d) {
			t.Errorf("differs from the example: %s", difference)
		}
	}
}

// TestEngineOfExistingCluster checks that a directory keeps the way its cluster was made, with or without --engine.
func TestEngineOfExistingCluster(t *testing.T) {
	booted := startRecord{Instance: "a", NodesKind: NodesBooted, Cluster: clusterRecord{"kaz", "kaz", []string{"1.36.3"}}}
	for _, test := range []struct {
		options UpOptions
		record  startRecord
		refused string
	}{
		{UpOptions{Engine: true}, startRecord{Instance: "a", NodesKind: NodesHollow},
			"has hollow nodes, and that cannot be changed; want another --dir"},
		{UpOptions{ScaleSets: 2}, booted, "--scale-sets 2: the scale sets of --engine"},
		{UpOptions{NodesKind: NodesHollow}, booted, "--nodes-kind hollow: the machines of --engine"},
		{UpOptions{Engine: true, Definitions: []string{exampleDefinition}, Releases: []string{"1.35.4"}}, booted,
			"--kubernetes 1.35.4: the definition has version 1.36.3; want that one, too"},
	} {
		group, err := process.Open(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{UpOptions: test.options, group: group, record: test.record}
		if err := c.choose(t.Context()); err == nil || !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%+v: %v, want %q", test.options, err, test.refused)
		}
		group.Close(t.Context(), 0)
	}
}

// TestResized checks that --nodes gives an existing cluster nodes, and takes none away.
func TestResized(t *testing.T) {
	o := UpOptions{Nodes: 2}
	d, err := o.definition()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := clusterplan.New(d)
	if err != nil {
		t.Fatal(err)
	}
	for nodes, want := range map[int]int{0: 2, 2: 2, 5: 5} {
		p, err := resized(plan, nodes, "/dir")
		if err != nil || p.Definition.Pools[0].Spec.Replicas != want || plan.Definition.Pools[0].Spec.Replicas != 2 {
			t.Errorf("--nodes %d: %v, %+v", nodes, err, p.Definition.Pools)
		}
	}
	want := "--nodes 1: cluster kaz in /dir has 2 nodes, which must be drained first"
	if _, err := resized(plan, 1, "/dir"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("--nodes 1: %v, want %q", err, want)
	}
	plan.Definition.Pools = nil
	if _, err := resized(plan, 1, "/dir"); err == nil || !strings.Contains(err.Error(), "does not have one pool") {
		t.Errorf("no pool: %v", err)
	}
}
