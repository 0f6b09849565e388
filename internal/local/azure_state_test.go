package local

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func makeGroup(t *testing.T, a *Azure, name string) {
	t.Helper()
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := door.Put(t.Context(), azure.Write{ID: azure.GroupID(a.Info().Subscription, name), Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
		t.Fatal(err)
	}
}

// What clients were given stays valid when a local Azure is started again.
func TestRestart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	o := AzureOptions{State: filepath.Join(dir, "state.json"), CAFile: filepath.Join(dir, "ca.pem"), ProxyAddress: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}
	first, err := StartAzure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	makeGroup(t, first, "rg")
	before := first.Info()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	o.Address, o.HTTPAddress, o.ProxyAddress = hostOf(before.ARM), hostOf(before.ARMHTTP), hostOf(before.Proxy)
	second, err := StartAzure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	after := second.Info()
	status, body := groups(t, client(t, second, false), before.ARM, before.Subscription, before.Token)
	if status != http.StatusOK || len(body["value"].([]any)) != 1 {
		t.Errorf("with the token of before: %d %v", status, body)
	}
	before.Token, after.Token = "", ""
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("other than before:\n%s", diff)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state.json", "state-keys.json", "ca-key.pem"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want it to be its owner's alone", name, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*running*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A local Azure that is killed has lost next to nothing.
func TestStateIsSavedWhileItRuns(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	a := startAzure(t, AzureOptions{State: state})
	makeGroup(t, a, "kept")
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(state); err == nil && strings.Contains(string(text), "/resourceGroups/kept") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not saved")
		}
		<-tick.C
	}
	copied := filepath.Join(t.TempDir(), "state.json")
	text, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b := startAzure(t, AzureOptions{State: copied})
	b.look(func(w behaviour.World) {
		if _, ok := w.Get(azure.GroupID(w.Subscription(), "kept")); !ok {
			t.Error("not there after a start from it")
		}
	})
}

