package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/arm"
	"kaz/internal/azure/secret"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/credential"
	"kaz/internal/pullcredential"
)

// provider returns the provider that the flags and the configuration describe.
func (o *options) provider(ctx context.Context, p Process, log *slog.Logger) (*pullcredential.Provider, error) {
	binding, err := o.bound(log)
	if err != nil {
		return nil, err
	}
	mirrors, problems := pullcredential.ParseMirrors(o.mirrors)
	for _, problem := range problems {
		log.Warn("flag value left out", "flag", "--registry-mirror", "error", problem)
	}
	c, err := readConfig(o.configFile, p.Environment)
	if err != nil {
		return nil, err
	}
	client := p.Client
	if client == nil {
		client = arm.NewTransport()
	}
	environment, err := access.DescribeCloud(ctx, client, c)
	if err != nil {
		return nil, err
	}
	provider := &pullcredential.Provider{
		Suffix: environment.RegistrySuffix, Mirrors: mirrors, Binding: binding, Client: client, Log: log,
		Federate: federation(environment, client),
	}
	if c.Credential() == cloudconfig.ClientSecret {
		// Registries accept the client secret itself.
		login := pullcredential.NewLogin(c.AADClientID, c.AADClientSecret)
		provider.Principal = &login
		return provider, nil
	}
	provider.Identity, err = identity(c, environment, client)
	if err == nil && provider.Identity.Token == nil {
		log.Warn("the configuration names no identity: images are pulled anonymously unless their pods have one", "file", o.configFile)
	}
	return provider, err
}

// matters reports whether a problem of the configuration affects this program. A node's file may lack
// keys that only controllers need.
func matters(c cloudconfig.Config, p cloudconfig.Problem) bool {
	switch p.Key {
	case "", "cloud", "resourceManagerEndpoint", "aadClientId", "aadFederatedTokenFile", "userAssignedIdentityID":
		return true
	case "tenantId":
		return c.Credential() != cloudconfig.ClientSecret // registries accept a client secret without a tenant
	}
	return false
}

func readConfig(file string, environment func(string) (string, bool)) (cloudconfig.Config, error) {
	c, _, err := cloudconfig.Load(file) // warnings matter only to long-running programs
	if err != nil {
		return c, fmt.Errorf("cloud configuration %s: %w", file, err)
	}
	c.ApplyEnvironment(environment)
	c.Complete()
	problems, ok := errors.AsType[cloudconfig.Problems](c.Validate())
	if !ok {
		return c, nil
	}
	problems = slices.DeleteFunc(problems, func(p cloudconfig.Problem) bool { return !matters(c, p) })
	if len(problems) > 0 {
		return c, fmt.Errorf("cloud configuration %s: %w", file, problems)
	}
	return c, nil
}

// identity returns the node's own identity, or the zero Identity if the configuration names none.
func identity(c cloudconfig.Config, e cloudconfig.Environment, client *http.Client) (pullcredential.Identity, error) {
	identity, err := access.Identity(c, e, client)
	if err != nil || identity.Kind == credential.None {
		return pullcredential.Identity{}, err
	}
	name := string(identity.Kind)
	switch {
	case identity.Kind == credential.ManagedIdentity && c.UserAssignedIdentityID == "":
		name += " (system-assigned)"
	case identity.Kind == credential.ManagedIdentity:
		name += " " + c.UserAssignedIdentityID
	default:
		name += " of client " + c.AADClientID
	}
	return tokens(name, c.TenantID, identity.Compute), nil
}

// federation exchanges tokens of service accounts for identities.
func federation(e cloudconfig.Environment, client *http.Client) pullcredential.Federation {
	return func(token, clientID, tenantID string) (pullcredential.Identity, error) {
		identity, err := credential.New(credential.Config{
			TenantID: tenantID, ClientID: clientID, WorkloadIdentity: true, FederatedToken: secret.New(token),
			Authority: e.Authority, Transport: client,
		})
		if err != nil {
			return pullcredential.Identity{}, err
		}
		return tokens("workload identity of client "+clientID, tenantID, identity.Compute), nil
	}
}

// tokens returns the identity of a credential. The tenant "adfs" is unknown to registries, so it is
// left out.
func tokens(name, tenant string, from azcore.TokenCredential) pullcredential.Identity {
	if strings.EqualFold(tenant, "adfs") {
		tenant = ""
	}
	return pullcredential.Identity{Name: name, Tenant: tenant, Token: func(ctx context.Context, scope string) (string, error) {
		token, err := from.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
		return token.Token, err
	}}
}
