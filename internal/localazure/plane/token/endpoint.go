package token

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// version is the version of a token endpoint.
type version int

const (
	v1 version = iota
	v2
	adfs
)

// Handler returns the handler of requests to a path of this service, nil for other paths.
func (s *Service) Handler(path string) http.Handler {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 3 || strings.EqualFold(parts[0], "subscriptions") || strings.EqualFold(parts[0], "providers") {
		return nil
	}
	tenant, rest := parts[0], strings.ToLower(strings.Join(parts[1:], "/"))
	form := v2
	if strings.EqualFold(tenant, "adfs") {
		form = adfs
	}
	switch rest {
	case "oauth2/token":
		if form != adfs {
			form = v1
		}
		return s.tokens(tenant, form)
	case "oauth2/v2.0/token":
		return s.tokens(tenant, form)
	case "v2.0/.well-known/openid-configuration":
		return discovery{s}.configuration(tenant, form)
	case ".well-known/openid-configuration":
		if form != adfs {
			form = v1
		}
		return discovery{s}.configuration(tenant, form)
	case "discovery/keys", "discovery/v2.0/keys":
		return http.HandlerFunc(discovery{s}.keys)
	case "discovery/instance":
		return http.HandlerFunc(discovery{s}.instance)
	}
	return nil
}

// largestForm is more than the size of any assertion.
const largestForm = 1 << 20

// tokens handles the token endpoint of a tenant.
func (s *Service) tokens(tenant string, form version) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := grant{service: s, request: r, tenant: tenant, version: form}
		body, err := g.answer(w)
		if err == nil {
			writeJSON(w, http.StatusOK, body)
			return
		}
		refused, ok := errors.AsType[*refusal](err)
		if !ok {
			s.Log.Error("token not issued", "error", err)
			refused = refuse(500, serverError, 90033, "A transient error has occurred. Please try again.")
		}
		s.Log.Info("token refused", "tenant", tenant, "application", r.PostForm.Get("client_id"), "reason", refused.Error())
		refused.write(w, r)
	})
}

// grant is one request for a token.
type grant struct {
	service *Service
	request *http.Request
	tenant  string
	version version
	form    url.Values
}

func (g *grant) answer(w http.ResponseWriter) (any, error) {
	if g.request.Method != http.MethodPost {
		return nil, refuse(400, invalidRequest, 900561, "The endpoint only accepts POST requests. Received a %s request.", g.request.Method)
	}
	g.request.Body = http.MaxBytesReader(w, g.request.Body, largestForm)
	if err := g.request.ParseForm(); err != nil {
		return nil, refuse(400, invalidRequest, 90023, "Invalid STS request: the body is not a form (%v).", err)
	}
	g.form = g.request.PostForm
	if err := g.checkTenant(); err != nil {
		return nil, err
	}
	switch kind := g.form.Get("grant_type"); kind {
	case "client_credentials":
	case "":
		return nil, missing("grant_type")
	default:
		return nil, refuse(400, unsupportedGrant, 70003, "The app requested an unsupported grant type '%s'.", kind)
	}
	client, secret := g.client()
	if client == "" {
		return nil, missing("client_id")
	}
	app, ok := g.service.ByClientID(client)
	if !ok {
		return nil, refuse(400, unauthorizedApp, 700016,
			"Application with identifier '%s' was not found in the directory '%s'. This can happen if the application has not been "+
				"installed by the administrator of the tenant or consented to by any user in the tenant. You may have sent your "+
				"authentication request to the wrong tenant.", client, g.tenant)
	}
	audience, err := g.audience()
	if err != nil {
		return nil, err
	}
	if err := g.prove(app, secret); err != nil {
		return nil, err
	}
	return g.issue(app, audience)
}

// checkTenant replaces g.tenant by the tenant's id.
func (g *grant) checkTenant() error {
	switch strings.ToLower(g.tenant) {
	case "adfs":
		g.tenant = g.service.Tenant
	case "common", "organizations", "consumers":
		return refuse(400, invalidRequest, 50059,
			"No tenant-identifying information found in either the request or implied by any provided credentials.")
	}
	if !g.service.knows(g.tenant) {
		return unknownTenant(g.tenant)
	}
	return nil
}

// client returns the client's id and secret from the form or the header.
func (g *grant) client() (id, secret string) {
	if user, password, ok := g.request.BasicAuth(); ok && g.form.Get("client_id") == "" {
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(password)
		return id, secret
	}
	return g.form.Get("client_id"), g.form.Get("client_secret")
}

// audience returns the audience of the token: a resource, or a scope of its default permissions.
func (g *grant) audience() (string, error) {
	const suffix = "/.default"
	if resource := g.form.Get("resource"); resource != "" && g.version != v2 {
		return resource, nil
	}
	for scope := range strings.FieldsSeq(g.form.Get("scope")) {
		if audience, ok := strings.CutSuffix(scope, suffix); ok && audience != "" {
			return audience, nil
		}
	}
	switch {
	case g.version == v1:
		return "", missing("resource")
	case g.form.Get("scope") == "":
		return "", missing("scope")
	}
	return "", refuse(400, invalidScope, 1002012,
		"The provided value for scope %s is not valid. Client credential flows must have a scope value with /.default suffixed to "+
			"the resource identifier (application ID URI).", g.form.Get("scope"))
}

// assertionType is the type of a signed assertion in place of a secret.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// prove checks that the client is the application.
func (g *grant) prove(app Application, secret string) error {
	assertion := g.form.Get("client_assertion")
	switch {
	case assertion != "":
		if t := g.form.Get("client_assertion_type"); t != assertionType {
			return refuse(400, invalidRequest, 90023, "Unsupported 'client_assertion_type' value '%s', want '%s'.", t, assertionType)
		}
		return g.proveAssertion(app, assertion)
	case secret != "":
		for _, s := range app.Secrets {
			if subtle.ConstantTimeCompare([]byte(s), []byte(secret)) == 1 {
				return nil
			}
		}
		return refuse(401, invalidClient, 7000215,
			"Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client "+
				"secret ID, for a secret added to app '%s'.", app.ClientID)
	}
	return refuse(401, invalidClient, 7000218,
		"The request body must contain the following parameter: 'client_assertion' or 'client_secret'.")
}

// issue answers with the token.
func (g *grant) issue(app Application, audience string) (any, error) {
	t, err := g.service.Issue(app, g.tenant, audience, g.service.Lifetime)
	if err != nil {
		return nil, err
	}
	seconds := int(t.Expires.Sub(t.Issued) / time.Second)
	if g.version == v1 {
		// Numbers are strings in this version.
		return map[string]string{
			"token_type": "Bearer", "resource": audience, "access_token": t.Text,
			"expires_in": strconv.Itoa(seconds), "ext_expires_in": strconv.Itoa(seconds),
			"expires_on": strconv.FormatInt(t.Expires.Unix(), 10), "not_before": strconv.FormatInt(t.Issued.Unix(), 10),
		}, nil
	}
	answer := map[string]any{"token_type": "Bearer", "expires_in": seconds, "access_token": t.Text}
	if g.version == v2 {
		answer["ext_expires_in"] = seconds
	}
	return answer, nil
}
