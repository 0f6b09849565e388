package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/local"
	"kaz/internal/local/process"
)

// What is wrong with the command line, or with where a cluster should be, is said in one
// sentence before anything is asked.
func TestExplainRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no Service is named: want NAMESPACE/NAME, such as default/web, or --all"},
		{[]string{"web"}, `"web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"/web"}, `"/web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"default/"}, `"default/": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b/c"}, `"a/b/c": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b", "c/d"}, "a/b c/d: want one Service, or --all"},
		{[]string{"a/b", "--all"}, "--all and a/b: want one of them"},
		{[]string{"a/b", "-o", "xml"}, "--output xml: want text, json or yaml"},
		{[]string{"a/b", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
		{[]string{"a/b", "--timeout", "0"}, "--timeout 0s: must be more than 0"},
		{[]string{"a/b", "--timeout", "-1s"}, "--timeout -1s: must be more than 0"},
		{[]string{"a/b", "--node-filter-requirements", "a in ("}, `--node-filter-requirements "a in (" is no label selector: unable to parse requirement: found '', expected: ',', ')' or identifier`},
		{[]string{"a/b", "--load-balancer-class", "a/b/c"}, `--load-balancer-class "a/b/c": no Service can name it, want a name such as kaz/azure`},
		{[]string{"a/b", "--cluster-name", "a/b"}, `--cluster-name "a/b": must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last: load balancers are named after it`},
		{[]string{"a/b", "--cluster-name", ""}, `--cluster-name "": must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last: load balancers are named after it`},
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

// The cluster that is named wins over the one that the environment happens to name.
func TestExplainLooksInTheDirThatIsNamed(t *testing.T) {
	up := func() local.Status {
		dir := t.TempDir()
		group, err := process.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { group.Close(t.Context(), 0) })
		status := local.Status{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
		text, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{"status.json": text, "kubeconfig": nil} {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
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
		// There is a cluster, and no Azure: so it says where it looks.
		if err == nil || !strings.HasPrefix(err.Error(), "the local Azure of "+test.dir+": ") {
			t.Errorf("%q: %v, want to look in %s", test.args, err, test.dir)
		}
	}
}

// Who gives it too little time is told so, and not that there is no local Azure.
func TestExplainHasTooLittleTime(t *testing.T) {
	dir := t.TempDir()
	group, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	// Somebody listens there and never answers.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	status := local.Status{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	azure := local.AzureInfo{ARM: "http://" + listener.Addr().String(), Token: "x"}
	for file, content := range map[string]any{"status.json": status, "azure-state-running.json": azure} {
		text, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command := explainServiceCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"--all", "--dir", dir, "--timeout", "1ns"})
	err = command.ExecuteContext(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "--timeout 1ns is over: ") || strings.Contains(err.Error(), "no local Azure is running") {
		t.Errorf("%v, want that the time is over", err)
	}
}

// Whose certificates are trusted, azure.json says and not the kubeconfig: the cluster may be in
// one place and its Azure in another.
func TestExplainTrustsTheAzureThatIsNamed(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("HOME", elsewhere)
	t.Setenv("KUBECONFIG", "")
	group, err := process.Open(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	arm := "https://" + listener.Addr().String()
	file := func(dir, name string, content any) string {
		text, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	kubeconfig := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "http://127.0.0.1:1"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
		"users":    []any{map[string]any{"name": "c", "user": map[string]any{}}},
	}
	status := local.Status{Dir: home, Kubeconfig: file(home, "kubeconfig", kubeconfig), CloudConfig: file(home, "azure.json", map[string]any{"resourceManagerEndpoint": arm})}
	file(home, "status.json", status)
	file(home, "azure-state-running.json", local.AzureInfo{ARM: arm, Token: "x", CAFile: "home.pem"})
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
		place := explainPlace{dir: filepath.Join(elsewhere, "none"), kubeconfig: test.kubeconfig, cloudConfig: test.cloudConfig}
		_, err := place.find(t.Context(), "")
		if got := os.Getenv("SSL_CERT_FILE"); err != nil || got != test.trusts {
			t.Errorf("--kubeconfig %s --cloud-config %s: trusts %q, %v, want %q", test.kubeconfig, test.cloudConfig, got, err, test.trusts)
		}
	}
	t.Setenv("SSL_CERT_FILE", "")
	beside := explainPlace{kubeconfig: file(home, "other-kubeconfig", kubeconfig)}
	_, err = beside.find(t.Context(), "")
	if got := os.Getenv("SSL_CERT_FILE"); got != "" || err == nil || !strings.HasPrefix(err.Error(), "--cloud-config is missing") {
		t.Errorf("another kubeconfig in its directory: trusts %q, %v", got, err)
	}
}
