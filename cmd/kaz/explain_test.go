package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dnsexplain "kaz/internal/dns/explain"
	"kaz/internal/host/atomicfile"
	"kaz/internal/host/process"
	"kaz/internal/localazure/client"
	"kaz/internal/localcluster"
	"kaz/internal/picture"
)

// TestExplainRefuses checks that a wrong command line or a missing cluster is reported in one line, before any request.
func TestExplainRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	pods := writeJSON(t, home, "pods", []string{})
	config := writeJSON(t, home, "config", map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "http://127.0.0.1:1"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c"}}}})
	const wantName = "must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last: " +
		"load balancers are named after it"
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no Service given: want NAMESPACE/NAME, such as default/web, or --all"},
		{[]string{"web"}, `"web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"/web"}, `"/web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"default/"}, `"default/": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b/c"}, `"a/b/c": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b", "c/d"}, "a/b c/d: want one Service, or --all"},
		{[]string{"a/b", "--all"}, "--all and a/b: want one of them"},
		{[]string{"a/b", "-o", "xml"}, "--output xml: want text, wide, json, yaml, svg or picture"},
		{[]string{"a/b", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
		{[]string{"a/b", "--namespace", "c"}, "--namespace c and a/b: want one namespace"},
		{[]string{"--all", "-n", "c"}, "--all and --namespace c: want one of them"},
		{[]string{"b", "-n", "a", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
		{[]string{"a/b", "--kubeconfig", pods, "--cloud-config", none}, "kubeconfig " + pods + ": it is no kubeconfig; want a YAML or JSON " +
			"document of apiVersion v1 and kind Config"},
		{[]string{"a/b", "--kubeconfig", config, "--context", "d", "--cloud-config", none}, "kubeconfig " + config +
			`: it has no context "d"; want one that kubectl config get-contexts shows`},
		{[]string{"a/b", "--timeout", "0"}, "--timeout 0s: want more than 0"},
		{[]string{"a/b", "--timeout", "-1s"}, "--timeout -1s: want more than 0"},
		{[]string{"a/b", "--node-filter-requirements", "a in ("},
			`--node-filter-requirements "a in (": not a label selector: ` +
				`unable to parse requirement: found '', expected: ',', ')' or identifier`},
		{[]string{"a/b", "--load-balancer-class", "a/b/c"},
			`--load-balancer-class "a/b/c": not a valid class name; an example is kaz/azure`},
		{[]string{"a/b", "--cluster-name", "a/b"},
			`--cluster-name "a/b": ` + wantName},
		{[]string{"a/b", "--cluster-name", ""},
			`--cluster-name "": ` + wantName},
		{[]string{"a/b", "--dir", none, "--kubeconfig", none}, "--dir and --kubeconfig: want one of them"},
		{[]string{"a/b", "--dir", none}, "--dir: no cluster is up in " + none + "; start one with: kaz local up --dir " + none},
	} {
		command := explainServiceCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(test.args)
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		err := command.ExecuteContext(t.Context())
		if err == nil || err.Error() != test.want || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out.String())
		}
	}
}

// TestExplainClusterOfFlags checks that the flags take precedence over the environment.
func TestExplainClusterOfFlags(t *testing.T) {
	up := func() localcluster.Status {
		dir := t.TempDir()
		holdDir(t, dir)
		status := localcluster.Status{Dir: dir, Kubeconfig: writeJSON(t, dir, "kubeconfig", nil)}
		writeJSON(t, dir, "status.json", status)
		return status
	}
	one, other := up(), up()
	t.Setenv("KUBECONFIG", other.Kubeconfig)
	for _, test := range []struct {
		args []string
		dir  string
	}{
		{nil, other.Dir},
		{[]string{"--dir", one.Dir}, one.Dir},
		{[]string{"--kubeconfig", one.Kubeconfig}, one.Dir},
	} {
		command := explainServiceCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(append([]string{"--all"}, test.args...))
		err := command.ExecuteContext(t.Context())
		// The cluster has no local Azure, so the error shows its directory.
		if err == nil || !strings.HasPrefix(err.Error(), "the local Azure of "+test.dir+": ") {
			t.Errorf("%q: %v, want the cluster in %s", test.args, err, test.dir)
		}
	}
}

// TestExplainTimeout checks that a timeout is reported as such, and not as a missing local Azure.
func TestExplainTimeout(t *testing.T) {
	dir := t.TempDir()
	holdDir(t, dir)
	writeJSON(t, dir, "status.json", localcluster.Status{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")})
	writeJSON(t, dir, "azure-state-running.json", client.Info{ARM: "http://" + silentServer(t), Token: "x"})
	command := explainServiceCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"--all", "--dir", dir, "--timeout", "1ns"})
	err := command.ExecuteContext(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "not finished within --timeout 1ns: ") ||
		strings.Contains(err.Error(), "no local Azure is running") {
		t.Errorf("%v, want a timeout", err)
	}
}

// TestExplainTrustsAzureOfCloudConfig checks that azure.json, not the kubeconfig, selects the trusted certificates. A cluster
// and its Azure can be in two directories.
func TestExplainTrustsAzureOfCloudConfig(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("HOME", elsewhere)
	t.Setenv("KUBECONFIG", "")
	holdDir(t, home)
	arm := "https://" + silentServer(t)
	file := func(dir, name string, content any) string { return writeJSON(t, dir, name, content) }
	kubeconfig := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "http://127.0.0.1:1"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
		"users":    []any{map[string]any{"name": "c", "user": map[string]any{}}},
	}
	status := localcluster.Status{Dir: home, Kubeconfig: file(home, "kubeconfig", kubeconfig),
		CloudConfig: file(home, "azure.json", map[string]any{"resourceManagerEndpoint": arm})}
	file(home, "status.json", status)
	file(home, "azure-state-running.json", client.Info{ARM: arm, Token: "x", CAFile: "home.pem"})
	far := file(elsewhere, "kubeconfig", kubeconfig)
	edited := file(elsewhere, "edited.json", map[string]any{"resourceManagerEndpoint": arm, "loadBalancerName": "other"})
	private := file(elsewhere, "private.json", map[string]any{"resourceManagerEndpoint": "https://management.example"})
	public := file(elsewhere, "public.json", map[string]any{"cloud": "AzurePublicCloud"})
	for _, test := range []struct {
		kubeconfig, cloudConfig, trusts string
	}{
		{status.Kubeconfig, "", "home.pem"},
		{status.Kubeconfig, status.CloudConfig, "home.pem"},
		{status.Kubeconfig, edited, "home.pem"},
		{status.Kubeconfig, private, ""},
		{status.Kubeconfig, public, ""},
		{far, status.CloudConfig, "home.pem"},
		{far, private, ""},
	} {
		for _, name := range []string{"SSL_CERT_FILE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"} {
			t.Setenv(name, "")
		}
		flags := clusterFlags{dir: filepath.Join(elsewhere, "none"), kubeconfig: test.kubeconfig, cloudConfig: test.cloudConfig}
		_, err := flags.find(t.Context(), "")
		if got := os.Getenv("SSL_CERT_FILE"); err != nil || got != test.trusts {
			t.Errorf("--kubeconfig %s --cloud-config %s: trusts %q, %v, want %q", test.kubeconfig, test.cloudConfig, got, err, test.trusts)
		}
	}
	t.Setenv("SSL_CERT_FILE", "")
	beside := clusterFlags{kubeconfig: file(home, "other-kubeconfig", kubeconfig)}
	_, err := beside.find(t.Context(), "")
	if got := os.Getenv("SSL_CERT_FILE"); got != "" || err == nil || !strings.HasPrefix(err.Error(), "--cloud-config is missing") {
		t.Errorf("another kubeconfig in its directory: trusts %q, %v", got, err)
	}
}

// holdDir marks a directory as that of a running cluster.
func holdDir(t *testing.T, dir string) {
	t.Helper()
	group, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close(t.Context(), 0) })
}

// silentServer returns the address of a server that answers no request.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// writeJSON writes a file and returns its path.
func writeJSON(t *testing.T, dir, name string, content any) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := atomicfile.WriteJSON(path, content); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestShortIDs checks that ids of Azure are names in texts, and that -o wide keeps them whole.
func TestShortIDs(t *testing.T) {
	const group = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/kaz"
	const network = group + "/providers/Microsoft.Network/"
	for text, want := range map[string]string{
		"nothing": "nothing",
		"load balancer " + network + "loadBalancers/kaz: missing": "load balancer loadBalancers/kaz: missing",
		"(" + network + "loadBalancers/kaz/probes/a), b":          "(loadBalancers/kaz/probes/a), b",
		"disk of " + group + ".":                                  "disk of resourceGroups/kaz.",
		network + "a/b\n" + group + "/providers/Microsoft.Compute/virtualMachineScaleSets/nodes0/virtualMachines/2": "a/b\n" +
			"virtualMachineScaleSets/nodes0/virtualMachines/2",
		network + "loadBalancers/kaz/providers/Microsoft.Authorization/locks/keep": "locks/keep",
		"/subscriptions/00000000-0000-0000-0000-000000000001":                      "/subscriptions/00000000-0000-0000-0000-000000000001",
	} {
		if got := shortIDs(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		for output, want := range map[string]string{"text": want, wide: text} {
			var out bytes.Buffer
			e := explanation{output: output}
			if err := e.print(&out, said(text), false, false); err != nil || out.String() != want {
				t.Errorf("-o %s: %q, %v, want %q", output, out.String(), err, want)
			}
		}
		var out bytes.Buffer
		e := explanation{output: "json"}
		if err := e.print(&out, said(text), false, false); err != nil {
			t.Fatal(err)
		}
		var whole string
		if err := json.Unmarshal(out.Bytes(), &whole); err != nil || whole != text {
			t.Errorf("-o json: %q, %v", whole, err)
		}
	}
}

// said is a text that was found.
type said string

func (s said) String() string { return string(s) }

// TestExplainDraws checks the formats with a picture.
func TestExplainDraws(t *testing.T) {
	const id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnszones/example.com"
	found := dnsexplain.Name{Name: "app.example.com", Zones: []dnsexplain.Zone{{ID: id}}, Problems: []string{"zone " + id + " is empty"}}
	for output, check := range map[string]func(string) bool{
		"svg": func(text string) bool {
			return strings.HasPrefix(text, "<svg ") && strings.Contains(text, "<style>") &&
				strings.Contains(text, "zone dnszones/example.com is empty</text>") && strings.Contains(text, "<desc>Name app.example.com")
		},
		"picture": func(text string) bool {
			var p picture.Picture
			err := json.Unmarshal([]byte(text), &p)
			return err == nil && p.Columns[1].Boxes[0].Resource == id && p.Text == shortIDs(found.String())
		},
	} {
		var out bytes.Buffer
		e := explanation{output: output}
		if err := e.print(&out, found, true, false); !errors.Is(err, failed) || !check(out.String()) {
			t.Errorf("%s: %v\n%s", output, err, out.String())
		}
	}
}
