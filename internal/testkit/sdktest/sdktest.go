// Package sdktest runs the tests of official SDKs, which are meant for Azure, with a local Azure. Each test must pass, or be in a file with
// the reason why it fails. A helper of tests.
package sdktest

import (
	"bufio"
	"bytes"
	"context"
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

// Module is a module of an SDK with tests.
type Module struct {
	// Path is the path of the module. Packages are those of its packages that have tests for Azure, "" for the module's own.
	Path     string
	Packages []string
	// Skip has the tests that are not run, as the flag of go test has them.
	Skip string
	// Plain says that the tests are functions, and not methods of suites.
	Plain bool
	// Within is how long the tests of a package may take.
	Within time.Duration
	// Reasons is the file with the tests that fail. Update writes it, with the reasons that it has.
	Reasons string
	Update  bool
}

// Account is a storage account for tests.
type Account struct {
	Name, SKU string
	// Key is the first of its keys.
	Key string
}

// Start starts a local Azure with accounts, which receive their keys. It returns the environment in which the SDK's tests find it.
func Start(t testing.TB, accounts ...*Account) []string {
	t.Helper()
	const loopback = "127.0.0.1:0"
	s, err := server.Start(t.Context(), server.Options{Address: loopback, HTTPAddress: loopback, ProxyAddress: loopback,
		CAFile: filepath.Join(t.TempDir(), "ca.pem"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	group := azure.GroupID(info.Subscription, "sdk")
	err = s.Emulator().Do(func(w behaviour.World) error {
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		for _, a := range accounts {
			id := group.Resource(storage.AccountType, a.Name)
			if err := w.Apply(behaviour.Itself(), id, behaviour.Object{"location": "westeurope", "kind": "StorageV2",
				"sku": behaviour.Object{"name": a.SKU}, "properties": behaviour.Object{"allowBlobPublicAccess": true}}); err != nil {
				return err
			}
			doc, _ := w.Get(id)
			a.Key = storage.Keys(doc)[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"AZURE_RECORD_MODE=live", "PROXY_MANUAL_START=true", "HTTPS_PROXY=" + info.Proxy, "SSL_CERT_FILE=" + info.CAFile,
		"AZURE_TENANT_ID=" + info.Tenant, "AZURE_CLIENT_ID=" + info.ClientID, "AZURE_CLIENT_SECRET=" + info.ClientSecret,
		"AZURE_SUBSCRIPTION_ID=" + info.Subscription}
}

// Run runs the tests of each package, in the mode in which they ask Azure. The tests that fail must be those with a reason.
func (m Module) Run(t *testing.T, environment []string) {
	t.Helper()
	reasons := m.readReasons(t)
	passed, failed := 0, map[string]string{}
	for _, name := range m.Packages {
		for test, ok := range m.results(t, name, environment) {
			switch key := path.Join(name, test); {
			case ok:
				passed++
				if reasons[key] != "" && !m.Update {
					t.Errorf("%s passes: remove it from the list", key)
				}
			case reasons[key] == "" && !m.Update:
				t.Errorf("%s fails", key)
				fallthrough
			default:
				failed[key] = reasons[key]
			}
		}
	}
	t.Logf("%d tests of the SDK pass, %d fail for a reason in the list", passed, len(failed))
	if m.Update {
		m.writeReasons(t, failed)
	}
}

var ended = regexp.MustCompile(`^\s*--- (PASS|FAIL): (Test\w*)(?:/(\S+))?`)

// results builds and runs the tests of a package, and returns which of them passed. What contains other tests is none itself.
func (m Module) results(t *testing.T, name string, environment []string) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), m.Within)
	defer cancel()
	program := filepath.Join(t.TempDir(), "tests")
	build := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", program, path.Join(m.Path, name))
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", name, err, text)
	}
	began := time.Now()
	tests := exec.CommandContext(ctx, program, "-test.v", "-test.timeout="+m.Within.String(), "-test.skip="+m.Skip)
	tests.Env, tests.Dir = append(tests.Environ(), environment...), t.TempDir()
	text, err := tests.CombinedOutput()
	results, parents := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		found := ended.FindStringSubmatch(lines.Text())
		switch {
		case found == nil:
		case found[3] != "":
			results[found[3]], parents[found[2]] = found[1] == "PASS", true
		case m.Plain:
			results[found[2]] = found[1] == "PASS"
		}
	}
	maps.DeleteFunc(results, func(test string, _ bool) bool { return parents[test] })
	if len(results) == 0 || ctx.Err() != nil {
		t.Fatalf("tests of %s: %v\n%s", path.Join(m.Path, name), err, text[max(0, len(text)-4096):])
	}
	if testing.Verbose() && err != nil {
		t.Logf("%s", text)
	}
	t.Logf("%s: %d tests in %s", path.Join(m.Path, name), len(results), time.Since(began).Round(time.Second))
	return results
}

// readReasons returns why tests of the SDK fail: lines of a name and a reason.
func (m Module) readReasons(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(m.Reasons)
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
			t.Errorf("%s: %s has no reason", m.Reasons, name)
		}
		reasons[name] = reason
	}
	return reasons
}

func (m Module) writeReasons(t *testing.T, failed map[string]string) {
	t.Helper()
	text := "# Tests of the SDK " + path.Base(m.Path) + " that fail with a local Azure, and what it lacks.\n"
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		text += fmt.Sprintf("%s %s\n", name, failed[name])
	}
	if err := os.WriteFile(m.Reasons, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
