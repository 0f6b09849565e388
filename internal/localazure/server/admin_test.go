package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
)

// TestHealth checks that the health answers without a token, with nothing secret.
func TestHealth(t *testing.T) {
	a := startServer(t, Options{})
	c := clientOf(t, a, false)
	for _, base := range []string{a.Info().ARM, a.Info().ARMHTTP} {
		for method, want := range map[string]int{http.MethodGet: 200, http.MethodPost: 405} {
			r, err := http.NewRequestWithContext(t.Context(), method, base+"/health", nil)
			if err != nil {
				t.Fatal(err)
			}
			status, body := readJSON(t, c, r)
			if status != want || want == 200 && (len(body) != 2 || body["state"] != "serving" || body["version"] == "") {
				t.Errorf("%s %s: %d %v", method, base, status, body)
			}
		}
	}
	stopping := &Server{closing: make(chan struct{})}
	close(stopping.closing)
	w := httptest.NewRecorder()
	health{stopping}.Handler(healthPath).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, healthPath, nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "stopping") {
		t.Errorf("while it stops: %d %s", w.Code, w.Body)
	}
}

// TestAdminIsGuarded checks which requests reach the administration.
func TestAdminIsGuarded(t *testing.T) {
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0"})
	admits := func(change func(r *http.Request)) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+client.AdminPath+"status", nil)
		r.RemoteAddr = "127.0.0.1:1234"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})))
		r.Header.Set("Authorization", "Bearer "+a.Info().AdminToken)
		change(r)
		w := httptest.NewRecorder()
		a.admin.Handler(r.URL.Path).ServeHTTP(w, r)
		return w.Code
	}
	for name, test := range map[string]struct {
		change func(r *http.Request)
		want   int
	}{
		"as it should be":       {func(*http.Request) {}, 200},
		"IPv6":                  {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:1234", "localhost:80" }, 200},
		"no token":              {func(r *http.Request) { r.Header.Del("Authorization") }, 403},
		"token of the owner":    {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+a.Info().Token) }, 403},
		"no bearer":             {func(r *http.Request) { r.Header.Set("Authorization", a.Info().AdminToken) }, 403},
		"another machine":       {func(r *http.Request) { r.RemoteAddr = "10.0.0.4:1234" }, 403},
		"name of a web page":    {func(r *http.Request) { r.Host = "example.com" }, 403},
		"host behind the proxy": {func(r *http.Request) { r.Host = "management.azure.com" }, 403},
		"no address":            {func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		"unknown":               {func(r *http.Request) { r.URL.Path = client.AdminPath + "nothing" }, 404},
		"another method":        {func(r *http.Request) { r.Method = http.MethodPut }, 404},
	} {
		if got := admits(test.change); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://management.azure.com"+client.AdminPath+"status", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.Info().AdminToken)
	if status, body := readJSON(t, clientOf(t, a, true), r); status != http.StatusForbidden {
		t.Errorf("through the proxy: %d %v", status, body)
	}
}

