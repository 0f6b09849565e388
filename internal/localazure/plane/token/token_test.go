package token

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
)

const (
	tenant = "11111111-1111-1111-1111-111111111111"
	guest  = "22222222-2222-2222-2222-222222222222"
	client = "aaaaaaaa-0000-0000-0000-000000000001"
	arm    = "https://management.core.windows.net/"
)

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func start(t testing.TB, change func(*Config)) *Service {
	t.Helper()
	c := Config{
		Tenant: tenant, Guests: []string{guest}, Key: testKey(), Authority: "https://127.0.0.1:8443",
		Applications: []Application{{ClientID: client, ObjectID: "aaaaaaaa-0000-0000-0000-00000000000a",
			Secrets: []string{"old", "p&ss=word"}, Owner: true}},
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a form, or a GET without one.
func ask(t testing.TB, s *Service, path string, form url.Values) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "https://login.example"+path, nil)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, "https://login.example"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	h := s.Handler(r.URL.Path)
	if h == nil {
		t.Fatalf("no handler for %s", path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, body
}

func form(change ...string) url.Values {
	f := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {"p&ss=word"},
		"scope": {arm + "/.default openid offline_access profile"}}
	for i := 0; i < len(change); i += 2 {
		f.Set(change[i], change[i+1])
		if change[i+1] == "" {
			f.Del(change[i])
		}
	}
	return f
}

func TestForms(t *testing.T) {
	s := start(t, nil)
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		texts  bool // numbers as texts
		tenant string
	}{
		"v2":                {"/" + tenant + "/oauth2/v2.0/token", form(), false, tenant},
		"v2, upper case":    {"/" + strings.ToUpper(tenant) + "/OAuth2/V2.0/Token", form(), false, strings.ToUpper(tenant)},
		"v1":                {"/" + tenant + "/oauth2/token", form("scope", "", "resource", arm), true, tenant},
		"v1 with a scope":   {"/" + tenant + "/oauth2/token/", form(), true, tenant},
		"adfs":              {"/adfs/oauth2/token", form(), false, tenant},
		"adfs, a resource":  {"/adfs/oauth2/token", form("scope", "", "resource", arm), false, tenant},
		"a guest's tenant":  {"/" + guest + "/oauth2/v2.0/token", form(), false, guest},
		"the first secret":  {"/" + tenant + "/oauth2/v2.0/token", form("client_secret", "old"), false, tenant},
		"client upper case": {"/" + tenant + "/oauth2/v2.0/token", form("client_id", strings.ToUpper(client)), false, tenant},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := ask(t, s, c.path, c.form)
			if status != 200 || body["token_type"] != "Bearer" {
				t.Fatalf("%d %v", status, body)
			}
			if _, texts := body["expires_in"].(string); texts != c.texts {
				t.Errorf("expires_in is %#v", body["expires_in"])
			}
			p, err := s.Authenticate(body["access_token"].(string))
			if err != nil || p.ApplicationID != client || p.Tenant != c.tenant || !p.Owner {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := start(t, nil)
	v2 := "/" + tenant + "/oauth2/v2.0/token"
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		status int
		kind   string
		code   float64
	}{
		"unknown tenant":       {"/contoso.com/oauth2/v2.0/token", form(), 400, "invalid_request", 90002},
		"no tenant":            {"/common/oauth2/v2.0/token", form(), 400, "invalid_request", 50059},
		"not a POST":           {v2, nil, 400, "invalid_request", 900561},
		"no grant":             {v2, form("grant_type", ""), 400, "invalid_request", 900144},
		"another grant":        {v2, form("grant_type", "password"), 400, "unsupported_grant_type", 70003},
		"no client":            {v2, form("client_id", ""), 400, "invalid_request", 900144},
		"unknown client":       {v2, form("client_id", tenant), 400, "unauthorized_client", 700016},
		"wrong secret":         {v2, form("client_secret", "guess"), 401, "invalid_client", 7000215},
		"no secret":            {v2, form("client_secret", ""), 401, "invalid_client", 7000218},
		"no scope":             {v2, form("scope", ""), 400, "invalid_request", 900144},
		"not a default scope":  {v2, form("scope", arm+"user_impersonation"), 400, "invalid_scope", 1002012},
		"no resource":          {"/" + tenant + "/oauth2/token", form("scope", ""), 400, "invalid_request", 900144},
		"assertion's type":     {v2, form("client_assertion", "x"), 400, "invalid_request", 90023},
		"assertion is nothing": {v2, form("client_assertion", "x", "client_assertion_type", assertionType), 401, "invalid_client", 50027},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := ask(t, s, c.path, c.form)
			codes, _ := body["error_codes"].([]any)
			if status != c.status || body["error"] != c.kind || len(codes) != 1 || codes[0] != c.code {
				t.Fatalf("%d %v, want %d %s %v", status, body, c.status, c.kind, c.code)
			}
			for _, name := range []string{"error_description", "timestamp", "trace_id", "correlation_id", "error_uri"} {
				if body[name] == "" || body[name] == nil {
					t.Errorf("no %s in %v", name, body)
				}
			}
		})
	}
}

