package storage_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/server"
)

// sdk is a module of the official SDK whose tests are meant for Azure.
type sdk struct {
	module string
	// packages are those with tests for Azure.
	packages []string
	// skip are tests that are not for storage accounts, as the flag of go test has them. plain says that tests are functions, and no
	// methods of suites.
	skip  string
	plain bool
}

// sdks are the modules by the service that they are for. The file in testdata with this name has a reason for each test that fails.
var sdks = map[string]sdk{
	// The packages of page blobs are not here: the local Azure has none.
	"blobs": {module: "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
		packages: []string{"appendblob", "blob", "blockblob", "container", "lease", "service"}},
	"queues": {module: "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue", packages: []string{"."}},
	"tables": {module: "github.com/Azure/azure-sdk-for-go/sdk/data/aztables", packages: []string{"."}, skip: "Cosmos|Azurite|/cosmos",
		plain: true},
}

// within is how long the tests of a package may take: those of block blobs sleep and hash for minutes.
const within = 15 * time.Minute

var update = flag.Bool("update", false, "write the list of tests that fail, with the reasons that it has")

func TestBlobs(t *testing.T) { testLive(t, "blobs") }

func TestQueues(t *testing.T) { testLive(t, "queues") }

func TestTables(t *testing.T) { testLive(t, "tables") }

// testLive runs the tests of each package of a module, in the mode in which they ask Azure. The tests that fail must be those of the file
// with the differences, which has a reason for each.
func testLive(t *testing.T, service string) {
	t.Helper()
	if testing.Short() {
		t.Skip("the tests of the SDK take minutes")
	}
	environment := startAzure(t)
	file := "testdata/" + service + ".txt"
	reasons := readReasons(t, file)
	passed, failed := 0, map[string]string{}
	for _, name := range sdks[service].packages {
		for test, ok := range sdks[service].run(t, name, environment) {
			switch key := path.Join(name, test); {
			case ok:
				passed++
				if reasons[key] != "" && !*update {
					t.Errorf("%s passes: remove it from the list", key)
				}
			case reasons[key] == "" && !*update:
				t.Errorf("%s fails", key)
				fallthrough
			default:
				failed[key] = reasons[key]
			}
		}
	}
	t.Logf("%d tests of the SDK pass, %d fail for a reason in the list", passed, len(failed))
	if *update {
		writeReasons(t, file, failed)
	}
}

// startAzure starts a local Azure with two accounts, and returns the environment in which the SDK's tests find them.
func startAzure(t *testing.T) []string {
	t.Helper()
	const loopback = "127.0.0.1:0"
	// One test of tables is for an emulator at its usual port.
	s, err := server.Start(t.Context(), server.Options{Address: loopback, HTTPAddress: loopback, ProxyAddress: loopback,
		DevelopmentStorage: "127.0.0.1:10000", CAFile: filepath.Join(t.TempDir(), "ca.pem"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	environment := []string{"AZURE_RECORD_MODE=live", "PROXY_MANUAL_START=true", "HTTPS_PROXY=" + info.Proxy,
		"SSL_CERT_FILE=" + info.CAFile, "AZURE_TENANT_ID=" + info.Tenant, "AZURE_CLIENT_ID=" + info.ClientID,
		"AZURE_CLIENT_SECRET=" + info.ClientSecret, "AZURE_SUBSCRIPTION_ID=" + info.Subscription}
	group := azure.GroupID(info.Subscription, "sdk")
	err = s.Emulator().Do(func(w behaviour.World) error {
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		// The tests of tables ask for an account of Azure Cosmos DB, even if they do not use it.
		environment = append(environment, "TABLES_COSMOS_ACCOUNT_NAME=none", "TABLES_PRIMARY_COSMOS_ACCOUNT_KEY=bm9uZQ==")
		for prefix, name := range map[string]string{"": "kazfirst", "SECONDARY_": "kazsecond"} {
			id := group.Resource(storage.AccountType, name)
			if err := w.Apply(behaviour.Itself(), id, behaviour.Object{"location": "westeurope", "kind": "StorageV2",
				"sku": behaviour.Object{"name": "Standard_RAGRS"}, "properties": behaviour.Object{"allowBlobPublicAccess": true}}); err != nil {
				return err
			}
			doc, _ := w.Get(id)
			key := storage.Keys(doc)[0]
			environment = append(environment, prefix+"AZURE_STORAGE_ACCOUNT_NAME="+name, prefix+"AZURE_STORAGE_ACCOUNT_KEY="+key)
			if prefix == "" {
				environment = append(environment, "TABLES_STORAGE_ACCOUNT_NAME="+name, "TABLES_PRIMARY_STORAGE_ACCOUNT_KEY="+key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return environment
}

var ended = regexp.MustCompile(`^\s*--- (PASS|FAIL): (Test\w*)(?:/(\S+))?`)

// run builds and runs the tests of a package, and returns which of them passed. A function with other tests is none itself.
func (s sdk) run(t *testing.T, name string, environment []string) map[string]bool {
	t.Helper()
	name = path.Join(s.module, name)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	program := filepath.Join(t.TempDir(), path.Base(name))
	build := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", program, name)
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", name, err, text)
	}
	began := time.Now()
	tests := exec.CommandContext(ctx, program, "-test.v", "-test.timeout="+within.String(), "-test.skip="+s.skip)
	tests.Env, tests.Dir = append(tests.Environ(), environment...), t.TempDir()
	text, err := tests.CombinedOutput()
	results, outer := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		m := ended.FindStringSubmatch(lines.Text())
		switch {
		case m == nil:
		case m[3] != "":
			results[m[3]], outer[m[2]] = m[1] == "PASS", true
		case s.plain:
			results[m[2]] = m[1] == "PASS"
		}
	}
	maps.DeleteFunc(results, func(test string, _ bool) bool { return outer[test] })
	if len(results) == 0 || ctx.Err() != nil {
		t.Fatalf("tests of %s: %v\n%s", name, err, text[max(0, len(text)-4096):])
	}
	t.Logf("%s: %d tests in %s", name, len(results), time.Since(began).Round(time.Second))
	return results
}

// readReasons returns why tests of the SDK fail: lines of a name and a reason.
func readReasons(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if reason = strings.TrimSpace(reason); name == "" || name[0] == '#' {
			continue
		}
		if reason == "" {
			t.Errorf("%s: %s has no reason", file, name)
		}
		reasons[name] = reason
	}
	return reasons
}

func writeReasons(t *testing.T, file string, failed map[string]string) {
	t.Helper()
	text := "# Tests of the SDK that fail with a local Azure, and what it lacks.\n"
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		text += fmt.Sprintf("%s %s\n", name, failed[name])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
