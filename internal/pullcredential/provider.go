package pullcredential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Scope is what tokens for registries are asked for, in every cloud.
const Scope = "https://containerregistry.azure.net/.default"

// Annotations of a service account that name the identity with which its pods' images
// are pulled.
const (
	ClientIDAnnotation = "kubernetes.azure.com/acr-client-id"
	TenantIDAnnotation = "kubernetes.azure.com/acr-tenant-id"
)

// anonymous is the entry for registries that let everybody pull.
const anonymous = "*.azurecr.*"

// cacheFor is how long a kubelet keeps a login; that of an exchange is good for
// three hours.
const cacheFor = time.Hour

// Identity is somebody who has tokens of Entra ID. The zero value is nobody.
type Identity struct {
	// Name is for messages, Tenant the tenant's id, which may be left out.
	Name, Tenant string
	// Token gets one for a scope.
	Token func(ctx context.Context, scope string) (string, error)
}

// Federation makes the identity for which the token of a service account stands.
type Federation func(serviceAccountToken, clientID, tenantID string) (Identity, error)

// Provider answers a kubelet's requests. The zero value lets images be pulled
// anonymously.
type Provider struct {
	// Suffix is the domain of this cloud's registries, besides those of Azure's clouds.
	Suffix string
	// Mirrors are as [ParseMirrors] returns them.
	Mirrors []Mirror
	// Identity is the node's own.
	Identity Identity
	// Principal is the login of a service principal, which registries take as it is.
	Principal *Login
	// Federate makes identities of service accounts. Binding, if not nil, is asked in
	// its place.
	Federate Federation
	Binding  *Binding
	// Client sends requests to registries; nil is an ordinary one.
	Client *http.Client
	// Log is where to say what was decided; nil is slog.Default.
	Log *slog.Logger
}

// Respond decides how the image of the request is pulled. An error means that the
// kubelet pulls it without a login from here.
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

// choose is whose token is exchanged, nobody when the principal's login or none is
// to be used. What is mirrored belongs to the node and not to the pod.
func (p *Provider) choose(r Request, mirrored bool) (Identity, error) {
	switch {
	case mirrored:
		return p.Identity, nil
	case p.Binding != nil:
		return p.Binding.identity(r)
	case r.ServiceAccountToken != "":
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
		problems = append(problems, errors.New("tokens of service accounts are not exchanged here"))
	}
	if len(problems) > 0 {
		return Identity{}, fmt.Errorf("service account of the pod: %w", errors.Join(problems...))
	}
	identity, err := p.Federate(r.ServiceAccountToken, client, tenant)
	if err != nil {
		return Identity{}, fmt.Errorf("service account of the pod: %w", err)
	}
	return identity, nil
}

// addPrincipal gives a service principal's login for all registries of Azure's clouds,
// as it is good for each to which the principal has a right, and for hosts that are
// none of these.
func (p *Provider) addPrincipal(logins map[string]Login, hosts []string) {
	domains := suffixes()
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
