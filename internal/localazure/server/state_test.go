package server

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

func makeGroup(t *testing.T, a *Server, name string) {
	t.Helper()
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := arm.Put(t.Context(),
		azure.Write{ID: azure.GroupID(a.Info().Subscription, name), Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
		t.Fatal(err)
	}
}

// Tokens and addresses stay valid after a restart.
func TestRestart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	o := Options{State: filepath.Join(dir, "state.json"), CAFile: filepath.Join(dir, "ca.pem"), ProxyAddress: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler)}
	first, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	makeGroup(t, first, "rg")
	before := first.Info()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	o.Address, o.HTTPAddress, o.ProxyAddress = client.HostOf(before.ARM), client.HostOf(before.ARMHTTP),
		client.HostOf(before.Proxy)
	second, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	after := second.Info()
	c := clientOf(t, second, false)
	status, body := groups(t, c, before.ARM, before.Subscription, before.Token)
	c.CloseIdleConnections() // the server waits a second for open connections
	if status != http.StatusOK || len(body["value"].([]any)) != 1 {
		t.Errorf("with the token from before the restart: %d %v", status, body)
	}
	if before.AdminToken == after.AdminToken || before.Web == after.Web {
		t.Error("the administrative token of a process, or the token of its web page, outlives it")
	}
	before.Token, after.Token, before.AdminToken, after.AdminToken = "", "", "", ""
	before.Web, after.Web = "", ""
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("changed by the restart:\n%s", diff)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state.json", "state-keys.json", "ca-key.pem"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*running*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The state is saved while the local Azure runs, so that a killed one loses little. [TestRestart] shows that a server with
// a state file has a saver.
func TestSaver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "state.json")
		first := newEmulator(t)
		s := startSaver(first, file, slog.New(slog.DiscardHandler))
		<-time.After(saveDelay) // the save at the start
		group := azure.GroupID(core.DefaultSubscription, "kept")
		err := first.Do(func(w behaviour.World) error {
			return w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"})
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * saveDelay)
		second := newEmulator(t)
		if err := second.LoadFile(file); err != nil {
			t.Fatal(err)
		}
		second.Look(func(w behaviour.World) {
			if _, ok := w.Get(group); !ok {
				t.Error("the group is missing after a start from the saved state")
			}
		})
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}

func newEmulator(t *testing.T) *core.Emulator {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestNamesOfFilesAreCheckedFirst checks that a file that cannot be opened is refused before the server takes a port. The
// port is in use, so the error would be about it otherwise.
func TestNamesOfFilesAreCheckedFirst(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for flag, c := range map[string]struct {
		text   string
		change func(o *Options, file string)
	}{
		"--request-log":       {"", func(o *Options, file string) { o.RequestLog = filepath.Join(file, "log") }},
		"--ca-file":           {"no certificate", func(o *Options, file string) { o.CAFile = file }},
		"--ca-file: mkdir":    {"", func(o *Options, file string) { o.CAFile = filepath.Join(file, "new", "ca.pem") }},
		"--request-log: open": {"", func(o *Options, file string) { o.RequestLog = filepath.Dir(file) }},
		"--ca-file: read":     {"", func(o *Options, file string) { o.CAFile = filepath.Dir(file) }},
	} {
		t.Run(flag, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := Options{Address: taken.Addr().String(), State: filepath.Join(dir, "state", "state.json"), Log: slog.New(slog.DiscardHandler)}
			c.change(&o, file)
			flag, _, _ := strings.Cut(flag, ":")
			a, err := Start(t.Context(), o)
			if err == nil {
				t.Fatal(a.Close(), "it started")
			}
			if !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%q does not name %s and the file", err, flag)
			}
		})
	}
}

func TestDamagedFilesAreRefusedAndKept(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"state":                {"state.json", "{", []string{"--state", "state.json", "not a state file"}},
		"another's state":      {"state.json", `{"format":"terraform"}`, []string{"--state", "state.json", "terraform"}},
		"keys":                 {"state-keys.json", "{}", []string{"state-keys.json", "signingKey", "remove it"}},
		"authority":            {"ca.pem", "x", []string{"--ca-file", "ca.pem", "ca-key.pem"}},
		"authority's key":      {"ca-key.pem", "x", nil},
		"state is a directory": {"state.json/x", "", []string{"--state", "state.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := Start(t.Context(),
				Options{State: filepath.Join(dir, "state.json"), CAFile: filepath.Join(dir, "ca.pem"),
					Log: slog.New(slog.DiscardHandler)})
			if c.want == nil { // a key without a certificate is unused and replaced
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal(a.Close(), "it started")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != c.text {
				t.Errorf("the file is now %q, %v", text, err)
			}
		})
	}
}