// adminOf returns a client of a local Azure with its administrative token.
func adminOf(t *testing.T, a *Server) *client.Client {
	t.Helper()
	c, err := client.New(a.Info())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestFaultsWhileItRuns checks that rules apply from when they are added until they are removed.
func TestFaultsWhileItRuns(t *testing.T) {
	a := startServer(t, Options{})
	c, ctx := adminOf(t, a), t.Context()
	read := func() int {
		status, _ := groups(t, clientOf(t, a, false), a.Info().ARM, a.Info().Subscription, a.Info().Token)
		return status
	}
	rule := core.Fault{Type: "Microsoft.Resources/resourceGroups", Fault: core.FaultError, Status: 429}
	first, err := c.AddFault(ctx, rule)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(); got != 429 {
		t.Errorf("with a rule: %d", got)
	}
	rule.Status = 503
	second, err := c.AddFault(ctx, rule)
	if err != nil || second.ID == first.ID {
		t.Fatalf("%+v, %v", second, err)
	}
	if rest, err := c.RemoveFault(ctx, first.ID); err != nil || len(rest) != 1 || rest[0].ID != second.ID {
		t.Errorf("%+v, %v", rest, err)
	}
	if got := read(); got != 503 {
		t.Errorf("with the other rule: %d", got)
	}
	if all, err := c.Faults(ctx); err != nil || len(all) != 1 || all[0].Applied != 1 || all[0].Matched != 1 || all[0].Status != 503 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := c.RemoveFault(ctx, first.ID); err == nil || !strings.Contains(err.Error(), "there is no fault rule with this number (404)") {
		t.Errorf("a rule that was removed: %v", err)
	}
	if _, err := c.AddFault(ctx, core.Fault{Fault: "fire"}); err == nil || !strings.Contains(err.Error(), `fault "fire": want error,`) {
		t.Errorf("an unknown fault: %v", err)
	}
	if removed, err := c.ClearFaults(ctx); err != nil || len(removed) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
	if got := read(); got != 200 {
		t.Errorf("without rules: %d", got)
	}
}

// TestSettingsWhileItRuns checks that settings change together or not at all.
func TestSettingsWhileItRuns(t *testing.T) {
	a := startServer(t, Options{Quotas: []string{"cores=10"}})
	c, ctx := adminOf(t, a), t.Context()
	latency, throttle, wrong := "0.5", "azure", "fast"
	s, err := c.Set(ctx, client.Settings{Latency: &latency, Throttle: &throttle, Quotas: []string{"Cores=4", "standardDSv5Family=2"}})
	want := map[string]int{"Cores": 4, "standardDSv5Family": 2}
	if err != nil || s.Latency != "0.5" || s.Throttle != "azure" || len(s.Quotas) != 2 || s.Quotas["Cores"] != want["Cores"] {
		t.Fatalf("%+v, %v", s, err)
	}
	off := "off"
	_, err = c.Set(ctx, client.Settings{Latency: &wrong, Throttle: &off, Quotas: []string{"cores=many"}})
	if err == nil || !strings.Contains(err.Error(), "--latency fast: want azure, off or a factor") ||
		!strings.Contains(err.Error(), "--quota cores=many: want NAME=N") {
		t.Errorf("wrong settings: %v", err)
	}
	if s, err := c.Status(ctx); err != nil || s.Throttle != "azure" || s.Latency != "0.5" {
		t.Errorf("after a refused change: %+v, %v", s, err)
	}
	full := "azure"
	if s, err := c.Set(ctx, client.Settings{Latency: &full}); err != nil || s.Latency != "azure" || s.Throttle != "azure" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := c.Set(ctx, client.Settings{Latency: &off, Throttle: &off}); err != nil || s.Latency != "off" || s.Throttle != "off" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestReset checks that a reset removes locked resources as well, and leaves what a first start has.
func TestReset(t *testing.T) {
	identities := filepath.Join(t.TempDir(), "identities.yaml")
	text := `applications: [{name: one, clientId: aaaaaaaa-0000-0000-0000-000000000001, roleAssignments: [{role: Reader}]}]`
	if err := os.WriteFile(identities, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startServer(t, Options{Identities: identities, State: filepath.Join(t.TempDir(), "state.json")})
	c, ctx := adminOf(t, a), t.Context()
	first, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	group := "/subscriptions/" + a.Info().Subscription + "/resourceGroups/rg"
	for _, put := range [][2]string{
		{group, `{"location":"westeurope"}`},
		{group + "/providers/Microsoft.KeyVault/vaults/kazvault", `{"location":"westeurope","properties":{"tenantId":"` + a.Info().Tenant +
			`","sku":{"family":"A","name":"standard"},"accessPolicies":[]}}`},
		{group + "/providers/Microsoft.Network/virtualNetworks/net", `{"location":"westeurope","properties":{"addressSpace":
			{"addressPrefixes":["10.0.0.0/16"]}}}`},
		{group + "/providers/Microsoft.Authorization/locks/keep", `{"properties":{"level":"CanNotDelete"}}`},
	} {
		if _, err := c.Put(ctx, put[0], []byte(put[1])); err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.Status(ctx)
	if err != nil || before.Resources < first.Resources+4 {
		t.Fatalf("%+v, %v; at first %+v", before, err, first)
	}
	if removed, err := c.Reset(ctx); err != nil || removed.Resources != before.Resources {
		t.Errorf("%+v, %v; before %+v", removed, err, before)
	}
	after, err := c.Status(ctx)
	if err != nil || after.Resources != first.Resources {
		t.Errorf("after the reset %+v, %v; at first %+v", after, err, first)
	}
	if all, err := c.List(ctx, "roleAssignments"); err != nil || len(all) != 1 {
		t.Errorf("role assignments of the identities: %v, %v", all, err)
	}
	if _, err := c.Put(ctx, group, []byte(`{"location":"westeurope"}`)); err != nil {
		t.Errorf("a group after the reset: %v", err)
	}
}

// TestAdminOfOthers checks that a description without an administrative token is answered with the reason.
func TestAdminOfOthers(t *testing.T) {
	c, err := client.New(client.Info{ARM: "https://127.0.0.1:1", Token: "token"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "only the user who started it has it") {
		t.Errorf("without a token: %v", err)
	}
}
