// Package metadata has the endpoint discovery of Azure Resource Manager: the addresses of the services of the local
// Azure. Layer L2.
package metadata

import (
	"encoding/json"
	"net/http"
	"strings"

	"kaz/internal/localazure/plane/cloud"
)

// Path is the path of the endpoint discovery below the base URL of Azure Resource Manager.
const Path = "/metadata/endpoints"

// Service answers with the host of the request, so that a client stays on its path: plain, over TLS, or through a
// proxy.
type Service struct {
	// Authority is the base URL of the login for requests without TLS, because clients log in over TLS only.
	Authority string
	// Registry is the domain of registries for clients with an address outside of Azure's clouds. "" is the cloud's own
	// domain.
	Registry string
	// Audiences are audiences of tokens after the audiences of the clouds.
	Audiences []string
}

// Handler returns the handler of requests to Path, nil for other paths.
func (s *Service) Handler(path string) http.Handler {
	if !strings.EqualFold(strings.TrimSuffix(path, "/"), Path) {
		return nil
	}
	return http.HandlerFunc(s.serve)
}

type object = map[string]any

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		send(w, http.StatusMethodNotAllowed, failure("MethodNotAllowed", "The endpoint metadata can only be read with GET."))
		return
	}
	switch version := r.URL.Query().Get("api-version"); {
	case version == "", version >= "2019" && version < "2020":
		send(w, http.StatusOK, s.all(r))
	case version < "2019":
		send(w, http.StatusOK, s.oldest(r))
	default:
		send(w, http.StatusOK, s.describe(s.cloudOf(r), "", r))
	}
}

func failure(code, message string) object {
	return object{"error": object{"code": code, "message": message}}
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

// cloudOf returns the cloud of the requested host, the public one for any other host.
func (s *Service) cloudOf(r *http.Request) cloud.Cloud {
	host, _, _ := strings.Cut(r.Host, ":")
	if c, ok := cloud.OfHost(host); ok {
		return c
	}
	return cloud.Clouds()[0]
}

// endpoints returns the base URLs of Azure Resource Manager and of the login.
func (s *Service) endpoints(r *http.Request) (arm, login string) {
	host, _, _ := strings.Cut(r.Host, ":")
	if c, ok := cloud.OfHost(host); ok {
		return "https://" + r.Host, "https://" + c.Logins[0] + "/"
	}
	if r.TLS == nil {
		return "http://" + r.Host, strings.TrimSuffix(s.Authority, "/") + "/"
	}
	return "https://" + r.Host, "https://" + r.Host + "/"
}

// all returns the form of 2019: the clouds that lead here under all their names, because a client chooses the one that
// its configuration names.
func (s *Service) all(r *http.Request) []object {
	var list []object
	for _, c := range cloud.Clouds() {
		list = append(list, s.describe(c, c.Name, r))
		if c.Alias != "" {
			list = append(list, s.describe(c, c.Alias, r))
		}
	}
	return append(list, s.describe(s.cloudOf(r), "AzureStackCloud", r))
}

// oldest returns the form of 2015, in which a cloud has few fields.
func (s *Service) oldest(r *http.Request) object {
	arm, login := s.endpoints(r)
	return object{
		"galleryEndpoint": arm, "graphEndpoint": arm, "portalEndpoint": arm,
		"authentication": object{"loginEndpoint": login, "audiences": s.audiences(s.cloudOf(r))},
	}
}

func (s *Service) audiences(c cloud.Cloud) []string {
	return append([]string{"https://" + c.Classic + "/", "https://" + c.ARM}, s.Audiences...)
}

// registry returns the domain of registries on the client's path.
func (s *Service) registry(c cloud.Cloud, r *http.Request) string {
	host, _, _ := strings.Cut(r.Host, ":")
	if _, public := cloud.OfHost(host); public || s.Registry == "" {
		return c.Registry
	}
	return s.Registry
}

func (s *Service) describe(c cloud.Cloud, name string, r *http.Request) object {
	arm, login := s.endpoints(r)
	if name == "" {
		if name = c.Alias; name == "" {
			name = c.Name
		}
	}
	return object{
		"name":            name,
		"portal":          arm,
		"resourceManager": arm,
		"authentication": object{
			"loginEndpoint": login, "audiences": s.audiences(c),
			"tenant": "common", "identityProvider": "AAD",
		},
		"suffixes": object{"acrLoginServer": s.registry(c, r), "storage": c.Storage, "keyVaultDns": c.Vault},
	}
}
