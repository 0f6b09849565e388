package pullcredential

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/azure/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a registry with configured responses.
type server struct {
	mu       sync.Mutex
	seen     []string // METHOD URL
	forms    []url.Values
	base     func() *canned // nil is a valid challenge
	exchange func(token string) *canned
}

// canned is a configured response.
type canned struct {
	status       int
	header, body string
}

func reply(status int, header, body string) *canned { return &canned{status, header, body} }

func (c *canned) to(r *http.Request) *http.Response {
	answer := &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}
	if name, value, ok := strings.Cut(c.header, ": "); ok {
		answer.Header.Set(name, value)
	}
	return answer
}

func challengeOf(host string) string {
	return fmt.Sprintf(`Www-Authenticate: Bearer realm="https://%[1]s/oauth2/token",service="%[1]s"`, host)
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.URL.String())
	var got *canned
	if r.Method == http.MethodGet {
		got = reply(401, challengeOf(r.URL.Host), "")
		if s.base != nil {
			got = s.base()
		}
	} else {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(text))
		if err != nil {
			return nil, err
		}
		s.forms = append(s.forms, form)
		got = reply(200, "", `{"refresh_token":"refresh"}`)
		if s.exchange != nil {
			got = s.exchange(form.Get("access_token"))
		}
	}
	if got == nil {
		return nil, errors.New("no connection")
	}
	return got.to(r), nil
}

const aadToken = "aad-token+s3cret/"

func managed(tenant string) Identity {
	return Identity{Name: "managed identity", Tenant: tenant, Token: func(_ context.Context, scope string) (string, error) {
		if scope != Scope {
			return "", errors.New("token for " + scope)
		}
		return aadToken, nil
	}}
}

func (s *server) provider() *Provider {
	return &Provider{Identity: managed("t1"), Client: &http.Client{Transport: s}, Log: slog.New(slog.DiscardHandler)}
}

func texts(r Response) []string {
	var all []string
	for host, l := range r.Logins {
		all = append(all, host+" "+l.username+":"+l.password.Reveal())
	}
	slices.Sort(all)
	return all
}

