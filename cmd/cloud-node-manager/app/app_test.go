package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/nodemanager"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// The import of klog starts its flusher.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// TestFlagsOfToday checks the flags of existing manifests, with their defaults.
func TestFlagsOfToday(t *testing.T) {
	flags := Command(none).Flags()
	for name, initial := range map[string]string{
		"node-name": "", "use-instance-metadata": "true", "cloud-config": "", "wait-routes": "false",
		"node-status-update-frequency": "5m0s", "min-resync-period": "0s",
		"kube-api-qps": "20", "kube-api-burst": "30", "kube-api-content-type": "", "kubeconfig": "", "master": "",
		"enable-deprecated-beta-topology-labels": "false", "secure-port": "0", "bind-address": "0.0.0.0",
		"authentication-kubeconfig": "", "authentication-skip-lookup": "false", "authorization-kubeconfig": "",
		"authorization-always-allow-paths": "[/healthz,/readyz,/livez]", "client-ca-file": "", "requestheader-client-ca-file": "",
		"cert-dir": "", "tls-cert-file": "", "tls-private-key-file": "", "tls-min-version": "", "http2-max-streams-per-connection": "0",
		"v": "0", "vmodule": "", "log-flush-frequency": "5s", "version": "false", "logging-format": "text", "log-format": "text",
	} {
		f := flags.Lookup(name)
		switch {
		case f == nil:
			t.Errorf("--%s is not known", name)
		case f.DefValue != initial:
			t.Errorf("--%s is %q without being said, want %q", name, f.DefValue, initial)
		}
	}
}

func none(string) (string, bool) { return "", false }

// TestBadFlags checks that all wrong flags are reported at once, before anything is started.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--node-status-update-frequency=0s --min-resync-period=-1s": {"--node-status-update-frequency 0s: must be more than 0",
			"--min-resync-period -1s: must be 0 or more"},
		"--kube-api-qps=0 --kube-api-burst=-1": {"--kube-api-qps 0: must be more than 0",
			"--kube-api-burst -1: must be more than 0"},
		"--kube-api-content-type=xml":         {`--kube-api-content-type "xml": must be one of application/json, application/vnd.kubernetes.protobuf`},
		"--use-instance-metadata=false":       {"--cloud-config is missing"},
		"--metadata-endpoint=169.254.169.254": {`--metadata-endpoint: metadata endpoint "169.254.169.254": must be http://HOST[:PORT][/PATH]`},
		"--node-name=a_b":                     {`--node-name "a_b" is no name of a node`},
		"--node-list=x --node-name=a --metadata-endpoint=http://b": {"--node-name: not allowed with --node-list",
			"--metadata-endpoint: not allowed with --node-list"},
		"--node-list=x --use-instance-metadata=false": {"--use-instance-metadata=false: not allowed with --node-list"},
		"--secure-port=70000":                         {"--secure-port 70000 must be between"},
		"--logging-format=xml":                        {`Unsupported log format`},
		"more":                                        {`["more"]: no arguments are allowed`},
	} {
		command := Command(none)
		command.SetArgs(strings.Fields(args))
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.ExecuteContext(t.Context())
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

func TestNodeName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ flag, environment, want string }{
		"the flag":        {"NP000001", "other", "np000001"},
		"the environment": {"", "NP000002", "np000002"},
		"the host":        {"", "", strings.ToLower(host)},
	} {
		o := newOptions()
		o.nodeName = c.flag
		got, err := o.node(func(key string) (string, bool) { return c.environment, key == "NODE_NAME" })
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := newOptions().node(func(string) (string, bool) { return "a_b", true }); err == nil ||
		!strings.Contains(err.Error(), `NODE_NAME: "a_b" is no name of a node`) {
		t.Error(err)
	}
}

func TestNodeList(t *testing.T) {
	l := &nodeList{}
	members, err := l.read([]byte("# nodes\n\na http://x/vm/1 # the first\n  b\thttps://y:8443\nc http://x/vm/1"))
	if err != nil || len(members) != 3 || members[0].Node != "a" || members[1].Node != "b" {
		t.Fatal(members, err)
	}
	if members[0].Source != members[2].Source || members[0].Source == members[1].Source {
		t.Error("a service is one source")
	}
	again, err := l.read([]byte("b https://y:8443\nd http://z"))
	if err != nil || again[0] != members[1] {
		t.Error("a node that stays is another member", err)
	}
	if none, err := l.read(nil); err != nil || len(none) != 0 {
		t.Error("no nodes are no mistake", err)
	}
	_, err = l.read([]byte("a\nB http://x\nb x\nc http://x\nc http://y\nd http://x more"))
	for _, want := range []string{
		`line 1: "a": want a node's name and the URL of its metadata service`, `line 2: "B" is no name of a node`,
		`line 3: metadata endpoint "x"`, "line 5: node c stands in line 4 too", "line 6:",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := openList(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--node-list: open") {
		t.Error(err)
	}
}

// TestNodeListIsReadAgain checks that changes of the list apply and that an unreadable list has no
// effect.
func TestNodeListIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodes")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a http://x")
	m, err := openList(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan []nodemanager.Member, 1)
		l := &nodeList{path: file}
		if _, err := l.read([]byte("a http://x")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.watch(ctx, slog.Default(), changes) }()
		expect := func(want ...string) {
			t.Helper()
			<-time.After(3 * reread)
			var got []string
			select {
			case members := <-changes:
				for _, m := range members {
					got = append(got, m.Node)
				}
			default:
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		<-time.After(reread / 2) // between two reads
		expect()
		write("")
		<-time.After(reread)
		write("a http://x\nb ht")
		<-time.After(reread)
		write("a http://x\nb http://y")
		expect("a", "b")
		write("a")
		expect()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		expect()
		write("b http://y")
		expect("b")
		cancel()
		<-ended
	})
}

func TestCloudConfigProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(file, []byte(`{"location":"westeurope","vmType":"nonsense"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openCloud(t.Context(), file, none)
	for _, want := range []string{file, "subscriptionId", "resourceGroup", "vmType"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