func TestDamagedFilesAreRefusedAndKept(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"state":            {"state.json", "{", []string{"--state", "state.json", "not a state file"}},
		"another's state":  {"state.json", `{"format":"terraform"}`, []string{"--state", "state.json", "terraform"}},
		"keys":             {"state-keys.json", "{}", []string{"state-keys.json", "signingKey", "remove it"}},
		"authority":        {"ca.pem", "x", []string{"--ca-file", "ca.pem", "ca-key.pem"}},
		"authority's key":  {"ca-key.pem", "x", nil},
		"state is a place": {"state.json/x", "", []string{"--state", "state.json"}},
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
			a, err := StartAzure(t.Context(), AzureOptions{State: filepath.Join(dir, "state.json"), CAFile: filepath.Join(dir, "ca.pem"), Log: slog.New(slog.DiscardHandler)})
			if c.want == nil { // a key without a certificate is of no use to anybody
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
	startAzure(t, AzureOptions{State: state})
	_, err := StartAzure(t.Context(), AzureOptions{State: state, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "--state: another local Azure uses this state") {
		t.Errorf("a second one: %v", err)
	}
	// The first one's files are as they were.
	if _, err := os.Stat(announcementOf(state)); err != nil {
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
	_, err = StartAzure(t.Context(), AzureOptions{Address: address, ProxyAddress: address})
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range []string{"--address " + address + ": the port is taken", "--proxy-address " + address + ": the port is taken"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// All problems are reported at once, each with what it is about and what is allowed.
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
issuers:
- {issuer: x, keys: {keys: []}}
- {issuer: x}
`)
	_, err := StartAzure(t.Context(), AzureOptions{
		Address: "8443", HTTPAddress: "example.org:80", ProxyAddress: "127.0.0.1:99999", Subscription: "mine",
		Latency: "slow", Throttle: "on", AccessControl: "azure",
		Identities: identities, Faults: write(t, "faults.json", `{"faults":[{"fault":"flood"}]}`),
	})
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range []string{
		"--address 8443: want IP:PORT", "--http-address example.org:80: want IP:PORT", "--proxy-address 127.0.0.1:99999: want IP:PORT",
		"--subscription mine: want a GUID", "--latency slow: want azure, off or a factor", "--throttle on: want azure or off", "--access-control azure: want on or off",
		`tenant: "contoso" is not a GUID`, `applications[0].clientId: "1" is not a GUID`,
		"applications[1].certificates[0]: open", "applications[1].certificates[1]: there is no PEM certificate", "applications[1].federatedCredentials[0]: issuer and subject are required",
		"applications[1].roleAssignments[0]: role is required", "applications[1].roleAssignments[0].scope", "applications[2].clientId: aaaaaaaa-0000-0000-0000-000000000001 is used in applications[1].clientId already",
		"applications[2]: system and resourceId are for managed identities", "managedIdentities[0]: a managed identity has no secrets", "issuers[0]: the JSON web key set has no keys", "issuers[1]: issuer x is in issuers[0] already",
		`fault "flood": want error`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("not reported: %s", part)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if _, err := StartAzure(t.Context(), AzureOptions{Identities: write(t, "typo.yaml", "application: []")}); err == nil || !strings.Contains(err.Error(), "typo.yaml") || !strings.Contains(err.Error(), `"application"`) {
		t.Errorf("unknown field: %v", err)
	}
}

// Roles of the identities file are what access control goes by.
func TestRoles(t *testing.T) {
	a := startAzure(t, AzureOptions{ProxyAddress: "127.0.0.1:0", AccessControl: "on", Identities: write(t, "identities.yaml", `
applications:
- {name: reader, clientId: aaaaaaaa-0000-0000-0000-000000000001, secrets: [s], roleAssignments: [{role: Reader}]}
- {name: nobody, clientId: aaaaaaaa-0000-0000-0000-000000000002, secrets: [s]}
- name: later
  clientId: aaaaaaaa-0000-0000-0000-000000000004
  roleAssignments: [{role: reader, scope: /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/later}]
managedIdentities:
- {name: nodes, clientId: aaaaaaaa-0000-0000-0000-000000000003, system: true, roleAssignments: [{role: acdd72a7-3385-48ef-bd42-f606fba81ae7}]}
`)})
	info := a.Info()
	for id, want := range map[string]int{"aaaaaaaa-0000-0000-0000-000000000001": 200, "aaaaaaaa-0000-0000-0000-000000000002": 403, "aaaaaaaa-0000-0000-0000-000000000003": 200} {
		app, ok := a.tokens.ByClientID(id)
		if !ok {
			t.Fatalf("no application %s", id)
		}
		token, err := a.tokens.Issue(app, "", info.ARM, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := groups(t, client(t, a, false), info.ARM, info.Subscription, token.Text); status != want {
			t.Errorf("%s: %d %v, want %d", id, status, body, want)
		}
	}
	// A role in a group counts as soon as there is the group.
	makeGroup(t, a, "later")
	app, _ := a.tokens.ByClientID("aaaaaaaa-0000-0000-0000-000000000004")
	token, err := a.tokens.Issue(app, "", info.ARM, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.ARMHTTP+"/subscriptions/"+info.Subscription+"/resourceGroups/later?api-version=2021-04-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Text)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("in a group that was made later: %s", resp.Status)
	}
	if a.system.ClientID != "aaaaaaaa-0000-0000-0000-000000000003" || a.system.Owner {
		t.Errorf("system identity: %+v", a.system)
	}
	_, err = StartAzure(t.Context(), AzureOptions{Log: slog.New(slog.DiscardHandler), Identities: write(t, "wrong.yaml", `
applications: [{name: app, clientId: aaaaaaaa-0000-0000-0000-000000000001, roleAssignments: [{role: Emperor}]}]
`)})
	if err == nil || !strings.Contains(err.Error(), `role "Emperor" of app`) || !strings.Contains(err.Error(), "Contributor") {
		t.Errorf("unknown role: %v", err)
	}
}

func TestUnauthorized(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	info := a.Info()
	for name, c := range map[string]struct{ token, code string }{
		"no token":  {"", "AuthenticationFailed"},
		"bad token": {"fake", "InvalidAuthenticationToken"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := groups(t, client(t, a, false), info.ARM, info.Subscription, c.token)
			if code := behaviour.Text(body, "error.code"); status != 401 || code != c.code {
				t.Errorf("%d %v, want 401 %s", status, body, c.code)
			}
		})
	}
}

// Every request is in the log, those to the login and the like as well.
func TestRequestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logs", "requests.jsonl")
	a := startAzure(t, AzureOptions{RequestLog: file})
	info := a.Info()
	groups(t, client(t, a, false), info.ARM, info.Subscription, info.Token)
	resp, err := client(t, a, false).PostForm(info.TokenEndpoint, url.Values{"grant_type": {"client_credentials"}, "client_id": {info.ClientID}, "client_secret": {"guess"}, "scope": {"x/.default"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // only the log counts
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

// A server for all addresses tells one at which it can be reached, and is the same
// by any name.
func TestAllAddresses(t *testing.T) {
	a := startAzure(t, AzureOptions{Address: "0.0.0.0:0", HTTPAddress: "0.0.0.0:0"})
	if got := hostOf(a.Info().ARM); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("arm is at %s", got)
	}
	base := "https://localhost:" + portOf(a.Info().ARM)
	token, err := a.tokens.Issue(a.owner, "", base, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := groups(t, client(t, a, false), base, a.Info().Subscription, token.Text); status != http.StatusOK {
		t.Errorf("%d %v", status, body)
	}
}

// A directory for the state is made, and not the ones above it: those are more likely mistyped,
// and who continues with what there was must not get an empty Azure.
func TestADirectoryIsMadeForTheState(t *testing.T) {
	dir := t.TempDir()
	startAzure(t, AzureOptions{State: filepath.Join(dir, "new", "state.json")})
	if _, err := os.Stat(filepath.Join(dir, "new", "state-keys.json")); err != nil {
		t.Error(err)
	}
	state := filepath.Join(dir, "mistyped", "new", "state.json")
	_, err := StartAzure(t.Context(), AzureOptions{State: state, CAFile: filepath.Join(dir, "ca.pem"), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "--state "+state+": the directory "+filepath.Join(dir, "mistyped")+" is not there") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"mistyped", "ca.pem"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}