func TestRespond(t *testing.T) {
	const exchanged = " 00000000-0000-0000-0000-000000000000:refresh"
	mirrors, _ := ParseMirrors("mcr.microsoft.com:foo.azurecr.io/mcr")
	login := NewLogin("client", secret.New("password"))
	wildcards := []string{"*.azurecr.* :", "*.azurecr.cn client:password", "*.azurecr.de client:password", "*.azurecr.io client:password",
		"*.azurecr.us client:password"}
	federate := func(token, client, tenant string) (Identity, error) {
		if token != "sa-token" {
			return Identity{}, errors.New("another token")
		}
		i := managed(tenant)
		i.Name = "client " + client
		return i, nil
	}
	annotated := map[string]string{ClientIDAnnotation: "c2", TenantIDAnnotation: "t2"}
	for name, c := range map[string]struct {
		change  func(*Provider)
		request Request
		logins  []string
		asked   []string
		tenant  string
	}{
		"managed identity": {
			nil, Request{Image: "foo.azurecr.io/a:1"}, []string{"*.azurecr.* :", "foo.azurecr.io" + exchanged},
			[]string{"GET https://foo.azurecr.io/v2/", "POST https://foo.azurecr.io/oauth2/exchange"}, "t1",
		},
		"no registry of Azure":             {nil, Request{Image: "docker.io/library/nginx"}, nil, nil, ""},
		"a name that only begins like one": {nil, Request{Image: "foo.azurecr.io.evil.com/x"}, nil, nil, ""},
		"mirror": {
			func(p *Provider) { p.Mirrors = mirrors }, Request{Image: "mcr.microsoft.com/app:1"},
			[]string{"*.azurecr.* :", "foo.azurecr.io" + exchanged, "mcr.microsoft.com" + exchanged},
			[]string{"GET https://foo.azurecr.io/v2/", "POST https://foo.azurecr.io/oauth2/exchange"}, "t1",
		},
		"mirror, to somewhere else": {func(p *Provider) { p.Mirrors = []Mirror{{"mcr.microsoft.com", "docker.io"}} },
			Request{Image: "mcr.microsoft.com/app:1"}, nil, nil, ""},
		"domain of the cloud": {
			func(p *Provider) { p.Suffix = "azurecr.local.corp" }, Request{Image: "reg.azurecr.local.corp:5000/a:1"},
			[]string{"*.azurecr.* :", "reg.azurecr.local.corp:5000" + exchanged},
			[]string{"GET https://reg.azurecr.local.corp:5000/v2/", "POST https://reg.azurecr.local.corp:5000/oauth2/exchange"}, "t1",
		},
		"service principal": {func(p *Provider) { p.Identity, p.Principal = Identity{}, &login }, Request{Image: "foo.azurecr.io/a"},
			wildcards, nil, ""},
		"service principal, mirror": {
			func(p *Provider) { p.Identity, p.Principal, p.Mirrors = Identity{}, &login, mirrors }, Request{Image: "mcr.microsoft.com/a"},
			append(slices.Clone(wildcards), "mcr.microsoft.com client:password"), nil, "",
		},
		"service principal, domain of the cloud": {
			func(p *Provider) { p.Identity, p.Principal, p.Suffix = Identity{}, &login, "azurecr.local.corp" },
			Request{Image: "reg.azurecr.local.corp/a"},
			append(slices.Clone(wildcards), "reg.azurecr.local.corp client:password"), nil, "",
		},
		"service principal, domain of the cloud like Azure's": {
			func(p *Provider) { p.Identity, p.Principal, p.Suffix = Identity{}, &login, ".azurecr.corp" },
			Request{Image: "reg.azurecr.corp/a"},
			append(slices.Clone(wildcards[:2]), append([]string{"*.azurecr.corp client:password"}, wildcards[2:]...)...), nil, "",
		},
		"none": {func(p *Provider) { p.Identity = Identity{} }, Request{Image: "foo.azurecr.io/a"}, []string{"*.azurecr.* :"}, nil, ""},
		"service account": {
			func(p *Provider) { p.Federate = federate }, Request{"foo.azurecr.io/a", secret.New("sa-token"), annotated},
			[]string{"*.azurecr.* :", "foo.azurecr.io" + exchanged},
			[]string{"GET https://foo.azurecr.io/v2/", "POST https://foo.azurecr.io/oauth2/exchange"}, "t2",
		},
		"service account and a service principal": {
			func(p *Provider) { p.Federate, p.Identity, p.Principal = federate, Identity{}, &login },
			Request{"foo.azurecr.io/a", secret.New("sa-token"), annotated},
			[]string{"*.azurecr.* :", "foo.azurecr.io" + exchanged},
			[]string{"GET https://foo.azurecr.io/v2/", "POST https://foo.azurecr.io/oauth2/exchange"}, "t2",
		},
		"service account, mirror": { // a mirror uses the node's identity
			func(p *Provider) { p.Federate, p.Mirrors = federate, mirrors }, Request{"mcr.microsoft.com/a", secret.New("sa-token"), nil},
			[]string{"*.azurecr.* :", "foo.azurecr.io" + exchanged, "mcr.microsoft.com" + exchanged},
			[]string{"GET https://foo.azurecr.io/v2/", "POST https://foo.azurecr.io/oauth2/exchange"}, "t1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			p := s.provider()
			if c.change != nil {
				c.change(p)
			}
			got, err := p.Respond(t.Context(), c.request)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(texts(got), c.logins) || !slices.Equal(s.seen, c.asked) {
				t.Errorf("logins %q after %q,\n want %q after %q", texts(got), s.seen, c.logins, c.asked)
			}
			if want := map[bool]time.Duration{true: time.Hour}[c.logins != nil]; got.Cache != want {
				t.Errorf("cached for %s, want %s", got.Cache, want)
			}
			for _, form := range s.forms {
				host, _, _ := strings.Cut(strings.TrimPrefix(c.asked[0], "GET https://"), "/")
				want := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {aadToken}, "tenant": {c.tenant}}
				if form.Encode() != want.Encode() {
					t.Errorf("exchanged with %v, want %v", form, want)
				}
			}
		})
	}
}

