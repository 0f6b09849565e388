package pullcredential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure/registry"
)

// Scope is the scope of tokens for registries, in every cloud.
const Scope = "https://containerregistry.azure.net/.default"

// Annotations of a service account with the identity that pulls its pods' images.
const (
	ClientIDAnnotation = "kubernetes.azure.com/acr-client-id"
	TenantIDAnnotation = "kubernetes.azure.com/acr-tenant-id"
)

// anonymous is the entry for registries with anonymous pull.
const anonymous = "*.azurecr.*"

// cacheFor is how long a kubelet caches a login. A login of an exchange is valid for three hours.
const cacheFor = time.Hour

// Identity gets tokens of Entra ID. The zero value is no identity.
type Identity struct {
	// Name is for messages. Tenant is the tenant's id and may be empty.
	Name, Tenant string
	// Token returns a token for a scope.
	Token func(ctx context.Context, scope string) (string, error)
}

// Federation exchanges the token of a service account for an identity.
type Federation func(serviceAccountToken, clientID, tenantID string) (Identity, error)

// Provider answers requests of a kubelet. The zero value allows anonymous pulls only.
type Provider struct {
	// Suffix is an additional domain of registries, for other clouds.
	Suffix string
	// Mirrors are from [ParseMirrors].
	Mirrors []Mirror
	// Identity is the node's identity.
	Identity Identity
	// Principal is the login of a service principal, which registries accept without an exchange.
	Principal *Login
	// Federate returns identities of service accounts. A Binding, if not nil, replaces it.
	Federate Federation
	Binding  *Binding
	// Client sends requests to registries; nil is a default client.
	Client *http.Client
	// Log receives the decisions; nil is slog.Default.
	Log *slog.Logger
}

// Respond returns the logins for the image of the request. After an error the kubelet pulls without a
// login of this program.
func (p *Provider) Respond(ctx context.Context, r Request) (Response, error) {
	from, mirrored := through(p.Mirrors, r.Image)
	host := hostOf(from)
	if !isRegistry(host, p.Suffix) {
		p.log().DebugContext(ctx, "not a registry of azure", "host", shorten(host))
		return Response{}, nil
	}
	logins := map[string]Login{anonymous: {}}
	hosts := []string{host}
	if mirrored {
		hosts = append(hosts, hostOf(r.Image))
	}
	identity, err := p.choose(r, mirrored)
	if err != nil {
		return Response{}, err
	}
	switch {
	case identity.Token != nil:
		login, err := p.exchange(ctx, host, identity)
		if err != nil {
			return Response{}, err
		}
		for _, h := range hosts {
			logins[h] = login
		}
	case p.Principal != nil:
		p.addPrincipal(logins, hosts)
	}
	p.log().DebugContext(ctx, "registry of azure", "host", host, "mirrored", mirrored, "identity", identity.Name)
	return Response{Cache: cacheFor, Logins: logins}, nil
}

// choose returns the identity for the exchange, or the zero Identity for the principal's
// login or none. Mirrored images use the node's identity, not the pod's.
func (p *Provider) choose(r Request, mirrored bool) (Identity, error) {
	switch {
	case mirrored:
		return p.Identity, nil
	case p.Binding != nil:
		return p.Binding.identity(r)
	case !r.ServiceAccountToken.IsZero():
		return p.ofServiceAccount(r)
	}
	return p.Identity, nil
}

func (p *Provider) ofServiceAccount(r Request) (Identity, error) {
	client, tenant := r.ServiceAccountAnnotations[ClientIDAnnotation], r.ServiceAccountAnnotations[TenantIDAnnotation]
	var problems []error
	if client == "" {
		problems = append(problems, fmt.Errorf("client id annotation %s is not found or the value is empty", ClientIDAnnotation))
	}
	if tenant == "" {
		problems = append(problems, fmt.Errorf("tenant id annotation %s is not found or the value is empty", TenantIDAnnotation))
	}
	if len(problems) == 0 && p.Federate == nil {
		problems = append(problems, errors.New("federation of service accounts is not configured"))
	}
	if len(problems) > 0 {
		return Identity{}, fmt.Errorf("service account of the pod: %w", errors.Join(problems...))
	}
	identity, err := p.Federate(r.ServiceAccountToken.Reveal(), client, tenant)
	if err != nil {
		return Identity{}, fmt.Errorf("service account of the pod: %w", err)
	}
	return identity, nil
}

// addPrincipal adds the service principal's login for all Azure registries and the given hosts. The
// login works at each registry where the principal has a role.
func (p *Provider) addPrincipal(logins map[string]Login, hosts []string) {
	domains := registry.Domains()
	if strings.Contains(p.Suffix, ".azurecr.") {
		domains = append(domains, strings.Trim(p.Suffix, "."))
	}
	for _, domain := range domains {
		logins["*."+domain] = *p.Principal
	}
	for _, h := range hosts {
		_, domain, _ := strings.Cut(h, ".")
		if _, covered := logins["*."+domain]; !covered {
			logins[h] = *p.Principal
		}
	}
}

func (p *Provider) log() *slog.Logger {
	if p.Log == nil {
		return slog.Default()
	}
	return p.Log
}
