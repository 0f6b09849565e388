package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
)

func nothing(string) (string, bool) { return "", false }

// TestFlagsThatUsersPass checks that the flags of existing manifests are present with the expected
// defaults.
func TestFlagsThatUsersPass(t *testing.T) {
	flags := Command(nothing).Flags()
	for _, want := range []struct{ name, initial, ours string }{
		{"cloud-provider", "azure", ""},
		{"cloud-config", "", ""},
		{"cluster-name", "kubernetes", ""},
		{"cluster-cidr", "", ""},
		{"allocate-node-cidrs", "false", ""},
		{"configure-cloud-routes", "true", ""},
		{"cidr-allocator-type", "RangeAllocator", ""},
		{"service-cluster-ip-range", "", ""},
		{"node-cidr-mask-size", "24", ""},
		{"node-cidr-mask-size-ipv4", "0", ""},
		{"node-cidr-mask-size-ipv6", "0", ""},
		{"controllers", "[*]", ""},
		{"controller-start-interval", "0s", ""},
		{"min-resync-period", "12h0m0s", ""},
		{"node-monitor-period", "5s", ""},
		{"node-status-update-frequency", "5m0s", ""},
		{"route-reconciliation-period", "10s", ""},
		{"node-filter-requirements", "", ""},
		{"enable-dynamic-reloading", "false", ""},
		{"cloud-config-secret-name", "", ""},
		{"cloud-config-secret-namespace", "kube-system", ""},
		{"cloud-config-key", "cloud-config", ""},
		{"leader-elect", "true", ""},
		{"leader-elect-lease-duration", "15s", ""},
		{"leader-elect-renew-deadline", "10s", ""},
		{"leader-elect-retry-period", "2s", ""},
		{"leader-elect-resource-lock", "leases", ""},
		{"leader-elect-resource-name", "cloud-controller-manager", ""},
		{"leader-elect-resource-namespace", "kube-system", ""},
		{"enable-leader-migration", "false", ""},
		{"leader-migration-config", "", ""},
		{"kube-api-content-type", "application/vnd.kubernetes.protobuf", ""},
		{"kubeconfig", "", ""},
		{"master", "", ""},
		{"use-service-account-credentials", "false", ""},
		{"external-cloud-volume-plugin", "", ""},
		{"feature-gates", "", ""},
		{"secure-port", "10258", ""},
		{"bind-address", "0.0.0.0", ""},
		{"cert-dir", "", ""},
		{"tls-cert-file", "", ""},
		{"tls-private-key-file", "", ""},
		{"tls-min-version", "", ""},
		{"tls-cipher-suites", "[]", ""},
		{"tls-sni-cert-key", "[]", ""},
		{"http2-max-streams-per-connection", "0", ""},
		{"disable-http2-serving", "false", ""},
		{"permit-address-sharing", "false", ""},
		{"permit-port-sharing", "false", ""},
		{"authentication-kubeconfig", "", ""},
		{"authentication-skip-lookup", "false", ""},
		{"authentication-token-webhook-cache-ttl", "10s", ""},
		{"authentication-tolerate-lookup-failure", "false", ""},
		{"authorization-always-allow-paths", "[/healthz,/readyz,/livez]", ""},
		{"authorization-kubeconfig", "", ""},
		{"authorization-webhook-cache-authorized-ttl", "10s", ""},
		{"authorization-webhook-cache-unauthorized-ttl", "10s", ""},
		{"client-ca-file", "", ""},
		{"requestheader-allowed-names", "[]", ""},
		{"requestheader-client-ca-file", "", ""},
		{"requestheader-extra-headers-prefix", "[x-remote-extra-]", ""},
		{"requestheader-group-headers", "[x-remote-group]", ""},
		{"requestheader-username-headers", "[x-remote-user]", ""},
		{"profiling", "true", ""},
		{"contention-profiling", "false", ""},
		{"log-format", "text", ""},
		{"log-flush-frequency", "5s", ""},
		{"v", "0", ""},
		{"vmodule", "", ""},
		{"version", "false", ""},

		{"concurrent-service-syncs", "1", "64"}, // Services share writes: docs/decisions/concurrent-service-syncs.md
		{"kube-api-qps", "20", "200"},           // enough for many Services and nodes
		{"kube-api-burst", "30", "400"},
	} {
		t.Run(want.name, func(t *testing.T) {
			f := flags.Lookup(want.name)
			if f == nil {
				t.Fatal("it is not there")
			}
			initial := want.initial
			if want.ours != "" {
				initial = want.ours
			}
			if f.DefValue != initial {
				t.Errorf("its default is %q, want %q", f.DefValue, initial)
			}
		})
	}
}

// TestOldLogFormat checks that old flag names still work and are hidden from help.
func TestOldLogFormat(t *testing.T) {
	command := Command(nothing)
	if err := command.ParseFlags([]string{"--log-format=json"}); err != nil {
		t.Fatal(err)
	}
	if got := command.Flags().Lookup("logging-format").Value.String(); got != "json" {
		t.Errorf("--logging-format is %q", got)
	}
	if !command.Flags().Lookup("log-format").Hidden {
		t.Error("help shows both")
	}
}