// TestOddRegistries checks that an invalid registry gets no token, or that its response reveals none.
func TestOddRegistries(t *testing.T) {
	answer := func(status int, header, body string) func() *canned {
		return func() *canned { return reply(status, header, body) }
	}
	for name, c := range map[string]struct {
		base     func() *canned
		exchange func(token string) *canned
		says     string
		sent     bool // the token
	}{
		"public registry": {answer(200, "", "{}"), nil,
			"registry foo.azurecr.io did not issue a valid AAD challenge, status: 200", false},
		"redirect":     {answer(307, "Location: https://evil.com/v2/", ""), nil, "status: 307", false},
		"no challenge": {answer(401, "", ""), nil, "offers 0 Bearer challenges", false},
		"another's challenge": {answer(401, challengeOf("evil.com"), ""), nil,
			`realm "https://evil.com/oauth2/token": not at foo.azurecr.io`, false},
		"challenge without a space": {answer(401, "Www-Authenticate: Bearer", ""), nil, "no realm or no service", false},
		"refused": {
			nil, func(string) *canned {
				return reply(401, "", `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
			},
			"registry foo.azurecr.io responded with status code 401 to the exchange of a token of managed identity: UNAUTHORIZED: " +
				"authentication required", true,
		},
		"refused with the token": {
			nil, func(token string) *canned {
				return reply(403, "", `{"errors":[{"code":"DENIED","message":"bad `+token+"\\n"+url.QueryEscape(token)+`"}]}`)
			},
			"DENIED: bad (secret) (secret)", true,
		},
		"refused as OAuth does": {nil, func(string) *canned {
			return reply(400, "", `{"error":"invalid_grant","error_description":"expired"}`)
		}, "status code 400 to the exchange of a token of managed identity: invalid_grant expired", true},
		"refused without words": {nil, func(string) *canned { return reply(404, "", "<html>"+aadToken) }, "status code 404", true},
		"redirected exchange": {nil, func(string) *canned { return reply(307, "Location: https://evil.com/", "") },
			"status code 307", true},
		"no token": {nil, func(string) *canned { return reply(200, "", `{"refresh_token":""}`) },
			"without a refresh_token", true},
		"no JSON": {nil, func(string) *canned { return reply(200, "", aadToken) }, "without a refresh_token", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{base: c.base, exchange: c.exchange}
			got, err := s.provider().Respond(t.Context(), Request{Image: "foo.azurecr.io/a"})
			if err == nil || !strings.Contains(err.Error(), c.says) || got.Logins != nil {
				t.Fatalf("%v, want %q", err, c.says)
			}
			if strings.Contains(err.Error(), aadToken) || strings.Contains(err.Error(), url.QueryEscape(aadToken)) {
				t.Errorf("the token is in the error %v", err)
			}
			if len(s.forms) > 0 != c.sent || slices.ContainsFunc(s.seen, func(r string) bool { return strings.Contains(r, "evil") }) {
				t.Errorf("requests %q", s.seen)
			}
		})
	}
}

func TestServiceAccountWithoutAnnotations(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {ClientIDAnnotation: "c"}, {TenantIDAnnotation: "t"},
		{ClientIDAnnotation: "", TenantIDAnnotation: "t"}} {
		s := &server{}
		_, err := s.provider().Respond(t.Context(), Request{"foo.azurecr.io/a", secret.New("sa-token"), annotations})
		if err == nil || !strings.Contains(err.Error(), "is not found or the value is empty") ||
			strings.Contains(err.Error(), "sa-token") || s.seen != nil {
			t.Errorf("%v: %v after %v", annotations, err, s.seen)
		}
	}
}

// TestBusyRegistries checks that a busy registry is retried after its Retry-After, but not longer
// than a kubelet waits.
func TestBusyRegistries(t *testing.T) {
	for name, c := range map[string]struct {
		refusals []*canned
		takes    time.Duration
		says     string // "" for success
	}{
		"busy":            {[]*canned{reply(429, "Retry-After: 2", "")}, 2 * time.Second, ""},
		"very busy":       {[]*canned{reply(503, "Retry-After: 3600", "")}, 5 * time.Second, ""},
		"no connection":   {[]*canned{nil, reply(500, "", "")}, 1500 * time.Millisecond, ""},
		"always":          {[]*canned{nil, nil, nil}, 1500 * time.Millisecond, "no connection"},
		"always an error": {[]*canned{reply(500, "", ""), reply(500, "", ""), reply(502, "", "")}, 1500 * time.Millisecond, "status: 502"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				s.base = func() *canned {
					if tries := len(s.seen); tries <= len(c.refusals) {
						return c.refusals[tries-1]
					}
					return reply(401, challengeOf("foo.azurecr.io"), "")
				}
				began := time.Now()
				_, err := s.provider().Respond(t.Context(), Request{Image: "foo.azurecr.io/a"})
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if took := time.Since(began); took != c.takes {
					t.Errorf("took %s, want %s", took, c.takes)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &server{base: func() *canned { return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.provider().Respond(ctx, Request{Image: "foo.azurecr.io/a"}); err == nil || len(s.seen) != 1 {
			t.Errorf("%v after %v", err, s.seen)
		}
	})
}

// binding starts an API server that exchanges tokens and returns its binding.
func binding(t *testing.T, answer http.HandlerFunc) *Binding {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	// The name in the certificate of httptest.
	return &Binding{ServerName: "example.com", Address: s.Listener.Addr().String(), Roots: roots, ClientID: "c1", TenantID: "t9"}
}

func TestIdentityBinding(t *testing.T) {
	for name, c := range map[string]struct {
		annotations    map[string]string
		client, tenant string
	}{
		"defaults":  {nil, "c1", "t9"},
		"annotated": {map[string]string{ClientIDAnnotation: "c2", TenantIDAnnotation: "t2"}, "c2", "t2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			p := s.provider()
			p.Binding = binding(t, func(w http.ResponseWriter, r *http.Request) {
				want := url.Values{
					"grant_type":            {"client_credentials"},
					"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
					"scope":                 {Scope}, "client_assertion": {"sa-token"}, "client_id": {c.client},
				}
				if err := r.ParseForm(); err != nil || r.PostForm.Encode() != want.Encode() || r.Host != "example.com" ||
					r.URL.Path != "/" {
					t.Errorf("%s %s asked with %v", r.Host, r.URL, r.PostForm)
				}
				_, _ = io.WriteString(w, `{"access_token":"bound","expires_in":3600}`)
			})
			if err := p.Binding.Check(); err != nil {
				t.Fatal(err)
			}
			got, err := p.Respond(t.Context(), Request{"foo.azurecr.io/a", secret.New("sa-token"), c.annotations})
			if err != nil || len(got.Logins) != 2 || s.forms[0].Get("access_token") != "bound" || s.forms[0].Get("tenant") != c.tenant {
				t.Errorf("%v %v after %v", got, err, s.forms)
			}
		})
	}
}

func TestRefusedIdentityBinding(t *testing.T) {
	s := &server{}
	p := s.provider()
	p.Binding = binding(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":"denied","error_description":"sa-token is not bound"}`)
	})
	request := Request{Image: "foo.azurecr.io/a", ServiceAccountToken: secret.New("sa-token")}
	says := func(want string) {
		t.Helper()
		_, err := p.Respond(t.Context(), request)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sa-token") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	says("responded with status code 403: denied (secret) is not bound")
	p.Binding.Roots = x509.NewCertPool()
	says("certificate")
	p.Binding.ClientID = ""
	says("--ib-default-client-id")
	request.ServiceAccountToken = secret.Text{}
	says("tokenAttributes")
	p.Binding.ClientID = "c1"
	request = Request{"foo.azurecr.io/a", secret.New("sa-token"), nil}
	p.Binding = binding(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	says("without an access_token")
	// Mirrored images use the node's identity.
	p.Mirrors = []Mirror{{"mcr.microsoft.com", "foo.azurecr.io"}}
	if _, err := p.Respond(t.Context(), Request{"mcr.microsoft.com/a", secret.New("sa-token"), nil}); err != nil {
		t.Error(err)
	}
}

func TestCheckBinding(t *testing.T) {
	for b, want := range map[Binding]string{
		{ServerName: "a.b", Address: "10.0.0.1"}:         "",
		{ServerName: "a.b", Address: "fd00::1"}:          "",
		{ServerName: "a.b", Address: "[fd00::1]:6443"}:   "",
		{ServerName: "a.b"}:                              "--ib-apiserver-ip is required with --ib-sni-name",
		{ServerName: "https://a.b", Address: "10.0.0.1"}: "without a scheme",
		{ServerName: "a/b", Address: "10.0.0.1"}:         "host name",
		{ServerName: "a.b", Address: "c.d"}:              "want an IP address",
	} {
		err := b.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
	if place, err := (&Binding{Address: "fd00::1"}).place(); err != nil || place != net.JoinHostPort("fd00::1", "443") {
		t.Errorf("%s %v", place, err)
	}
}
