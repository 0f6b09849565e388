package app

import (
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kaz/cmd/internal/driver"
	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/azuredisk-csi-driver.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/azuredisk-csi-driver.md", Name: "flags",
		Hint: "go test ./cmd/azuredisk-csi-driver/app -run TestReference -update",
	}.Check(t, page.Flags(sets["driver"], sets["node"], sets["diagnostics"], sets["kubernetes"]), *update)
}

func none(string) (string, bool) { return "", false }

// TestBadFlags checks that all mistakes are named at once, before anything is opened.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--mode=both --volume-attach-limit=-2 --max-concurrent-format=0": {`--mode "both": must be one of controller, node, all`,
			"--volume-attach-limit -2: must be -1 or more", "--max-concurrent-format 0: must be 1 or more"},
		"--mode=node": {"--nodeid is missing"},
		"--profiling --metrics-address= --taint-removal-initial-delay-seconds=-1": {"--profiling: needs --metrics-address",
			"--taint-removal-initial-delay-seconds -1: must be 0 or more"},
		"--metrics-address=29604":                    {`--metrics-address "29604": must be HOST:PORT or :PORT`},
		"--endpoint=http://x --mode=node --nodeid=n": {`--endpoint "http://x": want unix://PATH or tcp://HOST:PORT`},
		"--endpoint=tcp://x --mode=node --nodeid=n":  {`--endpoint "tcp://x": want unix://PATH or tcp://HOST:PORT`},
		"more": {`["more"]: no arguments are allowed`},
		"--mode=controller --kubelet-registration-path=/csi.sock": {
			`--kubelet-registration-path "/csi.sock": only a node service is registered`},
		"--drivername= ": {"--drivername is missing"},
	} {
		err := execute(t, args)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

// TestFlagsOfTheOtherDriver checks that manifests of the driver that this one replaces start it.
func TestFlagsOfTheOtherDriver(t *testing.T) {
	err := execute(t, "--mode=both --metrics-address=0.0.0.0:29604 --user-agent-suffix=OSS-kubectl --disable-avset-nodes=false "+
		"--vm-type= --drivername=disk.csi.azure.com --cloud-config-secret-name=azure-cloud-provider "+
		"--cloud-config-secret-namespace=kube-system --custom-user-agent= --allow-empty-cloud-config=false "+
		"--enable-traffic-manager=false --traffic-manager-port=7788 --enable-otel-tracing=false --check-disk-lun-collision=true -v=5")
	if err == nil || strings.Contains(err.Error(), "unknown") {
		t.Error(err)
	}
}

// TestWrongEnvironment checks the errors of flags that are right in form and wrong here.
func TestWrongEnvironment(t *testing.T) {
	for args, want := range map[string]string{
		"--mode=node --nodeid=n --metrics-address=nowhere.invalid:1": "--metrics-address: listen on nowhere.invalid:1",
		"--pre-stop-hook":                                              "$KUBE_NODE_NAME are missing",
		"--pre-stop-hook --mode=node --nodeid=n":                       "--pre-stop-hook: needs the Kubernetes API",
		"--tracing-config-file=/nowhere --mode=node --nodeid=n":        "--tracing-config-file: ",
		"--endpoint=unix:///proc/none/csi.sock --mode=node --nodeid=n": `endpoint "unix:///proc/none/csi.sock": `,
		"--endpoint=unix://etc/passwd --mode=node --nodeid=n":          "/etc/passwd exists and is not a socket",
		"--kubeconfig=/nowhere":                                        `--kubeconfig "/nowhere"`,
		"--mode=controller --cloud-config=/nowhere/azure.json":         "cloud configuration /nowhere/azure.json",
	} {
		o := newOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, set := range o.flags().FlagSets {
			flags.AddFlagSet(set)
		}
		err := errors.Join(flags.Parse(strings.Fields(args)), o.validate())
		if err != nil {
			t.Fatal(args, err)
		}
		if err = run(t.Context(), o, none, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func execute(t *testing.T, args string) error {
	t.Helper()
	command := Command(none)
	command.SetArgs(strings.Fields(args))
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	return command.ExecuteContext(t.Context())
}

// TestMissingCloudConfig checks that the error names the file.
func TestMissingCloudConfig(t *testing.T) {
	p := &driver.Process{Options: &newOptions().Options,
		Lookup: func(name string) (string, bool) { return "/x", name == "AZURE_CREDENTIAL_FILE" }}
	if _, err := p.CloudConfig(t.Context()); err == nil || !strings.Contains(err.Error(), "cloud configuration /x: open cloud config") {
		t.Error(err)
	}
}
