package app

import (
	"flag"
	"io"
	"strings"
	"testing"

	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/azurefile-csi-driver.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/azurefile-csi-driver.md", Name: "flags",
		Hint: "go test ./cmd/azurefile-csi-driver/app -run TestReference -update",
	}.Check(t, page.Flags(sets["driver"], sets["node"], sets["diagnostics"], sets["kubernetes"]), *update)
}

// execute parses and validates arguments.
func execute(t *testing.T, args string) error {
	t.Helper()
	command := Command(func(string) (string, bool) { return "", false })
	command.SetArgs(strings.Fields(args))
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	return command.ExecuteContext(t.Context())
}

// TestBadFlags checks that all mistakes are named at once, before anything is opened.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--mode=both --mount-permissions=999 --inline-volume-secret-authz=x": {`--mode "both": must be one of controller, node, all`,
			`--mount-permissions "999": want a mode in octal digits`, `--inline-volume-secret-authz "x": must be one of off, warn, enforce`},
		"--mode=node":                 {"--nodeid is missing"},
		"--fsgroup-change-policy=x":   {`--fsgroup-change-policy "x": must be one of None, OnRootMismatch, Always`},
		"--profiling":                 {"--profiling: needs --metrics-address"},
		"--metrics-address=29614":     {`--metrics-address "29614": must be HOST:PORT or :PORT`},
		"--endpoint=http://x":         {`--endpoint "http://x": want unix://PATH or tcp://HOST:PORT`},
		"--drivername= --nodeid=node": {"--drivername is missing"},
		"more":                        {`["more"]: no arguments are allowed`},
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
	err := execute(t, "--mode=both --v=5 --endpoint=unix:///csi/csi.sock --kubeconfig= --metrics-address=0.0.0.0:29614 "+
		"--drivername=file.csi.azure.com --custom-user-agent= --user-agent-suffix=OSS-helm --cloud-config-secret-name=azure-cloud-provider "+
		"--cloud-config-secret-namespace=kube-system --allow-empty-cloud-config=true --nodeid=n --mount-permissions=0777 "+
		"--enable-volume-mount-group=true --enable-get-volume-stats=true --enable-vhd=true --enable-azurefile-proxy=true "+
		"--azurefile-proxy-endpoint=unix:///csi/azurefile-proxy.sock --enable-kata-cc-mount=false --max-procs=2 "+
		"--sas-token-expiration-minutes=1440 --wait-for-azcopy-timeout-minutes=19 --vol-stats-cache-expire-in-minutes=10 "+
		"--append-closetimeo-option=false --append-nosharesock-option=true --append-noresvport-option=true --append-actimeo-option=true "+
		"--skip-matching-tag-cache-expire-in-minutes=30 --print-volume-stats-call-logs=false --remove-smb-mount-on-windows=true "+
		"--use-win-cim-api=true --enable-windows-host-process=false --append-mount-error-help-link=true "+
		"--allow-inline-volume-key-access-with-identity=false --kube-api-qps=25 --kube-api-burst=50 --fsgroup-change-policy=")
	if err == nil || strings.Contains(err.Error(), "unknown") || !strings.Contains(err.Error(), `--mode "both"`) {
		t.Errorf("%v, want only the mode to be wrong", err)
	}
}
