package clustercommand

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster/definition"
	"kaz/internal/localazure/client"
)

// runCluster runs kaz cluster and returns its output, its errors and its exit status.
func runCluster(t *testing.T, in string, args ...string) (out, errs string, status int) {
	t.Helper()
	command := New()
	command.SilenceUsage, command.SilenceErrors = true, true // as kaz does
	var o, e bytes.Buffer
	command.SetIn(strings.NewReader(in))
	command.SetOut(&o)
	command.SetErr(&e)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if code, ok := errors.AsType[cli.ExitCode](err); ok {
		status = int(code)
	} else if err != nil {
		e.WriteString(err.Error())
		status = 1
	}
	return o.String(), e.String(), status
}

const exampleDir = "../../../docs/example-manifests/cluster/"

// TestClusterOnLocalAzure is the story of a cluster, with the commands of the guide.
func TestClusterOnLocalAzure(t *testing.T) {
	startAzure(t)
	kubeconfig := filepath.Join(t.TempDir(), "admin.conf")
	for _, step := range []struct {
		in     string
		args   string
		status int
		out    string // is in the output
		errs   string // is in the errors
	}{
		{args: "deploy ha.yaml --local --dry-run", out: "all checks passed; 11 of 11 units would be deployed"},
		{args: "deploy ha.yaml --local --what-if", out: "+ Microsoft.Compute/virtualMachines prod-cp-2"},
		{args: "status prod --local", status: 1, errs: "resource group prod has no deployment of cluster prod: check --resource-group and"},
		{args: "resume prod --local", status: 1, errs: "resource group prod has no deployment of cluster prod"},
		{args: "deploy ha.yaml --local --kubeconfig KUBECONFIG", out: "cluster prod is deployed as documents: 11 units; no machine boots",
			errs: "this local Azure boots no machines: cluster prod will be documents without an API server, and gets no kubeconfig; for one " +
				"that runs, start kaz local azure with --machines-dir\ncreate resource group prod"},
		{args: "deploy ha.yaml --local", out: "cluster prod is up to date"},
		{args: "resume prod --local", out: "cluster prod is up to date", errs: "this local Azure boots no machines: cluster prod"},
		{args: "deploy ha.yaml team-b.yaml --local --what-if", out: "+ Microsoft.Compute/virtualMachines prod-db-0"},
		{args: "deploy ha.yaml team-a.yaml --local", status: 3, errs: "manifests of extensions change"},
		{args: "deploy ha.yaml team-b.yaml --local", out: "cluster prod is deployed as documents"},
		{args: "status prod --local -o json", out: `"version": "1.36.3"`},
		{args: "status prod --local --watch", out: "cluster prod: deployment succeeded 20"},
		{args: "status prod --local --watch", out: "units     [########################] "},
		{args: "status prod --local --watch --every 0s -o json", status: 1,
			errs: "--every 0s: want 1s or more\n--watch and --output json: want text"},
		{args: "destroy prod --local", in: "wrong\n", status: 1, errs: "not confirmed: want the name prod"},
		{args: "destroy prod --local", in: "prod\n", out: "cluster prod is removed", errs: "- resource group prod with everything in it"},
		{args: "status prod --local", status: 1, errs: "resource group prod has no deployment of cluster prod: check --resource-group and"},
	} {
		var args []string
		for arg := range strings.FieldsSeq(step.args) {
			if strings.HasSuffix(arg, ".yaml") {
				arg = exampleDir + arg
			}
			args = append(args, strings.ReplaceAll(arg, "KUBECONFIG", kubeconfig))
		}
		out, errs, status := runCluster(t, step.in, args...)
		if status != step.status || !strings.Contains(out, step.out) || !strings.Contains(errs, step.errs) {
			t.Fatalf("%s: status %d, output\n%s\nerrors\n%s", step.args, status, out, errs)
		}
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a kubeconfig for an API server that never answers: %v", err)
	}
}

// TestClusterMistakes checks the exit status and the output of definitions with mistakes.
func TestClusterMistakes(t *testing.T) {
	_, errs, status := runCluster(t, "apiVersion: cluster.kaz/v1alpha1\nkind: Clustr\n", "validate", "-")
	if want := "standard input:2: kind: \"Clustr\": want Cluster, NodePool, Extension or TemplatePatch; did you mean Cluster?\n"; status != 3 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %s", status, errs)
	}
	if _, errs, status := runCluster(t, "", "validate", "no-such-file.yaml"); status != 1 || !strings.Contains(errs, "no-such-file.yaml") {
		t.Errorf("status %d, %s", status, errs)
	}
	if _, errs, status := runCluster(t, "", "deploy"); status != 1 || !strings.Contains(errs, "want the files of a definition") {
		t.Errorf("status %d, %s", status, errs)
	}
	if _, errs, status := runCluster(t, "", "status", "prod"); status != 1 || !strings.Contains(errs, "--subscription is missing") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// TestDefaultVersion checks that the release has the checksums of the version that an imported definition gets.
func TestDefaultVersion(t *testing.T) {
	version := importCommand().Flag("kubernetes-version").DefValue
	if definition.ReleasedChecksums(version) == "" {
		t.Errorf("no checksums of version %s: make checksums VERSION=v%s", version, version)
	}
}

