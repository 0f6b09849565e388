package testkit

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/identity"
	"kaz/internal/localazure/plane/metadata"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/providers"
)

// SignIn is a local Azure with sign-in, in the test's process. Its transport sends requests to the
// login, to instance metadata and to Azure Resource Manager, whatever the host in their URL.
type SignIn struct {
	*core.Emulator
	Tokens *token.Service

	planes []interface {
		Handler(path string) http.Handler
	}
	next http.RoundTripper

	mu   sync.Mutex
	seen []*http.Request
}

// Port is the port in the address of Azure Resource Manager, for clients that need one.
const Port = "8443"

var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// NewSignIn starts a SignIn with applications. system is the client id of the managed identity for
// requests without a client id. Role assignments are enforced.
func NewSignIn(t testing.TB, o core.Options, c token.Config, system string) *SignIn {
	t.Helper()
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &SignIn{}
	c.Key, c.Tenant = key, core.DefaultTenant
	c.Authority, c.Ports, c.Log = "https://login.test:"+Port, []string{Port}, slog.New(slog.DiscardHandler)
	for _, other := range o.Subscriptions {
		c.Guests = append(c.Guests, other.Tenant)
	}
	c.World = func(f func(w behaviour.World)) { s.Look(f) }
	if s.Tokens, err = token.New(c); err != nil {
		t.Fatal(err)
	}
	o.Providers, o.Authenticator, o.AccessControl = providers.All(), s.Tokens, true
	if s.Emulator, err = core.New(o); err != nil {
		t.Fatal(err)
	}
	s.next = s.Transport()
	s.planes = append(s.planes, s.Tokens, &metadata.Service{Authority: c.Authority},
		&identity.Service{Tokens: s.Tokens, Header: identitySecret, System: system, World: c.World,
			Host: func(*http.Request) bool { return true }})
	return s
}

// identitySecret is what a client knows that may have tokens of the managed identity. It comes with each request.
const identitySecret = "secret-of-the-identity"

// Do sends a request. It implements the transport of azidentity and of the ARM client.
func (s *SignIn) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	for _, p := range s.planes {
		if h := p.Handler(r.URL.Path); h != nil {
			w := httptest.NewRecorder()
			own := r.Clone(r.Context())
			if own.Body == nil {
				own.Body = http.NoBody
			}
			own.Host, own.RequestURI = r.URL.Host, r.URL.RequestURI()
			own.Header.Set(identity.SecretHeader, identitySecret)
			if r.URL.Scheme == "https" {
				own.TLS = &tls.ConnectionState{}
			}
			h.ServeHTTP(w, own)
			resp := w.Result()
			resp.Request = r
			return resp, nil
		}
	}
	return s.next.RoundTrip(r)
}

// Seen returns the requests so far with part in their path, in any case.
func (s *SignIn) Seen(part string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*http.Request
	for _, r := range s.seen {
		if strings.Contains(strings.ToLower(r.URL.Path), strings.ToLower(part)) {
			all = append(all, r)
		}
	}
	return all
}

// Put writes a document with all rights.
func (s *SignIn) Put(t testing.TB, id azure.ID, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var doc behaviour.Object
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := s.Emulator.Do(func(w behaviour.World) error { return w.Apply(behaviour.Itself(), id, doc) }); err != nil {
		t.Fatalf("put %s: %v", id, err)
	}
}

// Grant assigns a role with these actions to a principal at a scope.
func (s *SignIn) Grant(t testing.TB, objectID string, scope azure.ID, actions ...string) {
	t.Helper()
	subscription := azure.SubscriptionID(scope.Subscription())
	role := subscription.Resource("Microsoft.Authorization/roleDefinitions", token.GUIDFor("role "+objectID+string(scope)))
	s.Put(t, role, object{"properties": object{
		"roleName": "role of " + objectID + " at " + string(scope), "assignableScopes": []any{string(subscription)},
		"permissions": []any{object{"actions": actions, "notActions": []any{}}},
	}})
	s.Put(t, scope.Resource("Microsoft.Authorization/roleAssignments", token.GUIDFor("assignment "+objectID+string(scope))),
		object{"properties": object{
			"roleDefinitionId": string(role), "principalId": objectID, "principalType": "ServicePrincipal",
		}})
}
