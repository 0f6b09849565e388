package token

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/emulator/plane/cloud"
)

// base is the URL under which the client reached this service. Clients want their
// login over TLS, so a request without it is told where that is.
func (s *Service) base(r *http.Request) string {
	if r.TLS == nil && s.Authority != "" {
		return strings.TrimSuffix(s.Authority, "/")
	}
	return "https://" + r.Host
}

// configuration is the OpenID configuration of a tenant.
func (s *Service) configuration(tenant string, form version) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		alias := slices.Contains([]string{"adfs", "common", "organizations"}, strings.ToLower(tenant))
		if !alias && !s.knows(tenant) {
			unknownTenant(tenant).write(w, r)
			return
		}
		writeJSON(w, http.StatusOK, s.describe(s.base(r)+"/"+tenant, tenant, form))
	})
}

func (s *Service) describe(base, tenant string, form version) map[string]any {
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

// keys are what tokens of this service can be checked with.
func (s *Service) keys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"keys": []jwk{published(&s.Key.PublicKey)}})
}

// instance says whether a host is one that may be trusted with credentials, and
// under which other names it is known. Without its names a client cannot find its
// token again and asks for a new one each time.
func (s *Service) instance(w http.ResponseWriter, r *http.Request) {
	endpoint, err := url.Parse(r.URL.Query().Get("authorization_endpoint"))
	if err != nil || endpoint.Host == "" {
		refuse(400, invalidRequest, 90023, "The request must contain the parameter 'authorization_endpoint', a URL.").write(w, r)
		return
	}
	if !s.isInstance(endpoint, r) {
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

// isInstance reports whether a login URL leads here.
func (s *Service) isInstance(endpoint *url.URL, r *http.Request) bool {
	host := endpoint.Hostname()
	if cloud.IsLogin(host) || strings.EqualFold(endpoint.Host, r.Host) {
		return true
	}
	own, err := url.Parse(s.Authority)
	ip := net.ParseIP(host)
	onLoopback := host == "localhost" || ip != nil && ip.IsLoopback()
	return err == nil && onLoopback && endpoint.Port() == own.Port()
}
