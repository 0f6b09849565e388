package token

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/cloud"
)

// discovery answers the requests by which clients find the endpoints and the keys.
type discovery struct{ *Service }

// base returns the URL under which the client reached this service. A request without TLS gets Authority, because
// clients log in over TLS only.
func (d discovery) base(r *http.Request) string {
	if r.TLS == nil && d.Authority != "" {
		return strings.TrimSuffix(d.Authority, "/")
	}
	return "https://" + r.Host
}

// configuration returns the OpenID configuration of a tenant.
func (d discovery) configuration(tenant string, form version) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		alias := slices.Contains([]string{"adfs", "common", "organizations"}, strings.ToLower(tenant))
		if !alias && !d.knows(tenant) {
			unknownTenant(tenant).write(w, r)
			return
		}
		writeJSON(w, http.StatusOK, openIDConfiguration(d.base(r)+"/"+tenant, tenant, form))
	})
}

// openIDConfiguration returns the document for a version of the endpoints.
func openIDConfiguration(base, tenant string, form version) map[string]any {
	middle := "/oauth2/v2.0"
	keys := base + "/discovery/v2.0/keys"
	issuer := base + "/v2.0"
	if form != v2 {
		middle, keys = "/oauth2", base+"/discovery/keys"
	}
	switch {
	case form == v1:
		issuer = issuerOf(tenant)
	case form == adfs:
		issuer = base
	case strings.EqualFold(tenant, "common"), strings.EqualFold(tenant, "organizations"):
		issuer = strings.TrimSuffix(base, tenant) + "{tenantid}/v2.0"
	}
	return map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                base + middle + "/authorize",
		"token_endpoint":                        base + middle + "/token",
		"jwks_uri":                              keys,
		"token_endpoint_auth_methods_supported": []string{"client_secret_post", "private_key_jwt", "client_secret_basic"},
		"response_types_supported":              []string{"token"},
		"response_modes_supported":              []string{"query"},
		"subject_types_supported":               []string{"pairwise"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"grant_types_supported":                 []string{"client_credentials"},
		"scopes_supported":                      []string{"openid"},
		"claims_supported":                      []string{"sub", "iss", "aud", "exp", "iat", "nbf", "appid", "oid", "tid", "ver"},
		"tenant_region_scope":                   "NA",
		"cloud_instance_name":                   "microsoftonline.com",
	}
}

// keys returns the public keys of this service's tokens.
func (d discovery) keys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"keys": []jwk{published(&d.Key.PublicKey)}})
}

// instance answers whether a host is a trusted login host, and under which names it is known. Without the names a
// client does not find its cached token and asks for a new one each time.
func (d discovery) instance(w http.ResponseWriter, r *http.Request) {
	endpoint, err := url.Parse(r.URL.Query().Get("authorization_endpoint"))
	if err != nil || endpoint.Host == "" {
		refuse(400, invalidRequest, 90023, "The request must contain the parameter 'authorization_endpoint', a URL.").write(w, r)
		return
	}
	if !d.isInstance(endpoint, r) {
		refuse(400, invalidInstance, 50049, "Unknown or invalid instance.").write(w, r)
		return
	}
	tenant, _, _ := strings.Cut(strings.Trim(endpoint.Path, "/"), "/")
	var instances []map[string]any
	for _, c := range cloud.Clouds() {
		preferred := c.Logins[0]
		cacheName := preferred
		if preferred == "login.microsoftonline.com" {
			cacheName = "login.windows.net"
		}
		instances = append(instances, map[string]any{"preferred_network": preferred, "preferred_cache": cacheName, "aliases": c.Logins})
	}
	if !cloud.IsLogin(endpoint.Hostname()) {
		host := endpoint.Host
		instances = append(instances, map[string]any{"preferred_network": host, "preferred_cache": host, "aliases": []string{host}})
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"api-version":               "1.1",
		"tenant_discovery_endpoint": "https://" + endpoint.Host + "/" + tenant + "/v2.0/.well-known/openid-configuration",
		"metadata":                  instances,
	})
}

// isInstance reports whether a login URL leads to this service.
func (d discovery) isInstance(endpoint *url.URL, r *http.Request) bool {
	host := endpoint.Hostname()
	if cloud.IsLogin(host) || strings.EqualFold(endpoint.Host, r.Host) {
		return true
	}
	own, err := url.Parse(d.Authority)
	ip := net.ParseIP(host)
	onLoopback := host == "localhost" || ip != nil && ip.IsLoopback()
	return err == nil && onLoopback && endpoint.Port() == own.Port()
}
