package app

import (
	"flag"
	"io"
	"strings"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/azuredisk-csi-driver.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/azuredisk-csi-driver.md", Name: "flags",
		Hint: "go test ./cmd/azuredisk-csi-driver/app -run TestReference -update",
	}.Check(t, page.Flags(sets["driver"], sets["node"], sets["kubernetes"]), *update)
}

func none(string) (string, bool) { return "", false }

// TestBadFlags checks that all mistakes are named at once, before anything is opened.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--mode=both --volume-attach-limit=-2 --max-concurrent-format=0": {`--mode "both": must be one of controller, node, all`,
			"--volume-attach-limit -2: must be -1 or more", "--max-concurrent-format 0: must be 1 or more"},
		"--mode=node":    {"--nodeid is missing"},
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
	d := &driver{options: newOptions(), lookup: func(name string) (string, bool) { return "/x", name == "AZURE_CREDENTIAL_FILE" }}
	if _, err := d.cloudConfig(t.Context()); err == nil || !strings.Contains(err.Error(), "cloud configuration /x: open cloud config") {
		t.Error(err)
	}
}
