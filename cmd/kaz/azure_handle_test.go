package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"sigs.k8s.io/yaml"

	"kaz/cmd/kaz/azurecommand"
	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
)

// asked runs kaz, which must succeed, and returns its standard output.
func asked(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := ask(t, input, args...)
	if err != nil {
		t.Fatalf("kaz %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// ask runs kaz and returns its standard output.
func ask(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	command := rootCommand()
	var out, log bytes.Buffer
	command.SetIn(strings.NewReader(input))
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		t.Logf("kaz %s: %v; standard error: %s", strings.Join(args, " "), err, log.String())
	}
	return out.String(), err
}

// environmentOf returns what a shell has after it read lines.
func environmentOf(t *testing.T, lines string) func(name string) string {
	t.Helper()
	return func(name string) string {
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", lines+"printf %s \"$"+name+"\"")
		shell.Env = []string{"PATH=/nowhere"}
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
}

// sdkClient returns a client of the SDK that knows Azure's public hosts and what an environment says. It does not try again.
func sdkClient(t *testing.T, env func(string) string) *arm.Client {
	t.Helper()
	text, err := os.ReadFile(env("SSL_CERT_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	proxy, err := url.Parse(env("HTTPS_PROXY"))
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%v; certificates %q", err, text)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	options := policy.ClientOptions{Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1}}
	credential, err := azidentity.NewClientSecretCredential(env("AZURE_TENANT_ID"), env("AZURE_CLIENT_ID"), env("AZURE_CLIENT_SECRET"),
		&azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	c, err := arm.NewClient("test", "v1.0.0", credential, &arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readGroups reads the resource groups with a client of the SDK.
func readGroups(t *testing.T, c *arm.Client, subscription string) (status int, text string) {
	t.Helper()
	r, err := runtime.NewRequest(t.Context(), http.MethodGet, "https://management.azure.com/subscriptions/"+subscription+
		"/resourceGroups?api-version=2021-04-01")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Pipeline().Do(r)
	if err != nil {
		if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
			return refused.StatusCode, refused.Error()
		}
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// status returns what kaz local azure status says.
func status(t *testing.T) azurecommand.Status {
	t.Helper()
	var s azurecommand.Status
	if err := json.Unmarshal([]byte(asked(t, "", "local", "azure", "status", "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// detached starts a local Azure in the background. It ends with the test.
func detached(t *testing.T, dir string) client.Info {
	t.Helper()
	t.Cleanup(func() {
		if _, err := os.Stat(dir); err == nil {
			command := exec.Command(os.Args[0], "local", "azure", "stop", "--dir", dir)
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("stop: %v: %s", err, out)
			}
		}
	})
	var info client.Info
	text := asked(t, "", "local", "azure", "--detach", "--dir", dir, "--wait", "2m", "--quota", "cores=7", "--quota", "standardDSv5Family=3")
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return info
}

// TestAzureInTheBackground goes the way of a user: start, let a client log in, let its requests fail, reset, stop, go on, delete.
func TestAzureInTheBackground(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "it's azure")
	info := detached(t, dir)
	env := environmentOf(t, asked(t, "", "local", "azure", "env"))
	if got := env("AZURE_CLIENT_SECRET"); got != info.ClientSecret {
		t.Errorf("the secret is %q, want %q", got, info.ClientSecret)
	}
	sdk := sdkClient(t, env)
	group := "/subscriptions/" + info.Subscription + "/resourceGroups/rg"
	began := status(t)
	asked(t, `{"location":"westeurope"}`, "local", "azure", "put", group)
	if code, text := readGroups(t, sdk, env("AZURE_SUBSCRIPTION_ID")); code != 200 || !strings.Contains(text, `"rg"`) {
		t.Errorf("%d: %s", code, text)
	}
	s := status(t)
	if s.ARM != info.ARM || s.Resources != began.Resources+1 || time.Since(s.Since) > time.Hour || s.Quotas["cores"] != 7 {
		t.Errorf("status %+v, at first %+v", s, began)
	}
	for what, text := range map[string]string{"text": asked(t, "", "local", "azure", "status"),
		"yaml": asked(t, "", "local", "azure", "status", "-o", "yaml")} {
		if !strings.Contains(text, info.ARM) || strings.Contains(text, info.ClientSecret) || strings.Contains(text, info.AdminToken) {
			t.Errorf("status as %s: %s", what, text)
		}
	}
	faultsWhileItRuns(t, sdk, info)
	if out, err := ask(t, "", "local", "azure", "reset"); err == nil || !strings.Contains(err.Error(), "would be lost: confirm with --yes") {
		t.Errorf("reset without --yes: %v, %s", err, out)
	}
	asked(t, "", "local", "azure", "reset", "--yes")
	if code, text := readGroups(t, sdk, info.Subscription); code != 200 || strings.Contains(text, `"rg"`) {
		t.Errorf("after the reset %d: %s", code, text)
	}
	asked(t, `{"location":"westeurope"}`, "local", "azure", "put", group)
	stopped := asked(t, "", "local", "azure", "stop", "--dir", dir)
	if stopped != "stopped the local Azure of "+dir+"\n" {
		t.Errorf("stop: %q", stopped)
	}
	if _, err := ask(t, "", "local", "azure", "status"); !errors.Is(err, cli.ExitCode(3)) {
		t.Errorf("status after the stop: %v", err)
	}
	if again := asked(t, "", "local", "azure", "stop", "--dir", dir, "-o", "json"); !strings.Contains(again, `"stopped": false`) {
		t.Errorf("stop again: %s", again)
	}
	if next := detached(t, dir); next.ClientSecret != info.ClientSecret || next.ARM != info.ARM || next.Proxy != info.Proxy {
		t.Errorf("the next start has %+v, before %+v", next, info)
	}
	if shown := asked(t, "", "local", "azure", "show", "rg"); !strings.Contains(shown, "westeurope") {
		t.Errorf("after the next start: %s", shown)
	}
	asked(t, "", "local", "azure", "delete", "--yes", "--dir", dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the deleted directory: %v", err)
	}
}

// faultsWhileItRuns adds rules and settings while a client works, and takes them back.
func faultsWhileItRuns(t *testing.T, sdk *arm.Client, info client.Info) {
	t.Helper()
	asked(t, "", "local", "azure", "fault", "add", "--method", "get", "--type", "resourceGroups", "--status", "429", "--message", "too many")
	asked(t, "", "local", "azure", "fault", "add", "--type", "disks", "--fault", "answer", "--path", "properties.diskSizeGB", "--value", "5")
	if code, text := readGroups(t, sdk, info.Subscription); code != 429 || !strings.Contains(text, "too many") {
		t.Errorf("with a fault rule %d: %s", code, text)
	}
	want := `ID  FAULT   METHOD  TYPE                               NAME  ACTION  STATUS  TIMES  MATCHED  APPLIED
1   error   get     Microsoft.Resources/resourceGroups  -     -       429     -      1        1
2   answer  -       Microsoft.Compute/disks            -     -       -       -      0        0
`
	got := asked(t, "", "local", "azure", "fault", "list")
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("the list is\n%swant\n%s", got, want)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"fault", "add", "--fault", "fire"}, `fault "fire": want error, operation,`},
		{[]string{"fault", "add", "--status", "200"}, "status 200: want 400 to 599"},
		{[]string{"fault", "add", "--method", "FETCH"}, `method "FETCH": want GET, HEAD,`},
		{[]string{"fault", "remove", "9"}, "fault rule 9: there is no fault rule with this number"},
		{[]string{"fault", "list", "-o", "xml"}, "--output xml: want text, json or yaml"},
		{[]string{"set", "--latency", "fast"}, "--latency fast: want azure, off or a factor such as 0.1"},
		{[]string{"set", "--quota", "cores=many"}, "--quota cores=many: want NAME=N"},
		{[]string{"env", "-o", "ruby"}, `--output ruby: clients of the kind "ruby" are unknown: want az, dotnet,`},
		{[]string{"env", "--endpoint", "https://127.0.0.1:1"}, "no local Azure of this user serves at https://127.0.0.1:1"},
		{[]string{"--detach", "--dir", filepath.Dir(info.CAFile)}, "in use by process "},
	} {
		out, err := ask(t, "", append([]string{"local", "azure"}, test.args...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s; printed %s", test.args, err, test.want, out)
		}
	}
	asked(t, "", "local", "azure", "fault", "remove", "2")
	if out := asked(t, "", "local", "azure", "fault", "clear"); out != "removed 1 fault rules\n" {
		t.Errorf("clear: %s", out)
	}
	if code, text := readGroups(t, sdk, info.Subscription); code != 200 {
		t.Errorf("without fault rules %d: %s", code, text)
	}
	out := asked(t, "", "local", "azure", "set", "--latency", "0.001", "--throttle", "azure", "--quota", "cores=9", "-o", "yaml")
	for _, one := range []string{`latency: "0.001"`, "throttle: azure", "cores: 9"} {
		if !strings.Contains(out, one) {
			t.Errorf("set lacks %s: %s", one, out)
		}
	}
}

// TestHandlesOfTheGuide runs the commands that the guide prints for a local Azure in the background, as printed, in the order of a user.
func TestHandlesOfTheGuide(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Cleanup(func() {
		if out, err := exec.Command(os.Args[0], "local", "azure", "stop").CombinedOutput(); err != nil {
			t.Errorf("stop: %v: %s", err, out)
		}
	})
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "local-azure.md"))
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for line := range strings.Lines(string(guide)) {
		command, _, _ := strings.Cut(line, "#")
		command = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(command), `eval "$(`), `)"`)
		for _, name := range []string{"--detach", "status", "web", "env", "fault", "set", "reset", "stop", "delete"} {
			if strings.HasPrefix(command, "kaz local azure "+name) {
				printed = append(printed, command)
			}
		}
	}
	want := []string{
		"--detach", "status", "web", "env", "env -o json", "env -o az", "env -o python",
		"fault add --method PUT --type loadBalancers --status 429 --times 3", "fault list", "fault remove 1", "fault clear",
		"set --latency azure --throttle azure --quota cores=10", "reset --yes", "stop", "delete --yes",
	}
	for i := range want {
		want[i] = "kaz local azure " + want[i]
		asked(t, "", strings.Fields(want[i])[1:]...)
	}
	slices.Sort(printed)
	slices.Sort(want)
	if printed = slices.Compact(printed); !slices.Equal(printed, want) {
		t.Errorf("the guide prints\n%s\nand this test runs\n%s", strings.Join(printed, "\n"), strings.Join(want, "\n"))
	}
}

// TestActionForCI runs the script of the action as a runner does, and a client with the environment that it leaves.
func TestActionForCI(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", ".github", "actions", "local-azure", "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	output := filepath.Join(temp, "output")
	values := map[string]string{"program": os.Args[0], "arguments": "--throttle azure"}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Cleanup(func() {
		dir := filepath.Join(temp, "local-azure")
		if out, err := exec.Command(os.Args[0], "local", "azure", "stop", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("stop: %v: %s", err, out)
		}
	})
	for _, step := range action.Runs.Steps {
		if step.ID != "start" {
			continue
		}
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", step.Run)
		command.Env = append(command.Environ(), "RUNNER_TEMP="+temp, "GITHUB_OUTPUT="+output)
		for name, value := range step.Env {
			input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
			command.Env = append(command.Env, name+"="+cmp.Or(values[input], action.Inputs[input].Default))
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	outputs, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimSpace(strings.TrimPrefix(string(outputs), "environment="))
	client := exec.CommandContext(t.Context(), "bash", "-euc", `. "$0"; echo "$AZURE_CLIENT_ID $HTTPS_PROXY $SSL_CERT_FILE"`, file)
	out, err := client.CombinedOutput()
	if words := strings.Fields(string(out)); err != nil || len(words) != 3 || words[2] != filepath.Join(temp, "local-azure", "ca.pem") {
		t.Errorf("%v: %s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with secrets: %v %v", info.Mode(), err)
	}
}

// TestForeignDirectory checks that a directory with files of others is neither used nor removed.
func TestForeignDirectory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--detach"}, {}, {"stop"}, {"delete", "--yes"}} {
		_, err := ask(t, "", append(append([]string{"local", "azure"}, args...), "--dir", dir)...)
		if err == nil || !strings.Contains(err.Error(), "--dir "+dir+": it is no directory of kaz local azure") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file of another program: %q, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("files in the directory: %v, %v", entries, err)
	}
}

// TestDetachThatFails checks that the reason is shown why a local Azure in the background does not serve.
func TestDetachThatFails(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "azure")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"local-azure.json": "{}", "state.json": "no state"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := rootCommand()
	var out, log bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs([]string{"local", "azure", "--detach", "--dir", dir})
	err := command.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the local Azure did not come up; the log is ") ||
		!strings.Contains(log.String(), "the file is unchanged") || out.Len() > 0 {
		t.Errorf("%v; standard error %q, standard output %q", err, log.String(), out.String())
	}
}
