package clustercommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kaz/cmd/kaz/cli"
	"kaz/internal/azure"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// startAzure starts a local Azure that the commands of a test find.
func startAzure(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := client.AnnounceDir()
	if err != nil {
		t.Fatal(err)
	}
	startAzureIn(t, dir, "")
}

// startAzureIn starts a local Azure that is announced in a directory. With the address of a proxy its vaults and blobs are reached.
func startAzureIn(t *testing.T, dir, proxy string) {
	t.Helper()
	server, err := server.Start(t.Context(), server.Options{
		Address: "127.0.0.1:0", HTTPAddress: "127.0.0.1:0", ProxyAddress: proxy, AnnounceDir: dir,
		CAFile: filepath.Join(t.TempDir(), "ca.pem"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// start starts a local Azure for a test in a directory of its own, with the example dev.yaml and broken variants of it.
func start(t *testing.T) {
	t.Helper()
	writeExamples(t)
	startAzure(t)
}

// writeExamples changes to a directory with the example dev.yaml and broken variants of it.
func writeExamples(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(exampleDir + "dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile("../../../internal/cluster/apimodel/testdata/kubenet.txtar")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	_, after, _ := strings.Cut(string(model), "-- model.json --\n")
	imported, _, _ := strings.Cut(after, "\n-- ")
	for name, content := range map[string]string{
		"dev.yaml": strings.Replace(string(text), "spec: {replicas: 1, zones: []}", "spec: {replicas: 2, zones: []}", 1),
		"bad.yaml": strings.Replace(string(text), "location: westeurope", "location: West Europe", 1),
		"far.yaml": strings.Replace(string(text), "location: westeurope", "location: nowhere", 1),
		"new.yaml": strings.Replace(string(text), "1.36.3", "1.37.1", 1), "model.json": imported,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOutput checks scenario 54: with -o json and -o yaml every command prints one document of data and nothing else. The
// document is the same in both formats, and the command has its usual exit status. A command that cannot do its work prints
// only errors.
func TestOutput(t *testing.T) {
	start(t)
	api := apiServer(t)
	tried := map[string]bool{}
	for _, step := range []struct {
		args   string
		status int
		want   string // fields of the document, "" for no document
	}{
		{"validate dev.yaml", 0, `"cluster":"dev","extensions":0,"nodePools":1,"templatePatches":0,"valid":true`},
		{"validate bad.yaml", 3, `"problems":[{"field":"Cluster dev: spec.azure.location","file":"bad.yaml","line":9,`},
		{"explain NodePool.spec.backend", 0, `"field":"NodePool.spec.backend"`},
		{"explain NodePool.spec.nothing", 1, ""},
		{"schema", 0, `"$schema":`},
		{"generate dev.yaml", 0, `"contentVersion":"1.0.0.0"`},
		{"generate dev.yaml --output-dir out", 0, `"files":["out/SHA256SUMS"`},
		{"generate bad.yaml", 3, `"valid":false`},
		{"import model.json --subscription 00000000-0000-0000-0000-000000000001 --tenant 00000000-0000-0000-0000-0000000000aa", 0,
			`"definition":"`},
		{"deploy dev.yaml --local --dry-run", 0, `"cluster":"dev","dryRun":true,"units":["access",`},
		{"deploy far.yaml --local --dry-run", 3, `"findings":[{"check":"location",`},
		{"deploy dev.yaml --local --what-if", 0, `"changes":[{"changeType":"Create"`},
		{"deploy dev.yaml --local --kubeconfig admin.conf", 0, `"apiServer":"dev-`},
		{"deploy dev.yaml --local", 0, `"unchanged":true`},
		{"status dev --local", 0, `"state":"Succeeded"`},
		{"status dev", 1, ""},
		{"scale dev general --count 1 --local --kubeconfig API --dry-run", 0, `"steps":[{"action":"cordon nodes of pool"`},
		{"scale dev other --count 1 --local --kubeconfig API", 1, ""},
		{"upgrade dev.yaml --local --kubeconfig API --dry-run", 0, `"dryRun":true,"steps":[{"action":"apply the manifests of add-ons and ` +
			`extensions"}]`},
		{"upgrade new.yaml --local --kubeconfig API --etcd-timeout 1ms", 1, ""}, // etcd is not there
		{"upgrade bad.yaml --local --kubeconfig API", 3, `"problems":`},
		{"repair dev --local --kubeconfig API --dry-run", 0, `"done":true`},
		{"rotate dev --local --kubeconfig API --dry-run --etcd-timeout 1ms", 1, ""},
		{"rotate dev --token --local --kubeconfig API --dry-run", 1, ""},
		{"backup dev --local --kubeconfig API", 1, ""},
		{"restore dev --local --kubeconfig API --dry-run", 1, ""},
		{"doctor dev --local --kubeconfig API", 7, `"healthy":false`},
		{"kubeconfig dev --local", 1, ""},
		{"resume dev --local --dry-run", 0, `"cluster":"dev","done":false,"dryRun":true`},
		{"resume dev --local", 0, `"unchanged":true`},
		{"abort dev --local", 1, ""}, // nothing runs
		{"destroy dev --local", 1, ""},
		{"destroy dev --local --yes", 0, `"cluster":"dev","removed":true,"resourceGroup":true`},
	} {
		args := strings.Fields(strings.ReplaceAll(step.args, "API", api))
		tried[args[0]] = true
		for _, format := range []string{"json", "yaml"} {
			if format == "yaml" && strings.HasPrefix(step.want, `"cluster":"dev","removed"`) {
				continue // the cluster is gone
			}
			out, errs, status := runCluster(t, "", append(args, "-o", format)...)
			if status != step.status || (status != 0 && step.want == "") != (errs != "" && out == "") {
				t.Errorf("%s -o %s: status %d, output %.200s, errors %s", step.args, format, status, out, errs)
			}
			if got := document(t, format, out); !strings.Contains(got, step.want) {
				t.Errorf("%s -o %s:\n%.500s\nwant %s", step.args, format, got, step.want)
			}
		}
	}
	for _, command := range New().Commands() {
		if !tried[command.Name()] {
			t.Errorf("kaz cluster %s has no case", command.Name())
		}
	}
	if _, errs, status := runCluster(t, "", "deploy", "dev.yaml", "--local", "-o", "xml"); status != 1 ||
		!strings.Contains(errs, "--output xml: want text, json or yaml") || strings.Contains(errs, "create resource group") {
		t.Errorf("an unknown format: %d %s", status, errs)
	}
}

// document is the document of an output as JSON without spaces, "" for no output.
func document(t *testing.T, format, out string) string {
	t.Helper()
	if out == "" {
		return ""
	}
	var value any
	read := json.Unmarshal
	if format == "yaml" {
		read = func(text []byte, v any) error { return yaml.UnmarshalStrict(text, v) }
	}
	if err := read([]byte(out), &value); err != nil {
		t.Errorf("no document of %s: %v\n%.300s", format, err, out)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestStatus checks which errors have an exit status of their own.
func TestStatus(t *testing.T) {
	for _, test := range []struct {
		err  error
		want cli.ExitCode
	}{
		{errors.New("any"), 0},
		{fmt.Errorf("%w (since today)", record.ErrOpen), 8},
		{fmt.Errorf("%w: that of dev", deploy.ErrRunning), 8},
		{fmt.Errorf("grow: %w", &azure.Error{Kind: azure.Capacity, Code: "ZonalAllocationFailed"}), 5},
		{&azure.Error{Kind: azure.Quota, Code: "OperationNotAllowed",
			Message: "Operation could not be completed as it results in exceeding approved Cores quota."}, 5},
		{&failure.Error{Failures: []failure.Resource{{Code: "CoreQuotaExceeded"}}}, 5},
		{&failure.Error{Failures: []failure.Resource{{Code: "OperationNotAllowed", Message: "it results in exceeding the Cores quota"}}}, 5},
		{&azure.Error{Code: "OperationNotAllowed", Message: "the machine is being deleted"}, 0},
		{&failure.Error{Failures: []failure.Resource{{Code: "SkuNotAvailable"}}}, 5},
		{&failure.Error{Failures: []failure.Resource{{Code: "InvalidParameter"}}}, 0},
	} {
		if got := statusOf(test.err); got != test.want {
			t.Errorf("%v: status %d, want %d", test.err, got, test.want)
		}
	}
}
