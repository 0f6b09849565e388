package emulator

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// checkTenant refuses a token of another tenant than the one that the subscription in
// the path trusts.
func (e *Emulator) checkTenant(r *request) error {
	parts, _ := segments(r.http.URL.Path)
	if len(parts) < 2 || !strings.EqualFold(parts[0], "subscriptions") {
		return nil
	}
	tenant := e.options.tenantOf(parts[1])
	if tenant == "" || r.principal.Tenant == "" || strings.EqualFold(tenant, r.principal.Tenant) {
		return nil // a subscription that is not there is found out later
	}
	r.challenge = e.challenge(r, tenant)
	return gateway(http.StatusUnauthorized, "InvalidAuthenticationTokenTenant",
		"The access token is from the wrong issuer 'https://sts.windows.net/%s/'. It must match the tenant 'https://sts.windows.net/%s/' associated with this subscription. Please use the authority (URL) 'https://login.windows.net/%s' to get the token. Note, if the subscription is transferred to another tenant there is no impact to the services, but information about new tenant could take time to propagate (up to an hour). If you just transferred your subscription and see this error message, please try back later.",
		r.principal.Tenant, tenant, tenant)
}

// challenge tells clients where to get a token.
func (e *Emulator) challenge(r *request, tenant string) string {
	return `Bearer authorization_uri="` + r.host + "/" + tenant + `", error="invalid_token", error_description="The access token is missing or invalid."`
}

const (
	auxiliaryHeader = "x-ms-authorization-auxiliary"
	mostAuxiliary   = 3
)

// authenticateAuxiliary reads the tokens of other tenants that a request brings for the
// resources there that it links to.
func (e *Emulator) authenticateAuxiliary(r *request) error {
	header := r.http.Header.Get(auxiliaryHeader)
	if header == "" {
		return nil
	}
	texts := strings.FieldsFunc(header, func(c rune) bool { return c == ',' || c == ';' })
	if len(texts) > mostAuxiliary {
		return gateway(http.StatusBadRequest, "InvalidAuxiliaryTokens", "The header '%s' has %d tokens, of %d that are allowed.", auxiliaryHeader, len(texts), mostAuxiliary)
	}
	for _, text := range texts {
		scheme, token, _ := strings.Cut(strings.TrimSpace(text), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return gateway(http.StatusUnauthorized, "InvalidAuxiliaryTokens", "Authentication failed for auxiliary token: the scheme of the header '%s' is not 'Bearer'.", auxiliaryHeader)
		}
		p, err := e.options.Authenticator.Authenticate(strings.TrimSpace(token))
		if err != nil {
			return gateway(http.StatusUnauthorized, "InvalidAuxiliaryTokens", "Authentication failed for auxiliary token: %v", err)
		}
		r.auxiliary = append(r.auxiliary, p)
	}
	return nil
}

// principalIn is who makes the request as far as a tenant is concerned, nil for nobody.
func (r *request) principalIn(tenant string) *behaviour.Principal {
	for _, p := range append([]*behaviour.Principal{r.principal}, r.auxiliary...) {
		if p.Tenant == "" || strings.EqualFold(p.Tenant, tenant) {
			return p
		}
	}
	return nil
}

// tenants reports whether there are several.
func (o *Options) tenants() bool {
	for _, s := range o.Subscriptions {
		if s.Tenant != "" && !strings.EqualFold(s.Tenant, o.Tenant) {
			return true
		}
	}
	return false
}

// authorizeLinks checks the right to join every resource that a write names: in its
// body, and not only as one of the fields that are Azure's own. What is in another
// tenant is joined by who the caller is there.
func (t *transaction) authorizeLinks(r *request, doc behaviour.Object) error {
	if r.principal == nil || !t.options.tenants() && (!t.options.AccessControl || r.principal.Owner) {
		return nil
	}
	sent := map[string]bool{}
	for _, ref := range references(r.id, r.body) {
		sent[ref.target] = true
	}
	for _, ref := range references(r.id, doc) {
		if !sent[ref.target] {
			continue
		}
		to := azure.ID(ref.target)
		k := t.kinds.of(to.Type())
		if k == nil || to.Subscription() == "" || k.Name == roleDefinitions {
			continue
		}
		if err := t.authorizeLink(r, t.spelling(to, r.body), joinAction(r.kind, k)); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) authorizeLink(r *request, to azure.ID, join string) error {
	tenant := t.TenantOf(to.Subscription())
	p := r.principal
	if tenant != "" {
		p = r.principalIn(tenant)
	}
	if p == nil {
		return gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
			"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, the current tenant '%s' is not authorized to access linked subscription '%s'.",
			r.principal.ApplicationID, r.principal.ObjectID, t.actionOf(r), r.id, r.principal.Tenant, to.Subscription())
	}
	if !t.options.AccessControl || p.Owner || t.allowed(p, join, to) {
		return nil
	}
	return gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform action(s) '%s' on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
		p.ApplicationID, p.ObjectID, t.actionOf(r), r.id, join, to)
}

// joinAction is the right that it takes to link a resource of one type to one of
// another.
func joinAction(from, to *kind) string {
	holder := strings.ToLower(from.Name)
	switch strings.ToLower(to.Name) {
	case "microsoft.managedidentity/userassignedidentities":
		return to.Name + "/assign/action"
	case "microsoft.network/virtualnetworks":
		if strings.HasPrefix(holder, "microsoft.network/loadbalancers") {
			return to.Name + "/joinLoadBalancer/action"
		}
	case "microsoft.network/applicationsecuritygroups":
		if strings.HasPrefix(holder, "microsoft.network/networksecuritygroups") {
			return to.Name + "/joinNetworkSecurityRule/action"
		}
		return to.Name + "/joinIpConfiguration/action"
	}
	return to.Name + "/join/action"
}