func TestStateInUse(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	startServer(t, Options{State: state})
	_, err := Start(t.Context(), Options{State: state, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "--state: another local Azure uses this state") {
		t.Errorf("a second one: %v", err)
	}
	// The files of the first one are unchanged.
	if _, err := os.Stat(client.FileBeside(state)); err != nil {
		t.Error(err)
	}
}

func TestTakenPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = Start(t.Context(), Options{Address: address, ProxyAddress: address})
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range []string{"--address " + address + ": the port is taken", "--proxy-address " + address + ": the port is taken"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// All problems are reported at once, each with the value and the allowed values.
func TestOptionsAreChecked(t *testing.T) {
	identities := write(t, "identities.yaml", `
tenant: contoso
applications:
- {name: a, clientId: "1"}
- clientId: aaaaaaaa-0000-0000-0000-000000000001
  certificates: [nowhere.pem, "-----BEGIN nothing"]
  federatedCredentials: [{issuer: x}]
  roleAssignments: [{scope: here}]
- {clientId: aaaaaaaa-0000-0000-0000-000000000001, system: true}
managedIdentities:
- {clientId: aaaaaaaa-0000-0000-0000-000000000002, secrets: [s]}
users:
- {objectId: me, email: me@example.org}
issuers:
- {issuer: x, keys: {keys: []}}
- {issuer: x}
`)
	_, err := Start(t.Context(), Options{
		Address: "8443", HTTPAddress: "example.org:80", ProxyAddress: "127.0.0.1:99999", Subscription: "mine",
		Latency: "slow", Throttle: "on", AccessControl: "azure",
		Identities: identities, Faults: write(t, "faults.json", `{"faults":[{"fault":"flood"}]}`),
	})
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range []string{
		"--address 8443: want IP:PORT", "--http-address example.org:80: want IP:PORT", "--proxy-address 127.0.0.1:99999: want IP:PORT",
		"--subscription mine: want a GUID", "--latency slow: want azure, off or a factor", "--throttle on: want azure or off",
		"--access-control azure: want on or off",
		`tenant: "contoso" is not a GUID`, `applications[0].clientId: "1" is not a GUID`,
		"applications[1].certificates[0]: open", "applications[1].certificates[1]: there is no PEM certificate",
		"applications[1].federatedCredentials[0]: issuer and subject are required",
		"applications[1].roleAssignments[0]: role is required", "applications[1].roleAssignments[0].scope",
		"applications[2].clientId: aaaaaaaa-0000-0000-0000-000000000001 is used in applications[1].clientId already",
		"applications[2]: system and resourceId are for managed identities", "managedIdentities[0]: a managed identity has no secrets",
		`users[0].objectId: "me" is not a GUID`, "users[0].name is missing",
		"issuers[0]: the JSON web key set has no keys", "issuers[1]: issuer x is in issuers[0] already",
		`fault "flood": want error`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("not reported: %s", part)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if _, err := Start(t.Context(), Options{Identities: write(t, "typo.yaml", "application: []")}); err == nil ||
		!strings.Contains(err.Error(), "typo.yaml") || !strings.Contains(err.Error(), "field application is unknown") {
		t.Errorf("unknown field: %v", err)
	}
}

// Access control enforces the roles of the identities file.
func TestRoles(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0", AccessControl: "on", Identities: write(t, "identities.yaml", `
applications:
- {name: reader, clientId: aaaaaaaa-0000-0000-0000-000000000001, secrets: [s], roleAssignments: [{role: Reader}]}
- {name: unassigned, clientId: aaaaaaaa-0000-0000-0000-000000000002, secrets: [s]}
- name: later
  clientId: aaaaaaaa-0000-0000-0000-000000000004
  roleAssignments: [{role: reader, scope: /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/later}]
managedIdentities:
- name: nodes
  clientId: aaaaaaaa-0000-0000-0000-000000000003
  system: true
  roleAssignments: [{role: acdd72a7-3385-48ef-bd42-f606fba81ae7}]
`)})
	info := a.Info()
	for id, want := range map[string]int{"aaaaaaaa-0000-0000-0000-000000000001": 200, "aaaaaaaa-0000-0000-0000-000000000002": 403,
		"aaaaaaaa-0000-0000-0000-000000000003": 200} {
		app, ok := a.tokens.ByClientID(id)
		if !ok {
			t.Fatalf("no application %s", id)
		}
		token, err := a.tokens.Issue(app, "", info.ARM, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := groups(t, clientOf(t, a, false), info.ARM, info.Subscription, token.Text); status != want {
			t.Errorf("%s: %d %v, want %d", id, status, body, want)
		}
	}
	// A role in a group is effective as soon as the group exists.
	makeGroup(t, a, "later")
	app, _ := a.tokens.ByClientID("aaaaaaaa-0000-0000-0000-000000000004")
	token, err := a.tokens.Issue(app, "", info.ARM, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.ARMHTTP+"/subscriptions/"+info.Subscription+
		"/resourceGroups/later?api-version=2021-04-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Text)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("in a group that was created later: %s", resp.Status)
	}
	if a.system.ClientID != "aaaaaaaa-0000-0000-0000-000000000003" || a.system.Owner {
		t.Errorf("system identity: %+v", a.system)
	}
	_, err = Start(t.Context(), Options{Log: slog.New(slog.DiscardHandler), Identities: write(t, "wrong.yaml", `
applications: [{name: app, clientId: aaaaaaaa-0000-0000-0000-000000000001, roleAssignments: [{role: Emperor}]}]
`)})
	if err == nil || !strings.Contains(err.Error(), `role "Emperor" of app`) || !strings.Contains(err.Error(), "Contributor") {
		t.Errorf("unknown role: %v", err)
	}
}

func TestUnauthorized(t *testing.T) {
	a := startServer(t, Options{})
	info := a.Info()
	for name, c := range map[string]struct{ token, code string }{
		"no token":  {"", "AuthenticationFailed"},
		"bad token": {"fake", "InvalidAuthenticationToken"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := groups(t, clientOf(t, a, false), info.ARM, info.Subscription, c.token)
			if code := behaviour.Text(body, "error.code"); status != 401 || code != c.code {
				t.Errorf("%d %v, want 401 %s", status, body, c.code)
			}
		})
	}
}

// The log has every request, including those to the login and to metadata services.
func TestRequestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logs", "requests.jsonl")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o644)); err != nil { // of an earlier version
		t.Fatal(err)
	}
	a := startServer(t, Options{RequestLog: file})
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("others may read the log: %v, %v", info.Mode(), err)
	}
	info := a.Info()
	groups(t, clientOf(t, a, false), info.ARM, info.Subscription, info.Token)
	resp, err := clientOf(t, a, false).PostForm(info.TokenEndpoint,
		url.Values{"grant_type": {"client_credentials"}, "client_id": {info.ClientID}, "client_secret": {"guess"}, "scope": {"x/.default"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // the test reads only the log
	metadataOf(t, info.ARMHTTP, "/metadata/endpoints?api-version=2022-09-01")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Method, Path, APIVersion, ErrorCode string
		Status                              int
	}
	var got []line
	for text := range strings.Lines(string(text)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got = append(got, l)
	}
	want := []line{
		{"GET", "/subscriptions/" + info.Subscription + "/resourceGroups", "2021-04-01", "", 200},
		{"POST", "/" + info.Tenant + "/oauth2/v2.0/token", "", "AADSTS7000215", 401},
		{"GET", "/metadata/endpoints", "2022-09-01", "", 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(text), "guess") {
		t.Error("a secret is in the log")
	}
}

// A server at all addresses announces a reachable one, and accepts any name.
func TestAllAddresses(t *testing.T) {
	a := startServer(t, Options{Address: "0.0.0.0:0", HTTPAddress: "0.0.0.0:0"})
	if got := client.HostOf(a.Info().ARM); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("arm is at %s", got)
	}
	base := "https://localhost:" + portOf(a.Info().ARM)
	token, err := a.tokens.Issue(a.owner, "", base, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := groups(t, clientOf(t, a, false), base, a.Info().Subscription, token.Text); status != http.StatusOK {
		t.Errorf("%d %v", status, body)
	}
}

// TestStateDirectory checks that Start creates the directory of the state, but not its parent. A missing parent is more
// likely a mistyped path, which must not begin an empty Azure.
func TestStateDirectory(t *testing.T) {
	dir := t.TempDir()
	startServer(t, Options{State: filepath.Join(dir, "new", "state.json")})
	if _, err := os.Stat(filepath.Join(dir, "new", "state-keys.json")); err != nil {
		t.Error(err)
	}
	state := filepath.Join(dir, "mistyped", "new", "state.json")
	_, err := Start(t.Context(), Options{State: state, CAFile: filepath.Join(dir, "ca.pem"), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "--state "+state+": the directory "+filepath.Join(dir, "mistyped")+" does not exist") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"mistyped", "ca.pem"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
}