// TestPlaceMistakes checks that names which no cluster can have are refused before Azure is asked.
func TestPlaceMistakes(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"docs/ha.yaml", `name of the cluster: "docs/ha.yaml": want at most 30 small letters`},
		{"prod -g a/b", `--resource-group: "a/b": want `},
		{"prod --subscription mine", `--subscription: "mine": want `},
	} {
		args := append([]string{"destroy", "--yes", "--subscription", "00000000-0000-0000-0000-000000000001"}, strings.Fields(c.args)...)
		if _, errs, status := runCluster(t, "", args...); status != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %s", c.args, status, errs)
		}
	}
}

// TestClusterChart checks scenario 46: the files of a definition with a chart beside it have its objects, and are the same each time. One
// with another checksum is refused.
func TestClusterChart(t *testing.T) {
	dir := t.TempDir()
	chart, err := filepath.Abs("../../../internal/cluster/helmchart/testdata/web")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(chart, filepath.Join(dir, "web")); err != nil {
		t.Fatal(err)
	}
	write := func(name, chart string) string {
		path := filepath.Join(dir, name)
		text := "apiVersion: cluster.kaz/v1alpha1\nkind: Extension\nmetadata: {name: web}\nspec:\n  charts:\n  - " + chart + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "{releaseName: shop, namespace: shops, path: web, values: {replicas: 7}}")
	printed, errs, status := runCluster(t, "", "generate", exampleDir+"dev.yaml", good, "--output-dir", filepath.Join(dir, "out"))
	if status != 0 {
		t.Fatal(printed, errs)
	}
	boot, err := os.ReadFile(filepath.Join(dir, "out", "cloud-init", "control-plane.yaml"))
	if err != nil || !strings.Contains(string(boot), "/etc/kaz/manifests/web-001.yaml") || !strings.Contains(string(boot), "replicas: 7") {
		t.Errorf("the boot file has not the objects of the chart: %v", err)
	}
	one, _, _ := runCluster(t, "", "generate", exampleDir+"dev.yaml", good)
	two, _, _ := runCluster(t, "", "generate", exampleDir+"dev.yaml", good)
	if one != two || one == "" {
		t.Error("the same definition gives other bytes")
	}
	archive := filepath.Join(dir, "web.tgz")
	if err := os.WriteFile(archive, []byte("another file"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := write("bad.yaml", "{releaseName: shop, path: web.tgz, sha256: "+strings.Repeat("a", 64)+"}")
	for _, command := range []string{"validate", "deploy"} {
		_, errs, status := runCluster(t, "", command, exampleDir+"dev.yaml", bad)
		if want := "bad.yaml:6: Extension web: spec.charts[0].sha256: \"aaaa"; status != 3 || !strings.Contains(errs, want) ||
			!strings.Contains(errs, archive+" has the checksum ") {
			t.Errorf("%s: status %d, %s", command, status, errs)
		}
	}
}

// TestClusterGenerate checks that the files are complete, and that only their owner can read them.
func TestClusterGenerate(t *testing.T) {
	dir := t.TempDir()
	out, errs, status := runCluster(t, "", "generate", exampleDir+"dev.yaml", "--output-dir", dir)
	if status != 0 {
		t.Fatal(errs)
	}
	for _, file := range []string{"template.json", "parameters.json", "SHA256SUMS", "cluster.svg", "units/cp-0.json", "cloud-init/control-plane.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil || !strings.Contains(out, file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	printed, _, _ := runCluster(t, "", "generate", exampleDir+"dev.yaml")
	written, err := os.ReadFile(filepath.Join(dir, "template.json"))
	if err != nil || printed != string(written) {
		t.Errorf("the printed template differs from the written one: %v", err)
	}
}

// TestClusterOnOneOfSeveral checks that a second local Azure on the machine does not keep commands from the one that has their cluster.
func TestClusterOnOneOfSeveral(t *testing.T) {
	example, err := filepath.Abs(exampleDir + "dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	startAzure(t)
	if out, errs, status := runCluster(t, "", "deploy", example, "--local"); status != 0 {
		t.Fatal(out, errs)
	}
	announced, err := client.AnnounceDir()
	if err != nil {
		t.Fatal(err)
	}
	second := t.TempDir()
	startAzureIn(t, second, "")
	if err := os.Link(client.FileInDir(second), filepath.Join(announced, "second.json")); err != nil { // of another process
		t.Fatal(err)
	}
	for _, step := range []struct {
		args   string
		status int
		out    string
		errs   string
	}{
		{args: "status dev --local", out: "resource group"},
		{args: "deploy EXAMPLE --local", out: "cluster dev is up to date"},
		{args: "status prod --local", status: 1, errs: "cluster prod: 2 local Azures are running; choose one with --endpoint https://"},
	} {
		out, errs, status := runCluster(t, "", strings.Fields(strings.ReplaceAll(step.args, "EXAMPLE", example))...)
		if status != step.status || !strings.Contains(out, step.out) || !strings.Contains(errs, step.errs) {
			t.Errorf("%s: status %d, output\n%s\nerrors\n%s", step.args, status, out, errs)
		}
	}
}
