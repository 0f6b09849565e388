package front

import (
	"net/http"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/world"
)

// Authenticator finds the principal of a bearer token.
type Authenticator interface {
	// Authenticate returns an error that is an [*behaviour.Error] for a bad token.
	Authenticate(token string) (*behaviour.Principal, error)
}

// authentication finds the principals of requests.
type authentication struct {
	by      Authenticator // nil lets every request in as an owner
	tenancy *world.Tenancy
}

// authenticate finds the principal of a request by its bearer token.
func (a authentication) authenticate(r *exchange) error {
	if a.by == nil {
		r.Caller.Principal = &behaviour.Principal{Owner: true, Tenant: a.tenancy.MainTenant}
		return nil
	}
	challenge := r.challengeFor(a.tenancy.MainTenant)
	header := r.Header.Get("Authorization")
	scheme, token, _ := strings.Cut(header, " ")
	if header == "" || !strings.EqualFold(scheme, "Bearer") {
		r.challenge = challenge
		return behaviour.Gateway(401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	p, err := a.by.Authenticate(strings.TrimSpace(token))
	if err != nil {
		r.challenge = challenge
		return err
	}
	r.Caller.Principal = p
	if err := a.checkTenant(r); err != nil {
		return err
	}
	return a.authenticateAuxiliary(r)
}

// checkTenant refuses a token of a tenant that the subscription in the path does not
// trust.
func (a authentication) checkTenant(r *exchange) error {
	tenant := a.tenancy.TenantOf(address.Subscription(address.Segments(r.URL.Path)))
	own := r.Caller.Principal.Tenant
	if tenant == "" || own == "" || strings.EqualFold(tenant, own) {
		return nil // a subscription that is not there is found out later
	}
	r.challenge = r.challengeFor(tenant)
	return behaviour.Gateway(http.StatusUnauthorized, "InvalidAuthenticationTokenTenant",
		"The access token is from the wrong issuer 'https://sts.windows.net/%s/'. It must match the tenant "+
			"'https://sts.windows.net/%s/' associated with this subscription. Please use the authority (URL) "+
			"'https://login.windows.net/%s' to get the token. Note, if the subscription is transferred to another tenant there is "+
			"no impact to the services, but information about new tenant could take time to propagate (up to an hour). If you just "+
			"transferred your subscription and see this error message, please try back later.",
		own, tenant, tenant)
}

// challengeFor tells clients where to get a token of a tenant.
func (r *exchange) challengeFor(tenant string) string {
	return `Bearer authorization_uri="` + r.Host + "/" + tenant +
		`", error="invalid_token", error_description="The access token is missing or invalid."`
}

const (
	auxiliaryHeader = "x-ms-authorization-auxiliary"
	mostAuxiliary   = 3
)

// authenticateAuxiliary reads the tokens that a request brings for other tenants, in which
// it links to resources.
func (a authentication) authenticateAuxiliary(r *exchange) error {
	header := r.Header.Get(auxiliaryHeader)
	if header == "" {
		return nil
	}
	texts := strings.FieldsFunc(header, func(c rune) bool { return c == ',' || c == ';' })
	if len(texts) > mostAuxiliary {
		return behaviour.Gateway(http.StatusBadRequest, "InvalidAuxiliaryTokens", "The header '%s' has %d tokens, of %d that are allowed.",
			auxiliaryHeader, len(texts), mostAuxiliary)
	}
	for _, text := range texts {
		scheme, token, _ := strings.Cut(strings.TrimSpace(text), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return behaviour.Gateway(http.StatusUnauthorized, "InvalidAuxiliaryTokens",
				"Authentication failed for auxiliary token: the scheme of the header '%s' is not 'Bearer'.", auxiliaryHeader)
		}
		p, err := a.by.Authenticate(strings.TrimSpace(token))
		if err != nil {
			return behaviour.Gateway(http.StatusUnauthorized, "InvalidAuxiliaryTokens",
				"Authentication failed for auxiliary token: %v", err)
		}
		r.Caller.Auxiliary = append(r.Caller.Auxiliary, p)
	}
	return nil
}
