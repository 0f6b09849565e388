package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kaz/internal/component/release"
	"kaz/internal/localcluster/controlplane"
)

// TestMain lets the test binary run as kaz, which commands start in processes of their own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"local", "bundle", "cluster"}, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestVersion checks that --version prints the version, although the components define a version flag of another type.
func TestVersion(t *testing.T) {
	for args, want := range map[string]string{
		"--version": "kaz", "cloud-controller-manager --version": "cloud-controller-manager",
		"cloud-node-manager --version": "cloud-node-manager", "azuredisk-csi-driver --version": "azuredisk-csi-driver",
		"azurefile-csi-driver --version=true": "azurefile-csi-driver",
	} {
		out, err := runRoot(t, strings.Fields(args)...)
		if err := libraryFlags.Set("version", "false"); err != nil { // all commands share it
			t.Fatal(err)
		}
		if want += " version " + release.Version() + "\n"; err != nil || out != want {
			t.Errorf("%s: %q, %v, want %q", args, out, err, want)
		}
	}
}

// TestVersionReport checks that kaz version says what was built, of which commit, and which releases of Kubernetes it runs. The formats
// say the same.
func TestVersionReport(t *testing.T) {
	var report versionReport
	out, err := runRoot(t, "version", "-o", "json")
	if err := errors.Join(err, json.Unmarshal([]byte(out), &report)); err != nil {
		t.Fatal(err)
	}
	releases, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	if report.Version != release.Version() || !strings.HasPrefix(report.Go, "go1.") || report.Platform != runtime.GOOS+"/"+runtime.GOARCH ||
		!slices.Equal(report.Kubernetes, releases) {
		t.Errorf("%+v", report)
	}
	report.Commit, report.Date = "7dd1b62f", "2026-11-29T12:00:00Z"
	var text strings.Builder
	if err := report.write(&text, "kaz"); err != nil {
		t.Fatal(err)
	}
	want := "kaz version " + report.Version + "\ncommit      7dd1b62f\ndate        2026-11-29T12:00:00Z\nGo          " + report.Go +
		"\nplatform    " + report.Platform + "\nKubernetes  " + strings.Join(releases, ", ") + "\n"
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", &text, want)
	}
	if out, err := runRoot(t, "version"); err != nil || !strings.HasPrefix(out, "kaz version "+release.Version()+"\n") {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := runRoot(t, "version", "-o", "yaml"); err != nil || !strings.Contains(out, "\nversion: "+release.Version()+"\n") {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := runRoot(t, "version", "-o", "xml"); err == nil || err.Error() != "--output xml: want text, json or yaml" {
		t.Error(err)
	}
}

// runRoot runs kaz and returns what it prints.
func runRoot(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := rootCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// TestHelpHasNoFlagsOfLibraries checks that the help of a command has only flags that the command knows.
func TestHelpHasNoFlagsOfLibraries(t *testing.T) {
	for _, args := range []string{
		"--help", "local up --help", "explain service --help", "check --help", "cluster deploy --help", "verify azure --help",
		"version --help",
	} {
		out, err := runRoot(t, strings.Fields(args)...)
		if err != nil || strings.Contains(out, "log-flush-frequency") || strings.Contains(out, "version[=true]") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if _, err := runRoot(t, "local", "status", "--version"); err == nil || !strings.Contains(err.Error(), "unknown flag: --version") {
		t.Errorf("--version of a command: %v", err)
	}
}

// TestWrongValues checks that a flag with a wrong value is answered with what is allowed.
func TestWrongValues(t *testing.T) {
	for args, want := range map[string]string{
		"local up --nodes three":                     `--nodes "three": want a whole number`,
		"explain service --all --timeout 5":          `--timeout "5": want a duration such as 30s, 5m or 1h`,
		"check --timeout soon":                       `--timeout "soon": want a duration such as 30s, 5m or 1h`,
		"cluster scale dev general --count many":     `--count "many": want a whole number`,
		"cloud-node-manager --wait-routes=perhaps":   `--wait-routes "perhaps": want true or false`,
		"azuredisk-csi-driver --kube-api-qps=plenty": `--kube-api-qps "plenty": want a number such as 0.5`,
	} {
		if _, err := runRoot(t, strings.Fields(args)...); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestLinksRunComponents checks that a link to kaz with the name of a component runs that component. Any other name runs kaz.
func TestLinksRunComponents(t *testing.T) {
	for _, test := range []struct{ line, want []string }{
		{[]string{"/usr/local/bin/cloud-node-manager", "--v=2"}, []string{"cloud-node-manager", "--v=2"}},
		{[]string{"azuredisk-csi-driver"}, []string{"azuredisk-csi-driver"}},
		{[]string{"azurefile-csi-driver"}, []string{"azurefile-csi-driver"}},
		{[]string{"/usr/local/bin/kaz", "local", "up"}, []string{"local", "up"}},
		{[]string{"kubectl-kaz", "explain"}, []string{"explain"}},
	} {
		if got := arguments(test.line); !slices.Equal(got, test.want) {
			t.Errorf("%q runs %q, want %q", test.line, got, test.want)
		}
	}
}

// TestNoSuchCommand checks that a missing or unknown command is an error. Exit status 0 of kaz explain means that nothing
// would change.
func TestNoSuchCommand(t *testing.T) {
	const explained = "gateway, httproute, ingress, name, nodegroup, service, tcproute, tlsroute, volume"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"bogus"}, `unknown command "bogus" for "kaz"`},
		{[]string{"check", "web"}, "web: want no argument"},
		{[]string{"check", "--before", "breakfast"}, "--before breakfast: want install, switch, upgrade"},
		{[]string{"shadow", "web", "--for", "-1s", "--every", "1s"},
			"web: want no argument\n--for -1s: want a duration that is not negative\n--every 1s: want 10s or more"},
		{[]string{"shadow", "--skip", "pods", "--txt-owner-id", "me", "--nodes", "2"}, "--skip pods: want services, nodes, routes, disks, " +
			"file-shares\n--nodes \"2\": must be MIN:MAX:NAME, such as 1:10:pool\n--txt-owner-id me: want --zone-resource-group, too"},
		{[]string{"shadow", "--gateway-id", "gate"},
			`--gateway-id "gate": must be /subscriptions/.../providers/Microsoft.Network/applicationGateways/NAME`},
		{[]string{"check", "-o", "xml"}, "--output xml: want text, wide, json or yaml"},
		{[]string{"explain"}, "explain: no command given: want " + explained},
		{[]string{"explain", "--all"}, "explain: no command given: want " + explained},
		{[]string{"explain", "services", "default/web", "-o", "json"}, `unknown command "services" for "kaz explain": want ` + explained},
		{[]string{"local"}, "local: no command given: want azure, down, load, logs, prebuild, ssh, status, up"},
		{[]string{"local", "prebuild", "--arch", "mips64"}, "--arch mips64: want one of amd64, arm64"},
		{[]string{"local", "load"}, "load: no argument given: want one archive with images or several"},
		{[]string{"local", "logs"},
			"logs: no argument given: want one component or real node, such as cloud-controller-manager or nodes0-000000"},
		{[]string{"local", "logs", "a", "b"},
			"logs: a b: want one component or real node, such as cloud-controller-manager or nodes0-000000"},
		{[]string{"local", "ssh"}, "ssh: no argument given: want a real node, such as nodes0-000000"},
		{[]string{"local", "azure", "show"}, "show: no argument given: want one resource, by its name, TYPE/NAME or id"},
		{[]string{"local", "azure", "list", "a", "b"}, "list: a b: want one type, such as loadBalancers, or none for all"},
		{[]string{"local", "azure", "fault"}, "fault: no command given: want add, clear, list, remove"},
		{[]string{"local", "azure", "fault", "ad"}, `unknown command "ad" for "kaz local azure fault": want add, clear, list, remove`},
		{[]string{"local", "azure", "fault", "remove"},
			"remove: no argument given: want one number of a rule, which kaz local azure fault list shows"},
		{[]string{"local", "azure", "fault", "remove", "one"},
			"remove: one: want one number of a rule, which kaz local azure fault list shows"},
		{[]string{"local", "azure", "set"}, "set: nothing to change: want --latency, --throttle or --quota"},
		{[]string{"local", "azure", "--wait", "5s"}, "--wait: only --detach waits; add it"},
		{[]string{"local", "azure", "--detach", "--wait=-5s"}, "--wait -5s: want a duration that is not negative"},
		{[]string{"local", "azure", "--dir", "d", "--state", "s"}, "--state s: --dir has the state; give one of both"},
		{[]string{"local", "azure", "delete", "--dir", "d"},
			"all resources and keys of the local Azure in d would be lost: confirm with --yes"},
		{[]string{"local", "azure", "fault", "add", "--type", "loadBalancer"},
			`--type: type "loadBalancer" is unknown; did you mean loadBalancers?`},
		{[]string{"local", "azure", "fault", "add", "--value", "text"},
			`--value "text": want JSON, such as 5 or '"text"': invalid character 'e' in literal true (expecting 'r')`},
		{[]string{"bundle"}, "bundle: no command given: want create, layer, load, values, verify"},
		{[]string{"bundle", "create"}, "create: no argument given: want the file of the bundle"},
		{[]string{"bundle", "create", "b"}, "--key is missing: want a file"},
		{[]string{"bundle", "create", "b", "--platform", "windows/amd64", "--kubernetes", "1.36", "-o", "xml"},
			"--platform windows/amd64: want linux/amd64 or linux/arm64\n--kubernetes 1.36: want a version such as 1.36.3\n" +
				"--output xml: want text, json or yaml"},
		{[]string{"bundle", "verify", "b"}, "--key is missing: want a file"},
		{[]string{"bundle", "verify", "b", "--key", "nowhere.pub"}, "--key: open nowhere.pub: no such file or directory"},
		{[]string{"bundle", "verify", "b", "-o", "xml"}, "--output xml: want text, json or yaml"},
		{[]string{"bundle", "verify", "b", "--key", "main.go"}, "--key main.go: it has no PEM block PUBLIC KEY"},
		{[]string{"bundle", "load", "b", "--key", "k"}, "nothing to load to: want --registry, --dir or both"},
		{[]string{"bundle", "load", "b", "--registry", "mirror"},
			"--registry mirror: want a registry with or without a path, such as registry.example.com/kaz"},
		{[]string{"bundle", "values", "b"}, "--registry is missing"},
		{[]string{"verify"}, "verify: no command given: want azure, clean, replay"},
		{[]string{"verify", "azure", "--only", "disk", "--list"},
			"--only disk: no area or probe has this name; want some of network, disks, " +
				"machines, storage, dns, deployments, vaults, scalesets, api, gateways, or a name of --list"},
		{[]string{"verify", "azure", "--yes"}, "--location is missing: want the location of the resources, such as westeurope"},
		{[]string{"verify", "azure", "-o", "pdf"}, "--output pdf: want text, json, html"},
		{[]string{"verify", "azure", "--report", "report"}, "--report report: want a name that ends with .txt, .json or .html"},
		{[]string{"verify", "azure", "--lifetime", "5m"}, "--lifetime 5m0s: want at least 1h"},
		{[]string{"verify", "azure", "--location", "westeurope", "--subscription", "mine"},
			`--subscription "mine": want the id of a subscription, such as 00000000-0000-0000-0000-000000000001`},
		{[]string{"verify", "azure", "--location", "westeurope", "--cloud", "Moon"},
			"--cloud Moon: no such cloud is known; --cloud-config may name the endpoint of another one"},
		{[]string{"verify", "clean", "--local", "--cloud-config", "azure.json"},
			"--local and --cloud-config select different Azures: give one of both"},
		{[]string{"verify", "clean", "-o", "xml"}, "--output xml: want text, json or yaml"},
		{[]string{"verify", "replay"}, "replay: no argument given: want the file that --cassette of kaz verify azure wrote"},
		{[]string{"verify", "replay", "nowhere.yaml"}, "open nowhere.yaml: no such file or directory"},
		{[]string{"local", "bogus"}, `unknown command "bogus" for "kaz local": want azure, down, load, logs, prebuild, ssh, status, up`},
	} {
		command := rootCommand()
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(test.args)
		if err := command.ExecuteContext(t.Context()); err == nil || err.Error() != test.want || out.Len() > 0 {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out.String())
		}
	}
}
