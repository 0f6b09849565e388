// Package token is the Entra ID of the local Azure. It issues tokens to applications and managed identities, and checks
// the tokens of requests. Layer L2.
package token

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/cloud"
)

// Application is a service principal, or a managed identity, which has no secret.
type Application struct {
	Name string
	// ClientID and ObjectID are GUIDs. Roles are assigned to ObjectID.
	ClientID, ObjectID string
	// Owner applications are allowed everything, whatever their roles.
	Owner bool

	Secrets      []string
	Certificates []*x509.Certificate
	Federated    []Federated

	// Managed identities get tokens from their machine. ResourceID is the id of a user-assigned identity, or of the
	// resource with a system-assigned one.
	Managed    bool
	ResourceID azure.ID
}

// Federated has the issuers and subjects of tokens that the application accepts as its credential.
type Federated struct {
	Issuer    string
	Subject   string
	Audiences []string
}

// Config is the configuration of a [Service]. Tenant and Key are required.
type Config struct {
	// Tenant is the tenant's id. Guests are other tenants that have the applications too.
	Tenant string
	Guests []string
	// Key signs tokens.
	Key *rsa.PrivateKey
	// Lifetime of a service principal's token, 0 for an hour. Tokens of managed identities live a day, as in Azure.
	Lifetime time.Duration
	// Applications in addition to the user-assigned identities in World.
	Applications []Application
	// Issuers of federated tokens.
	Issuers []Issuer
	// Ports of this Azure Resource Manager. Its URL, with any host, is an audience in addition to the public audiences.
	Ports []string
	// Authority is the base URL of this service over TLS, because clients log in over TLS only.
	Authority string
	// World gives access to the resources, nil for none.
	World func(func(w behaviour.World))
	// Log receives issued and refused tokens. Nil is slog.Default.
	Log *slog.Logger
}

// Service issues and checks tokens. It is safe for concurrent use.
type Service struct {
	Config
	keyID   string
	issuers *issuers
	checked checked
}