// TestInertFlags checks that a flag without effect causes one warning, and only if it is set.
func TestInertFlags(t *testing.T) {
	for _, inert := range inertFlags() {
		t.Run(inert.name, func(t *testing.T) {
			command := Command(nothing)
			f := command.Flags().Lookup(inert.name)
			if f == nil {
				t.Fatal("there is no such flag")
			}
			if f.Deprecated != "" {
				t.Errorf("it warns a second time: %s", f.Deprecated)
			}
			if lines := warnings(t, command.Flags()); len(lines) > 0 {
				t.Errorf("without being given it warns: %q", lines)
			}
			if err := command.ParseFlags([]string{"--" + inert.name + "=" + example(f)}); err != nil {
				t.Fatal(err)
			}
			lines := warnings(t, command.Flags())
			if len(lines) != 1 || !strings.Contains(lines[0], "--"+inert.name) || !strings.Contains(lines[0], inert.why) {
				t.Errorf("it warns %q, want once with the reason %q", lines, inert.why)
			}
		})
	}
}

func example(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true"
	case "int":
		return "1"
	case "ip":
		return "127.0.0.1"
	}
	return "x"
}

// warnings returns the logged warnings of the flags.
func warnings(t *testing.T, flags *pflag.FlagSet) []string {
	t.Helper()
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	warnOfFlags(flags)
	return strings.Split(strings.TrimSpace(text.String()), "\n")[:strings.Count(text.String(), "\n")]
}

// TestWrongFlags checks that the error of a wrong flag names the flag, the value and what is allowed.
func TestWrongFlags(t *testing.T) {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // many command lines in one process
	defer func() { logsapi.ReapplyHandling = logsapi.ReapplyHandlingError }()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--cloud-provider=aws"}, `--cloud-provider "aws": must be azure`},
		{[]string{"--node-filter-requirements=a=b=c"}, "--node-filter-requirements"},
		{[]string{"--cluster-name=a/b"}, `--cluster-name "a/b": must be 1 to 71 letters`},
		{[]string{"--cluster-name="}, `--cluster-name "": must be`},
		{[]string{"--cluster-name=a/b", "--dry-run"}, `--cluster-name "a/b": must be`},
		{[]string{"--load-balancer-class=kaz/azure,Foo_Bar!"},
			`--load-balancer-class "Foo_Bar!": not a valid class name; an example is kaz/azure`},
		{[]string{"--load-balancer-class=a/b/c"}, `--load-balancer-class "a/b/c"`},
		{[]string{"--drift-repair-period=-5s"}, "--drift-repair-period -5s: must not be negative; 0 disables drift repair"},
		{[]string{"--concurrent-service-syncs=0"}, "--concurrent-service-syncs 0: must be at least 1"},
		{[]string{"--concurrent-service-syncs=-1"}, "--concurrent-service-syncs -1: must be at least 1"},
		{[]string{"--tracing-config-file=/does/not/exist"}, "--tracing-config-file"},
		{[]string{"--controllers=nonsense"},
			`--controllers "nonsense": allowed: * for all that are on by default, NAME to enable one, -NAME to disable one, where NAME is one of cloud-node-controller, `},
		{[]string{"--controllers=*,-cloud-node,-nonsense"}, `--controllers "-nonsense": allowed`},
		{[]string{"--kubeconfig=/does/not/exist"},
			`--kubeconfig "/does/not/exist", --master "http://127.0.0.1:1": stat /does/not/exist: no such file or directory`},
		{[]string{"--secure-port=10258", "--tls-cert-file=/does/not/exist", "--tls-private-key-file=/nor/this"},
			`--tls-cert-file "/does/not/exist", --tls-private-key-file "/nor/this": open /does/not/exist: no such file or directory`},
		{[]string{"--no-such-flag"}, "no-such-flag"},
		{[]string{"argument"}, "argument"},
		{nil, "--cloud-config"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			command := Command(nothing)
			command.SetArgs(append([]string{"--secure-port=0", "--leader-elect=false", "--master=http://127.0.0.1:1"}, c.args...))
			command.SilenceUsage, command.SilenceErrors = true, true
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	var text bytes.Buffer
	command := Command(nothing)
	command.SetOut(&text)
	command.SetArgs([]string{"--help"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Examples:", "--cloud-config=/etc/kubernetes/azure.json", "--node-filter-requirements string",
		"--tracing-config-file string"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("help does not say %q", want)
		}
	}
	if strings.Contains(text.String(), "--log-format ") {
		t.Error("help shows the old name of --logging-format")
	}
}

const flagsPage = "../../../docs/reference/cloud-controller-manager.md"

// TestReferenceOfFlags compares docs/reference/cloud-controller-manager.md with the flags.
func TestReferenceOfFlags(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
	Command(nothing).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		initial := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			initial = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.Name, initial, meaning(f))
	})
	b.WriteString("\n")
	checkPage(t, flagsPage, "flags", b.String())
	b.Reset()
	b.WriteString("\n| flag | why it has no effect |\n|---|---|\n")
	for _, inert := range inertFlags() {
		fmt.Fprintf(&b, "| `--%s` | %s |\n", inert.name, inert.why)
	}
	b.WriteString("\n")
	checkPage(t, flagsPage, "flags without effect", b.String())
}

func meaning(f *pflag.Flag) string {
	for _, inert := range inertFlags() {
		if inert.name == f.Name {
			return "Has no effect: " + inert.why + "."
		}
	}
	text := strings.Join(strings.Fields(f.Usage), " ")
	text = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(text)
	if f.Deprecated != "" {
		text += " Deprecated: " + f.Deprecated + "."
	}
	return text
}
