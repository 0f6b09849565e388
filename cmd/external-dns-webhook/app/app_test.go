package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/component-base/cli"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/localazure/server"
	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// asProgram has the test binary be the program, in a process of its own with the environment of a container.
const asProgram = "KAZ_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(Command(os.LookupEnv)))
	}
	os.Exit(m.Run())
}

// TestReference compares the flags in docs/reference/external-dns-webhook.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags()
	page.Part{
		File: "../../../docs/reference/external-dns-webhook.md", Name: "flags",
		Hint: "go test ./cmd/external-dns-webhook/app -run TestReference -update",
	}.Check(t, page.Flags(sets.FlagSet("zones"), sets.FlagSet("writes"), sets.FlagSet("shared names"), sets.FlagSet("server")), *update)
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// TestBadFlags checks that all mistakes are named at once, before anything is opened.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"--zone=example.com --zone-type=both":               {`--zone "example.com": must be /subscriptions/`, `--zone-type "both": must be public, private or all`},
		"--zone-resource-group=/subscriptions/s":            {`--zone-resource-group "/subscriptions/s": must be a name or`},
		"--traffic-manager-resource-group=/subscriptions/s": {`--traffic-manager-resource-group "/subscriptions/s": must be a name or`},
		"--zone-subscription=/subscriptions/s":              {`--zone-subscription "/subscriptions/s": must be the id`},
		"--webhook-address=0.0.0.0:8888 --protect=[":        {`--webhook-address "0.0.0.0:8888": must be IP:PORT with a loopback address`, `--protect "["`},
		"--deadline=15s --parallel=0 --default-ttl=0":       {"--deadline 15s: must be from 4s to 14s", "--parallel 0: must be from 1 to 64", "--default-ttl 0"},
		"--max-delete-percent=101 --refresh-interval=0":     {"--max-delete-percent 101: must be from 0 to 100", "--refresh-interval 0s"},
		"--max-writes-per-minute=201 --webhook-address=x":   {"--max-writes-per-minute 201: must be from 0 to 200", `--webhook-address "x"`},
		"--cluster-id=West --lease=1s --unready-after=-1s": {`--cluster-id "West": must have 1 to 32 lower-case`, "--lease 1s: must be at least 1m0s",
			"--unready-after -1s: must not be negative"},
		"more": {"no arguments are allowed"},
	} {
		command := Command(environment(nil))
		command.SetArgs(strings.Fields(args))
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		command.SilenceErrors = true
		err := command.Execute()
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

// TestConfig reads the azure.json of users of ExternalDNS.
func TestConfig(t *testing.T) {
	const base = `"tenantId":"t","subscriptionId":"s","resourceGroup":"g"`
	values := map[string]string{"AZURE_CLIENT_ID": "env", "AZURE_TENANT_ID": "env", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
	for text, want := range map[string]string{
		base + `,"aadClientId":"c","aadClientSecret":"x","useManagedIdentityExtension":true`:               "client secret c",
		base + `,"aadClientId":"c","aadClientSecret":"x","useWorkloadIdentityExtension":true`:              "client secret c",
		base + `,"aadClientId":"msi","aadClientSecret":"msi","useManagedIdentityExtension":true`:           "managed identity ",
		base + `,"useManagedIdentityExtension":true,"userAssignedIdentityID":"u"`:                          "managed identity u",
		base + `,"useWorkloadIdentityExtension":true`:                                                      "workload identity env",
		base + `,"useWorkloadIdentityExtension":true,"useManagedIdentityExtension":true,"aadClientId":"c"`: "workload identity c",
	} {
		o := newOptions()
		o.cloudConfig = filepath.Join(t.TempDir(), "azure.json")
		if err := os.WriteFile(o.cloudConfig, []byte("{"+text+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := o.readConfig(environment(values), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		id := c.AADClientID
		if c.Credential() == cloudconfig.ManagedIdentity {
			id = c.UserAssignedIdentityID
		}
		if got := fmt.Sprintf("%s %s", c.Credential(), id); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestProgram runs the program with the roles that users of ExternalDNS give it, and has it write a record.
func TestProgram(t *testing.T) {
	local, config := serveAzure(t)
	zone := azure.GroupID(local.Info().Subscription, "kaz").Resource(network.DNSZones, "example.com")
	client, err := local.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []azure.ID{azure.GroupID(local.Info().Subscription, "kaz"), zone} {
		body := azure.Document(`{"location":"global"}`)
		if id != zone {
			body = azure.Document(`{"location":"westeurope"}`)
		}
		if _, err := azure.Do(t.Context(), client, azure.Request{Verb: azure.Put, ID: id, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "--cloud-config="+config, "--webhook-address=127.0.0.1:0",
		"--metrics-address=127.0.0.1:0")
	command.Env = []string{asProgram + "=1", "SSL_CERT_FILE=" + local.Info().CAFile}
	log, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address := addressIn(t, log)
	body := []byte(`{"create":[{"dnsName":"app.example.com","recordType":"A","targets":["1.1.1.1"]}]}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/records", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/external.dns.webhook+json;version=1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(answer.Body) // for the message alone
		t.Errorf("%d: %s", answer.StatusCode, text)
	}
	doc, err := client.Get(t.Context(), zone.Child("A", "app"))
	if err != nil || !strings.Contains(string(doc), "1.1.1.1") {
		t.Errorf("%s, %v", doc, err)
	}
	if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
		t.Error(err)
	}
}

// addressIn returns the address that the program logs, and reads the rest of its log.
func addressIn(t *testing.T, log io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := regexp.MustCompile(`serving ExternalDNS.* address"?[=:]"?([0-9.:]+)`).FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		close(found)
	}()
	select {
	case address := <-found:
		if address == "" {
			t.Fatal("the program ended")
		}
		return address
	case <-time.After(time.Minute):
		t.Fatal("the program does not serve")
	}
	return ""
}

// serveAzure starts a local Azure with access control, and returns the path of azure.json.
func serveAzure(t *testing.T) (*server.Server, string) {
	t.Helper()
	const id, secret = "aaaaaaaa-0000-4000-8000-00000000000f", "webhook-secret"
	dir := t.TempDir()
	identities, path := filepath.Join(dir, "identities.yaml"), filepath.Join(dir, "azure.json")
	text := fmt.Sprintf("applications:\n- {clientId: %s, secrets: [%s], roleAssignments: [{role: DNS Zone Contributor}, {role: Reader}]}\n", id, secret)
	if err := os.WriteFile(identities, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Options{AccessControl: "on", Identities: identities, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	config, err := json.Marshal(map[string]string{
		"resourceManagerEndpoint": info.ARM, "cloud": "AzureStackCloud", "tenantId": info.Tenant, "subscriptionId": info.Subscription,
		"resourceGroup": "kaz", "aadClientId": id, "aadClientSecret": secret,
	})
	if err == nil {
		err = os.WriteFile(path, config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, path
}