// New returns a service.
func New(c Config) (*Service, error) {
	if c.Tenant == "" || c.Key == nil {
		return nil, fmt.Errorf("token service: tenant and key are required")
	}
	if c.Lifetime == 0 {
		c.Lifetime = time.Hour
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	issuers, err := newIssuers(c.Issuers)
	if err != nil {
		return nil, err
	}
	return &Service{Config: c, keyID: keyID(&c.Key.PublicKey), issuers: issuers}, nil
}

// Token is an access token with its metadata.
type Token struct {
	Text     string
	Audience string
	Issued   time.Time
	Expires  time.Time
}

// ManagedLifetime is the lifetime of a managed identity's token.
const ManagedLifetime = 24 * time.Hour

// Issue returns a token of an application for an audience. A tenant of "" is the service's own.
func (s *Service) Issue(a Application, tenant, audience string, lifetime time.Duration) (Token, error) {
	if tenant == "" {
		tenant = s.Tenant
	}
	now := time.Now().Truncate(time.Second)
	t := Token{Audience: audience, Issued: now, Expires: now.Add(lifetime)}
	c := claims{
		"aud": audience, "iss": issuerOf(tenant), "idp": issuerOf(tenant), "tid": tenant,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": t.Expires.Unix(),
		"appid": a.ClientID, "oid": a.ObjectID, "sub": a.ObjectID, "idtyp": "app",
		"appidacr": "1", "ver": "1.0", "uti": rand.Text(),
	}
	if a.Managed {
		c["appidacr"] = "2"
		if a.ResourceID != "" {
			c["xms_mirid"] = string(a.ResourceID)
		}
	} else if len(a.Certificates) > 0 && len(a.Secrets) == 0 {
		c["appidacr"] = "2"
	}
	var err error
	t.Text, err = sign(s.Key, header{KeyID: s.keyID, Thumbprint: s.keyID}, c)
	if err != nil {
		return Token{}, fmt.Errorf("token for application %s: %w", a.ClientID, err)
	}
	s.Log.Debug("token issued", "application", a.ClientID, "name", a.Name, "audience", audience, "expires", t.Expires)
	return t, nil
}

// issuerOf returns the issuer of tokens for Azure Resource Manager, which is the same for all endpoints of a tenant.
func issuerOf(tenant string) string { return "https://sts.windows.net/" + tenant + "/" }

// Authenticate checks a token for Azure Resource Manager and returns its principal. An error is a [*behaviour.Error].
func (s *Service) Authenticate(text string) (*behaviour.Principal, error) {
	if p, ok := s.checked.get(text, time.Now()); ok {
		return p, nil
	}
	p, expires, err := s.check(text, publicAudiences(), s.isOwn)
	if err != nil {
		return nil, err
	}
	s.checked.put(text, p, expires)
	return p, nil
}

// AuthenticateFor is Authenticate for tokens with other audiences, such as the audiences of a data plane.
func (s *Service) AuthenticateFor(text string, audiences ...string) (*behaviour.Principal, error) {
	p, _, err := s.check(text, audiences, func(string) bool { return false })
	return p, err
}

// check returns the principal and the expiry of a token. Its audience must be one of the allowed audiences, or equivalent to
// one.
func (s *Service) check(text string, allowed []string, counts func(audience string) bool) (*behaviour.Principal, time.Time, error) {
	now := time.Now()
	j, err := parseJWT(text)
	if err != nil || j.header.KeyID != s.keyID || j.verify(&s.Key.PublicKey) != nil {
		return nil, time.Time{}, unauthorized("InvalidAuthenticationToken", "The access token is invalid.")
	}
	if expires := j.claims.time("exp"); !now.Before(expires) {
		return nil, time.Time{},
			unauthorized("ExpiredAuthenticationToken", "The access token expiry UTC time '%s' is earlier than current UTC time '%s'.",
				expires.UTC().Format(clockForm), now.UTC().Format(clockForm))
	}
	tenant := j.claims.text("tid")
	if j.claims.text("iss") != issuerOf(tenant) || !s.knows(tenant) {
		return nil, time.Time{},
			unauthorized("InvalidAuthenticationTokenTenant",
				"The access token is from the wrong issuer '%s'. It must match the tenant '%s' associated with this subscription.",
				j.claims.text("iss"), issuerOf(s.Tenant))
	}
	if !overlap(j.claims.audiences(), allowed) && !slices.ContainsFunc(j.claims.audiences(), counts) {
		return nil, time.Time{},
			unauthorized("InvalidAuthenticationTokenAudience",
				"The access token has been obtained for wrong audience or resource '%s'. It should exactly match with one of the "+
					"allowed audiences '%s'.",
				strings.Join(j.claims.audiences(), ","), strings.Join(allowed, "','"))
	}
	p := &behaviour.Principal{ObjectID: j.claims.text("oid"), ApplicationID: j.claims.text("appid"), Tenant: tenant}
	p.Owner = s.owns(p.ObjectID)
	return p, j.claims.time("exp"), nil
}

const clockForm = "1/2/2006 3:04:05 PM"

func unauthorized(code, format string, args ...any) error {
	e := behaviour.Refusal(401, code, format, args...)
	e.Gateway = true
	return e
}

// isOwn reports whether an audience is a URL of this server.
func (s *Service) isOwn(audience string) bool {
	u, err := url.Parse(audience)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && strings.Trim(u.Path, "/") == "" &&
		slices.Contains(s.Ports, u.Port()) && u.Port() != ""
}

func publicAudiences() []string {
	var all []string
	for _, c := range cloud.Clouds() {
		all = append(all, c.Audiences()...)
	}
	return all
}

func (s *Service) knows(tenant string) bool {
	if strings.EqualFold(tenant, s.Tenant) {
		return true
	}
	for _, g := range s.Guests {
		if strings.EqualFold(tenant, g) {
			return true
		}
	}
	return false
}

func (s *Service) owns(objectID string) bool {
	for _, a := range s.Applications {
		if a.Owner && a.ObjectID == objectID {
			return true
		}
	}
	return false
}

// checked caches valid tokens, because the check of a signature costs more than a whole GET.
type checked struct {
	mu    sync.RWMutex
	known map[string]known
}

type known struct {
	principal *behaviour.Principal
	expires   time.Time
}

// mostChecked is the limit of the cache.
const mostChecked = 4096

func (c *checked) get(text string, now time.Time) (*behaviour.Principal, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	k, ok := c.known[text]
	return k.principal, ok && now.Before(k.expires)
}

func (c *checked) put(text string, p *behaviour.Principal, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]known{}
	}
	if len(c.known) >= mostChecked {
		now := time.Now()
		maps.DeleteFunc(c.known, func(_ string, k known) bool { return !now.Before(k.expires) })
	}
	if len(c.known) < mostChecked {
		c.known[text] = known{p, expires}
	}
}