func TestBasicAuthentication(t *testing.T) {
	s := start(t, nil)
	f := form("client_id", "", "client_secret", "")
	r := httptest.NewRequest(http.MethodPost, "/"+tenant+"/oauth2/v2.0/token", strings.NewReader(f.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, url.QueryEscape("p&ss=word"))
	w := httptest.NewRecorder()
	s.Handler(r.URL.Path).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// change replaces claims of a token and signs it again.
func change(t *testing.T, key *rsa.PrivateKey, text string, with claims) string {
	t.Helper()
	j, err := parseJWT(text)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(j.claims, with)
	text, err = sign(key, j.header, j.claims)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAuthenticate(t *testing.T) {
	s := start(t, func(c *Config) { c.Ports = []string{"8443"} })
	good, err := s.Issue(s.Applications[0], "", arm, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good.Text, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"`+s.keyID+`"}`)) + "." + parts[1] + "."
	for name, c := range map[string]struct{ token, code string }{
		"good":                {good.Text, ""},
		"for this server":     {change(t, s.Key, good.Text, claims{"aud": "https://127.0.0.1:8443"}), ""},
		"by another name":     {change(t, s.Key, good.Text, claims{"aud": "https://host.docker.internal:8443/"}), ""},
		"for another port":    {change(t, s.Key, good.Text, claims{"aud": "https://127.0.0.1:8444"}), "InvalidAuthenticationTokenAudience"},
		"for no port":         {change(t, s.Key, good.Text, claims{"aud": "https://127.0.0.1"}), "InvalidAuthenticationTokenAudience"},
		"for several":         {change(t, s.Key, good.Text, claims{"aud": []string{"x", "https://management.azure.com"}}), ""},
		"for China":           {change(t, s.Key, good.Text, claims{"aud": "https://management.core.chinacloudapi.cn/"}), ""},
		"not a token":         {"any", "InvalidAuthenticationToken"},
		"nothing":             {"..", "InvalidAuthenticationToken"},
		"another's signature": {change(t, other, good.Text, nil), "InvalidAuthenticationToken"},
		"no signature":        {unsigned, "InvalidAuthenticationToken"},
		"signature cut":       {good.Text[:len(good.Text)-4], "InvalidAuthenticationToken"},
		"no end":              {change(t, s.Key, good.Text, claims{"exp": nil}), "ExpiredAuthenticationToken"},
		"ended": {change(t, s.Key, good.Text, claims{"exp": time.Now().Add(-time.Second).Unix()}),
			"ExpiredAuthenticationToken"},
		"another tenant": {change(t, s.Key, good.Text, claims{"tid": client, "iss": issuerOf(client)}),
			"InvalidAuthenticationTokenTenant"},
		"another issuer": {change(t, s.Key, good.Text, claims{"iss": "https://issuer/"}), "InvalidAuthenticationTokenTenant"},
		"for a vault": {change(t, s.Key, good.Text, claims{"aud": "https://vault.azure.net"}),
			"InvalidAuthenticationTokenAudience"},
		"without audience": {change(t, s.Key, good.Text, claims{"aud": nil}), "InvalidAuthenticationTokenAudience"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // found tokens are cached
				_, err := s.Authenticate(c.token)
				refused, _ := errors.AsType[*behaviour.Error](err)
				switch {
				case c.code == "" && err != nil:
					t.Error(err)
				case c.code != "" && (refused == nil || refused.Code != c.code || refused.Status != 401):
					t.Errorf("%v, want 401 %s", err, c.code)
				}
			}
		})
	}
}

func TestTokensEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(c *Config) { c.Lifetime = time.Minute })
		_, body := ask(t, s, "/"+tenant+"/oauth2/v2.0/token", form())
		text, _ := body["access_token"].(string)
		if _, err := s.Authenticate(text); err != nil {
			t.Fatal(err)
		}
		<-time.After(59 * time.Second)
		if _, err := s.Authenticate(text); err != nil {
			t.Errorf("within its lifetime: %v", err)
		}
		<-time.After(time.Second)
		_, err := s.Authenticate(text)
		if refused, ok := errors.AsType[*behaviour.Error](err); !ok || refused.Code != "ExpiredAuthenticationToken" {
			t.Errorf("after it: %v", err)
		}
	})
}

// Clients can verify a token with the published keys.
func TestPublishedKeys(t *testing.T) {
	s := start(t, nil)
	_, set := ask(t, s, "/"+tenant+"/discovery/v2.0/keys", nil)
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := s.Issue(s.Applications[0], "", "api://anything", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	j, err := parseJWT(issued.Text)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.verify(j); err != nil {
		t.Error(err)
	}
}

func TestDiscovery(t *testing.T) {
	s := start(t, nil)
	for path, want := range map[string]map[string]any{
		"/" + tenant + "/v2.0/.well-known/openid-configuration": {
			"issuer":         "https://login.example/" + tenant + "/v2.0",
			"token_endpoint": "https://login.example/" + tenant + "/oauth2/v2.0/token",
			"jwks_uri":       "https://login.example/" + tenant + "/discovery/v2.0/keys",
		},
		"/" + tenant + "/.well-known/openid-configuration": {
			"issuer":         "https://sts.windows.net/" + tenant + "/",
			"token_endpoint": "https://login.example/" + tenant + "/oauth2/token",
		},
		"/adfs/.well-known/openid-configuration": {
			"issuer":         "https://login.example/adfs",
			"token_endpoint": "https://login.example/adfs/oauth2/token",
		},
		"/common/v2.0/.well-known/openid-configuration":  {"issuer": "https://login.example/{tenantid}/v2.0"},
		"/unknown/v2.0/.well-known/openid-configuration": {"error": "invalid_request"},
		"/common/discovery/instance?api-version=1.1&authorization_endpoint=https://login.microsoftonline.com/" + tenant +
			"/oauth2/v2.0/authorize": {
			"tenant_discovery_endpoint": "https://login.microsoftonline.com/" + tenant + "/v2.0/.well-known/openid-configuration",
		},
		"/common/discovery/instance?api-version=1.1&authorization_endpoint=https://127.0.0.1:8443/" + tenant + "/oauth2/v2.0/authorize": {
			"tenant_discovery_endpoint": "https://127.0.0.1:8443/" + tenant + "/v2.0/.well-known/openid-configuration",
		},
		"/common/discovery/instance?api-version=1.1&authorization_endpoint=https://evil.example/x": {"error": "invalid_instance"},
		"/common/discovery/instance": {"error": "invalid_request"},
	} {
		_, body := ask(t, s, path, nil)
		for name, value := range want {
			if body[name] != value {
				t.Errorf("%s: %s is %v, want %v", path, name, body[name], value)
			}
		}
	}
	// Plain HTTP requests get the login address with TLS.
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/adfs/.well-known/openid-configuration", nil)
	w := httptest.NewRecorder()
	s.Handler(r.URL.Path).ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"token_endpoint":"https://127.0.0.1:8443/adfs/oauth2/token"`) {
		t.Error(w.Body)
	}
}

func TestOtherPaths(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"", "/", "/subscriptions/s/oauth2/token", "/subscriptions/oauth2/token", "/providers/x/oauth2/token",
		"/a/b/c", "/oauth2/token"} {
		if s.Handler(path) != nil {
			t.Errorf("%s is answered", path)
		}
	}
}

// Every request gets a token for the right secret or an error in Entra ID's form.
func FuzzTokens(f *testing.F) {
	f.Add("/"+tenant+"/oauth2/v2.0/token", form().Encode())
	f.Add("/"+tenant+"/oauth2/token", form("scope", "", "resource", arm).Encode())
	f.Add("/adfs/oauth2/token",
		form("client_secret", "", "client_assertion", "e30.e30.e30", "client_assertion_type", assertionType).Encode())
	f.Add("/"+tenant+"/oauth2/v2.0/token",
		form("client_secret", "", "client_assertion", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xIiwiYXVkIjoxfQ.",
			"client_assertion_type", assertionType).Encode())
	f.Add("/x/oauth2/token", "grant_type=%zz&;")
	s := start(f, func(c *Config) {
		c.Applications[0].Federated = []Federated{{Issuer: "i", Subject: "s", Audiences: []string{"a"}}}
		c.Issuers = []Issuer{{URL: "i", Keys: Keys{{Public: &testKey().PublicKey}}}}
	})
	f.Fuzz(func(t *testing.T, path, body string) {
		h := s.Handler(path)
		if h == nil {
			return
		}
		r := httptest.NewRequest(http.MethodPost, "https://login.example/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Body)
		var answer struct {
			Token string `json:"access_token"`
			Kind  string `json:"error"`
			Codes []int  `json:"error_codes"`
		}
		if strings.HasSuffix(strings.ToLower(strings.Trim(path, "/")), "/token") {
			if err := json.Unmarshal(text, &answer); err != nil {
				t.Fatalf("%d %s: %v", w.Code, text, err)
			}
			proven := strings.Contains(body, "client_secret")
			if (w.Code == http.StatusOK) != (answer.Token != "") || answer.Token != "" && !proven || answer.Token == "" &&
				(answer.Kind == "" || len(answer.Codes) != 1) {
				t.Errorf("%d %s", w.Code, text)
			}
		}
	})
}

func FuzzAuthenticate(f *testing.F) {
	s := start(f, nil)
	good, err := s.Issue(s.Applications[0], "", arm, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Text)
	f.Add("a.b.c")
	f.Add("e30.bnVsbA.")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.Authenticate(text); err == nil && !strings.HasPrefix(text, strings.Join(strings.Split(good.Text, ".")[:2], ".")) {
			t.Errorf("%q is accepted", text)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	s := start(b, nil)
	good, err := s.Issue(s.Applications[0], "", arm, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Authenticate(good.Text); err != nil {
			b.Fatal(err)
		}
	}
}
